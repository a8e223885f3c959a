"""Flame graphs of what the Python of a load and of an upsert of 10 % does, driver and workers together, as SVG.

python3 dev.py run python -m benchmarks.flames        writes docs/pictures/load.svg and upsert.svg

A sample is a moment in which a thread works; what waits for Java is left out. Java's own share is not in the picture: `dev.py
bench` prints the CPU seconds of all processes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from benchmarks.session import small_session
from benchmarks.workload import KEY, prepare

ROOT = Path(__file__).resolve().parent.parent
STEPS = ("load", "upsert")
_SAMPLES_A_SECOND = 200
_FRAME = re.compile(r"^(.*) \((.*?)(?::\d+)?\)$")
_WIDTH, _HEIGHT, _LETTER, _SMALLEST = 1200, 18, 6.2, 0.004
_COLOURS = {"engine": "#f3a35c", "pyarrow": "#7fb2e5", "numpy": "#9ccf8f", "other": "#d9d9d9"}


@dataclass
class _Node:
    """A function on the way from the first to the last, with its samples."""

    samples: int = 0
    below: dict[str, _Node] = field(default_factory=dict)

    def add(self, frames: list[str], samples: int) -> None:
        """Count samples on a way."""
        self.samples += samples
        if frames:
            self.below.setdefault(frames[0], _Node()).add(frames[1:], samples)

    def depth(self, least: float) -> int:
        """Return how many functions of at least so many samples are on the longest way."""
        return 1 + max(
            (each.depth(least) for each in self.below.values() if each.samples >= least), default=0
        )


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--step", choices=("land", *STEPS), help="only do it, in this process")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.step:
        _do(given.step, given.folder, given.rows)
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hudi-flames-") as folder:
        own = [sys.executable, "-m", "benchmarks.flames", "--folder", folder, "--rows", str(given.rows)]
        subprocess.run([*own, "--step", "land"], cwd=ROOT, check=True)
        for step in STEPS:
            stacks = Path(folder) / f"{step}.txt"
            record = [
                "py-spy",
                "record",
                "--subprocesses",
                "--format",
                "raw",
                "--rate",
                str(_SAMPLES_A_SECOND),
            ]
            command = [*record, "--output", str(stacks), "--", *own, "--step", step]
            subprocess.run(command, cwd=ROOT, check=True)
            picture = given.out / f"{step}.svg"
            picture.write_text(_svg(_tree(stacks.read_text("utf-8"))), "utf-8")
            print(f"{step}: {picture}")
    return 0


def _do(step: str, folder: Path, rows: int) -> None:
    from hudi_engine import HudiTable

    spark = small_session()
    prepare(spark, folder / "data", rows, 1)
    if step == "load":
        table = HudiTable.create(
            spark, str(folder / "t"), name="t", record_key=list(KEY), partition_by=[KEY[1]]
        )
        table.bulk_insert(spark.read.parquet(str(folder / "data" / "load")))
    elif step == "upsert":
        batch = spark.read.parquet(str(folder / "data" / "batch_10pct_0"))
        HudiTable.open(spark, str(folder / "t")).upsert(batch)
    spark.stop()


def _tree(stacks: str) -> _Node:
    """Read the ways that were sampled; what is before the engine's first function is left out, and imports are one word."""
    root = _Node()
    for line in stacks.splitlines():
        way, _, samples = line.rpartition(" ")
        root.add(_frames(way.split(";")), int(samples))
    return root


def _frames(way: list[str]) -> list[str]:
    found = [match for match in map(_FRAME.match, way) if match is not None]
    first = next((number for number, each in enumerate(found) if "hudi_engine" in each[2]), len(found))
    importing = [
        number for number, each in enumerate(found) if "importlib" in each[2] or "zipimport" in each[2]
    ]
    if importing and importing[0] < first:
        return ["imports"]
    end = next((number for number in importing if number > first), len(found))
    named = [f"{each[1]} ({_place(each[2])})" for each in found[first:end]]
    return [*named, *(["imports"] if end < len(found) else [])] or ["Spark's own Python"]


def _place(file: str) -> str:
    """Return the place of a file below its package; nothing of the machine."""
    for package in ("hudi_engine", "pyarrow", "numpy", "pandas", "pyspark"):
        if f"{package}/" in file:
            return package + "/" + file.rpartition(f"{package}/")[2]
    return file.rpartition("/")[2]


def _svg(root: _Node) -> str:
    least = root.samples * _SMALLEST
    height = (root.depth(least) + 1) * _HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="10">'
    ]
    _draw(parts, f"all, {root.samples / _SAMPLES_A_SECOND:.1f} seconds of work", root, root, 0.0, 0)
    return "\n".join([*parts, "</svg>", ""])


def _draw(parts: list[str], name: str, node: _Node, root: _Node, left: float, level: int) -> None:
    width = _WIDTH * node.samples / root.samples
    kind = next((each for each in ("pyarrow", "numpy") if f"({each}/" in name), "other")
    kind = "engine" if "(hudi_engine/" in name else kind
    text = name[: int(width / _LETTER)] if width > 4 * _LETTER else ""
    top = level * _HEIGHT
    parts.append(
        f"<g><title>{escape(name)}: {100 * node.samples / root.samples:.1f} %</title>"
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_HEIGHT - 1}" fill="{_COLOURS[kind]}" stroke="#fff"/>'
        f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(text)}</text></g>'
    )
    for below, each in sorted(node.below.items(), key=lambda pair: -pair[1].samples):
        if each.samples >= root.samples * _SMALLEST:
            _draw(parts, below, each, root, left, level + 1)
        left += _WIDTH * each.samples / root.samples


if __name__ == "__main__":
    sys.exit(main())
