"""What a write costs as a table grows older: upserts of 50 rows, one after the other, with all services on.

``python3 -m benchmarks.growth`` writes 2,000 of them into a copy-on-write and into a merge-on-read table, prints the figures and
draws them. Clean and archive run by themselves, and compaction does on the merge-on-read table; what is measured is the whole
call, services included, in one process on a local disk.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.table.state import TableState
from pyspark.sql import SparkSession

from benchmarks.session import small_session

ROWS = 50
KEYS = 5_000
EARLY = 20
NEIGHBOURS = 5
LIMIT = 1.25
HERE = Path(__file__).parent


def main() -> int:
    """Measure, print, draw; 1 when a table misses the aim."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--types", nargs="+", default=["cow", "mor"], choices=["cow", "mor"])
    parser.add_argument("--out", type=Path, default=HERE / "growth.json")
    given = parser.parse_args()
    spark = small_session()
    found = {kind: measure(spark, kind, given.commits) for kind in given.types}
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    draw(found, given.out.with_suffix(".png"))
    print(table(found))
    return 1 if any(ratio(found[kind]["seconds"]) > LIMIT for kind in found) else 0


def measure(spark: SparkSession, kind: str, commits: int) -> dict[str, list[float]]:
    """Return, by commit, what the upsert cost.

    Returns:
        Seconds of the upsert and of planning a snapshot, entries of ``.hoodie``, data files, and the bytes of base files that
        were rewritten for a byte that changed.
    """
    found: dict[str, list[float]] = {"seconds": [], "plan": [], "entries": [], "files": [], "rewritten": []}
    with tempfile.TemporaryDirectory(prefix=f"growth-{kind}-") as folder:
        path = f"{folder}/t"
        hudi = HudiTable.create(
            spark,
            path,
            name="growth",
            record_key=["id"],
            precombine_field="ts",
            partition_by=["day"],
            table_type=kind,
        )
        options = {"hoodie.compact.inline": str(kind == "mor").lower()}
        for commit in range(commits):
            batch = _batch(spark, commit)
            started = time.perf_counter()
            figures = hudi.upsert(batch, options=options).figures
            written = time.perf_counter()
            state = TableState.load(hudi.storage)
            slices = state.view().latest_slices()
            found["plan"].append(round(time.perf_counter() - written, 4))
            found["seconds"].append(round(written - started, 4))
            found["entries"].append(len(os.listdir(f"{path}/.hoodie")))
            found["files"].append(sum(1 + len(each.log_files) for each in slices))
            found["rewritten"].append(round(figures.bytes_rewritten / max(1, figures.bytes_changed), 2))
            if (commit + 1) % 100 == 0:
                print(kind, commit + 1, _around(found["seconds"], commit), found["entries"][-1], flush=True)
    return found


def ratio(seconds: list[float]) -> float:
    """Return what the last upserts cost in proportion to the early ones, medians of five."""
    return _around(seconds, len(seconds) - 1) / _around(seconds, EARLY - 1)


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| table | commit | upsert, s | snapshot plan, s | entries of `.hoodie` | data files | bytes rewritten for one changed |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, figures in found.items():
        last = len(figures["seconds"])
        for commit in sorted({EARLY, last // 20, last // 4, last}):
            row = [f"{_around(figures[name], commit - 1):.3f}" for name in ("seconds", "plan")]
            row += [f"{figures[name][commit - 1]:.0f}" for name in ("entries", "files")]
            row.append(f"{_around(figures['rewritten'], commit - 1):.1f}")
            lines.append(f"| {kind} | {commit} | {' | '.join(row)} |")
    ratios = ", ".join(f"{kind} {ratio(figures['seconds']):.2f}" for kind, figures in found.items())
    return "\n".join([*lines, "", f"Last against commit {EARLY}: {ratios}; the aim is {LIMIT}."])


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw the medians over the commits; nothing happens without matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6))
    for kind, figures in found.items():
        commits = range(NEIGHBOURS, len(figures["seconds"]) + 1)
        left.plot(
            commits, [_around(figures["seconds"], each - 1) for each in commits], label=kind, linewidth=0.8
        )
        right.plot(range(1, len(figures["entries"]) + 1), figures["entries"], label=kind, linewidth=0.8)
    left.set_title("seconds of an upsert of 50 rows, services included")
    right.set_title("entries of .hoodie")
    for axes in (left, right):
        axes.set_xlabel("commits")
        axes.set_ylim(bottom=0)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _around(values: list[float], index: int) -> float:
    """Return the median of the values up to an index."""
    return statistics.median(values[max(0, index - NEIGHBOURS + 1) : index + 1])


def _batch(spark: SparkSession, commit: int) -> Any:
    """Return 50 rows, half of keys that are there; they lie in three of ten days."""
    rows = [
        (
            key := (commit * 7 + number * 101) % KEYS,
            f"name {key}",
            float(commit),
            commit,
            f"2026-01-{key % 3 + commit % 7 + 1:02d}",
        )
        for number in range(ROWS)
    ]
    return spark.createDataFrame(rows, "id long, name string, price double, ts long, day string")


if __name__ == "__main__":
    raise SystemExit(main())
