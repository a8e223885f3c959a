"""Does one step of several systems in turn, in one Spark session, and prints one JSON line each.

Each system's own process comes some minutes after another's, and minutes of one machine differ by a half and more. Here a step of
each follows the same step of the others, and all begin with the same compiled code.
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
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.session import large_session, system_arguments
from benchmarks.systems import SYSTEMS, System
from benchmarks.workload import SCAN, TINY_BATCHES, batch_folder, one_partition, prepare

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


_LARGE = ("dbt-hudi", "dbt-hudi mor", "delta", "iceberg", "iceberg mor")
STEPS = {
    "load in turn": Turns(("dbt-hudi", "parquet"), 2, 5),
    "upsert 0.1 % in turn": Turns(_LARGE, 1, 4),
    "upsert 10 % in turn": Turns(_LARGE, 1, 3),
    "overwrite 1 of 10 partitions in turn": Turns(("dbt-hudi", "parquet"), 2, 7),
    "scan in turn": Turns(("dbt-hudi", "dbt-hudi mor", "parquet", "iceberg mor"), 40, 31),
    "tiny upsert in turn": Turns(("dbt-hudi", "delta"), 6, 15),
}
_EXTENSIONS = "spark.sql.extensions"


def main() -> None:
    """Command line: step, systems, folder for data and tables, number of rows, repeats."""
    parser = argparse.ArgumentParser(description=__doc__, parents=[system_arguments()])
    parser.add_argument("--step", choices=list(STEPS), required=True)
    parser.add_argument("--systems", required=True, help="comma separated")
    wanted = parser.parse_args()
    names = wanted.systems.split(",")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = large_session(_settings(names), wanted.jars, wanted.folder)
    data = wanted.folder / f"data_{wanted.rows}"
    prepare(spark, data, wanted.rows, wanted.repeats)
    tables = wanted.folder / "tables" / "in_turn"
    shutil.rmtree(tables, ignore_errors=True)
    begin, turns = _BEGINNINGS[wanted.step], STEPS[wanted.step]
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


def _upserts(
    system: System, data: Path, table: str, loaded: str, batch: str, count: int
) -> Callable[[int], object]:
    """Make a table, and return an upsert of the batches of one size, one after the other and then again."""
    read = system.spark.read
    system.load(table, read.parquet(str(data / loaded)))
    frames: list[DataFrame] = [
        read.parquet(str(data / batch_folder(batch, number))) for number in range(count)
    ]
    return lambda turn: system.upsert(table, frames[turn % count])


def _tiny_upserts(system: System, data: Path, _repeats: int) -> Callable[[int], object]:
    return _upserts(system, data, "small", "small", "tiny", TINY_BATCHES)


def _large_upserts(batch: str) -> Callable[[System, Path, int], Callable[[int], object]]:
    return lambda system, data, repeats: _upserts(system, data, "big", "load", batch, repeats)


def _loads(system: System, data: Path, _repeats: int) -> Callable[[int], object]:
    return lambda _: system.load("big", system.spark.read.parquet(str(data / "load")))


def _overwrites(system: System, data: Path, _repeats: int) -> Callable[[int], object]:
    rows = system.spark.read.parquet(str(data / "load"))
    system.load("big", rows)
    return lambda _: system.overwrite("big", one_partition(rows))


_BEGINNINGS: dict[str, Callable[[System, Path, int], Callable[[int], object]]] = {
    "load in turn": _loads,
    "upsert 0.1 % in turn": _large_upserts("0.1 %"),
    "upsert 10 % in turn": _large_upserts("10 %"),
    "overwrite 1 of 10 partitions in turn": _overwrites,
    "scan in turn": _scans,
    "tiny upsert in turn": _tiny_upserts,
}


def _settings(names: list[str]) -> dict[str, str]:
    """Return the settings of several systems, with the extensions of all."""
    together = {key: value for name in names for key, value in SYSTEMS[name].conf.items()}
    extensions = dict.fromkeys(
        SYSTEMS[name].conf[_EXTENSIONS] for name in names if _EXTENSIONS in SYSTEMS[name].conf
    )
    return {**together, _EXTENSIONS: ",".join(extensions)} if extensions else together


if __name__ == "__main__":
    main()
