"""Does one step of several systems in turn, in one Spark session, and prints one JSON line each.

Each system's own process comes some minutes after another's, and minutes of one machine differ by more than what takes a fifth of a
second does. Here a scan, or an upsert of 110 rows, of each follows one of the others, and all begin with the same compiled code.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.session import large_session, system_arguments
from benchmarks.systems import SYSTEMS, System
from benchmarks.workload import SCAN, TINY_BATCHES, batch_folder, prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Turns:
    """A step that is done in turn.

    Args:
        systems: The systems with an aim there; their settings and jars go together in one session.
        warm: Turns that are not counted.
        counted: Turns that are.
    """

    systems: tuple[str, ...]
    warm: int
    counted: int


STEPS = {
    "scan in turn": Turns(("dbt-hudi", "dbt-hudi mor", "parquet", "iceberg mor"), 40, 31),
    "tiny upsert in turn": Turns(("dbt-hudi", "delta"), 6, 15),
}


def main() -> None:
    """Command line: step, systems, folder for data and tables, number of rows, repeats."""
    parser = argparse.ArgumentParser(description=__doc__, parents=[system_arguments()])
    parser.add_argument("--step", choices=list(STEPS), required=True)
    parser.add_argument("--systems", required=True, help="comma separated")
    wanted = parser.parse_args()
    names = wanted.systems.split(",")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = {key: value for name in names for key, value in SYSTEMS[name].conf.items()}
    spark = large_session(conf, wanted.jars, wanted.folder)
    data = wanted.folder / f"data_{wanted.rows}"
    prepare(spark, data, wanted.rows, wanted.repeats)
    tables = wanted.folder / "tables" / "in_turn"
    shutil.rmtree(tables, ignore_errors=True)
    begin = _scans if wanted.step.startswith("scan") else _tiny_upserts
    turns = STEPS[wanted.step]
    try:
        work: dict[str, Callable[[int], object]] = {}
        for name in names:
            folder = tables / name.replace(" ", "_")
            folder.mkdir(parents=True)
            work[name] = begin(SYSTEMS[name](spark, folder), data, wanted.repeats)
        for turn in range(turns.warm + turns.counted):
            for name, one in work.items():
                before = time.monotonic()
                one(turn)
                seconds = time.monotonic() - before
                if turn >= turns.warm:
                    print(json.dumps({"system": name, "seconds": round(seconds, 4)}), flush=True)
    finally:
        spark.stop()
        shutil.rmtree(tables, ignore_errors=True)


def _scans(system: System, data: Path, repeats: int) -> Callable[[int], object]:
    """Make the table, 10 % of it upserted some times, and return a scan of it."""
    read = system.spark.read
    system.load("big", read.parquet(str(data / "load")))
    for batch in range(repeats):
        system.upsert("big", read.parquet(str(data / batch_folder("10 %", batch))))
    view = f"bench_{system.folder.name}".replace("-", "_")
    system.read("big").createOrReplaceTempView(view)
    return lambda _: system.spark.sql(SCAN.format(table=view)).collect()


def _tiny_upserts(system: System, data: Path, _repeats: int) -> Callable[[int], object]:
    """Make the table, and return an upsert of the batches, one after the other and then again."""
    read = system.spark.read
    system.load("small", read.parquet(str(data / "small")))
    frames: list[DataFrame] = [
        read.parquet(str(data / batch_folder("tiny", number))) for number in range(TINY_BATCHES)
    ]
    upsert = partial(system.upsert, "small")
    return lambda turn: upsert(frames[turn % TINY_BATCHES])


if __name__ == "__main__":
    main()
