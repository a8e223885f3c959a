"""Runs the workload on dbt-hudi and its peers in turn and prints times, Spark jobs and ratios, with a bar chart.

python3 dev.py bench                     everything (more than an hour on two cores)
python3 dev.py bench --rows 500000 --systems dbt-hudi,delta --only systems
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import dbt_models, log_codec, partial_updates, published, sizes
from benchmarks.aims import Results
from benchmarks.in_turn import STEPS
from benchmarks.jars import fetch
from benchmarks.report import report, save
from benchmarks.systems import SYSTEMS

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma separated: " + ", ".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=2, help="batches of each size; the median counts")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where data and tables go (default: a temp folder)"
    )
    parser.add_argument(
        "--chart",
        type=Path,
        default=ROOT / "benchmarks" / "results.png",
        help="where the chart goes; the tables go beside it as .md, those of further parts with their names",
    )
    parser.add_argument("--only", default=",".join(PARTS), help="comma separated: " + ", ".join(PARTS))
    wanted = parser.parse_args()
    # Only what is installed from a checkout would be compiled anew by each process: this engine, and no peer.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    names = _listed(parser, wanted.systems, SYSTEMS)
    parts = _listed(parser, wanted.only, PARTS)
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as temporary:
        folder = wanted.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results: Results = {}
        for number, name in enumerate(names if "systems" in parts else (), 1):
            results[name] = _measure(name, number, len(names), folder, wanted)
            save(results, wanted.chart)
        for step, turns in STEPS.items() if "systems" in parts else ():
            together = [name for name in turns.systems if name in names]
            if len(together) > 1:
                for name, seconds in _measure_in_turn(step, together, folder, wanted).items():
                    results.setdefault(name, {})[step] = {"seconds": seconds, "jobs": 0}
                save(results, wanted.chart)
        if "dbt" in parts:
            print("[dbt] ten models, second run of the whole process", flush=True)
            for name, steps in dbt_models.measure(folder).items():
                results.setdefault(name, {}).update(steps)
    if results:
        save(results, wanted.chart)
        report(results, wanted.chart)
    for part in parts:
        if part in MORE:
            print(f"[{part}]", flush=True)
            table = MORE[part](wanted.rows / 5_000_000) + "\n"
            print(f"\n{table}")
            wanted.chart.with_name(f"{wanted.chart.stem}_{part}.md").write_text(table, "utf-8")
    return 0


MORE: dict[str, Callable[[float], str]] = {
    "blocks": lambda _: log_codec.table(log_codec.measure()),
    "partial": lambda scale: partial_updates.table(partial_updates.measure(scale)),
    "published": lambda scale: published.table(published.measure(scale)),
    "sizes": lambda scale: sizes.table(sizes.measure(scale)),
}
PARTS = ("systems", "dbt", *MORE)


def _listed(parser: argparse.ArgumentParser, given: str, legal: Iterable[str]) -> list[str]:
    names = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in legal]
    if unknown:
        parser.error(f"unknown {unknown}; legal: {', '.join(legal)}")
    return names


def _measure(
    name: str, number: int, total: int, folder: Path, wanted: argparse.Namespace
) -> dict[str, dict[str, float]]:
    print(f"[{number} of {total}] {name}", flush=True)
    steps: dict[str, list[dict[str, float]]] = {}
    for step in _lines(["benchmarks.one_system", "--system", name], [name], folder, wanted):
        steps.setdefault(step["step"], []).append(step)
        print(
            f"  {step['step']:<24}{step['seconds']:>8.2f} s {step['cpu']:>8.2f} s cpu {step['jobs']:>4} jobs",
            flush=True,
        )
    return {
        name: {
            "seconds": median(one["seconds"] for one in found),
            "jobs": median(one["jobs"] for one in found),
        }
        for name, found in steps.items()
    }


def _measure_in_turn(
    step: str, names: list[str], folder: Path, wanted: argparse.Namespace
) -> dict[str, float]:
    print(f"[{step}] {', '.join(names)}", flush=True)
    found: dict[str, list[float]] = {}
    module = ["benchmarks.in_turn", "--step", step, "--systems", ",".join(names)]
    for each in _lines(module, names, folder, wanted):
        found.setdefault(each["system"], []).append(each["seconds"])
    for name, seconds in found.items():
        print(f"  {name:<24}{median(seconds):>8.3f} s", flush=True)
    return {name: median(seconds) for name, seconds in found.items()}


def _lines(
    module: list[str], names: list[str], folder: Path, wanted: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield what a process of a module says of some systems; nothing when their jars cannot be fetched."""
    jars: list[Path] = []
    for name in names:
        found = fetch(SYSTEMS[name].jars)
        if found is None:
            print(f"  LEFT OUT: the jars of {name} could not be fetched: {', '.join(SYSTEMS[name].jars)}")
            return
        jars += [jar for jar in found if jar not in jars]
    command = [
        *(sys.executable, "-m", *module),
        *("--folder", str(folder), "--rows", str(wanted.rows), "--repeats", str(wanted.repeats)),
        *("--jars", ",".join(map(str, jars))),
    ]
    said = 0
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if line.startswith("{"):
                said += 1
                yield json.loads(line)
        errors = process.stderr.read()
    if process.returncode:
        print(f"  FAILED after {said} step(s):\n" + "\n".join(errors.strip().splitlines()[-5:]))


if __name__ == "__main__":
    sys.exit(main())
