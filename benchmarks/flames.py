"""Flame graphs of what the Python of a load and of an upsert of 10 % does, driver and workers together, as SVG.

python3 dev.py run python -m benchmarks.flames        writes docs/pictures/load.svg and upsert.svg

A sample is a moment in which a thread works; what waits for Java is left out. Java's own share is not in the picture: `dev.py
bench` prints the CPU seconds of all processes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.session import small_session
from benchmarks.workload import KEY, prepare

ROOT = Path(__file__).resolve().parent.parent
STEPS = ("load", "upsert")
_SAMPLES_A_SECOND = 200


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
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
            picture = given.out / f"{step}.svg"
            record = [
                "py-spy",
                "record",
                "--subprocesses",
                "--rate",
                str(_SAMPLES_A_SECOND),
                "--output",
                str(picture),
            ]
            subprocess.run([*record, "--", *own, "--step", step], cwd=ROOT, check=True)
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


if __name__ == "__main__":
    sys.exit(main())
