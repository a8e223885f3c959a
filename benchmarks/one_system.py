"""Runs the workload on one system in a process of its own and prints one JSON line a step."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.processes import cpu_seconds
from benchmarks.services import clean_seconds, pyarrow_copy_seconds
from benchmarks.session import large_session, system_arguments
from benchmarks.systems import SYSTEMS, DbtHudi, System
from benchmarks.workload import SCAN, TINY_BATCHES, batch_folder, batches, one_partition, prepare

CLEANED_FILES = 10_000
_LOADS = 3
_SCANS = 15
"""So many of each, of which the median counts: the first of a process compile Java's code, in every system.

The first load is a step of its own; larger upserts and the overwrite are done once on its table, which is not counted, and then the
table is loaded anew."""

_WARM_SCANS = 40
_WARM_SECONDS = 20.0
"""Scans that are not counted, so many or for so long: some systems have read tables through Spark before, to write them, and
have compiled that code by then, and some have not. The very first of them is a step of its own."""


def main() -> None:
    """Command line: system name, folder for data and tables, number of rows, repeats."""
    parser = argparse.ArgumentParser(description=__doc__, parents=[system_arguments()])
    parser.add_argument("--system", choices=list(SYSTEMS), required=True)
    wanted = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = large_session(SYSTEMS[wanted.system].conf, wanted.jars, wanted.folder)
    data = wanted.folder / f"data_{wanted.rows}"
    prepare(spark, data, wanted.rows, wanted.repeats)
    tables = wanted.folder / "tables" / wanted.system.replace(" ", "_")
    shutil.rmtree(tables, ignore_errors=True)
    tables.mkdir(parents=True)
    system = SYSTEMS[wanted.system](spark, tables)
    try:
        _run(system, data, wanted.rows, wanted.repeats)
    finally:
        spark.stop()
        shutil.rmtree(tables, ignore_errors=True)


def _run(system: System, data: Path, rows: int, repeats: int) -> None:
    spark = system.spark
    _tiny_upserts(system, data)
    _step(system, "first load", lambda: _load(system, data))
    _warm(system, data, rows)
    for _ in range(_LOADS):
        _step(system, "load", lambda: _load(system, data))
    for name in list(batches(rows))[1:]:
        for number in range(repeats):
            batch = spark.read.parquet(str(data / batch_folder(name, number)))
            _step(system, f"upsert {name}", lambda batch=batch: system.upsert("big", batch))
    _step(system, "first scan", lambda: _first_scan(system))
    _scans(system, "scan")
    for number in range(_LOADS):
        whole = system.read("big")
        _step(
            system,
            "all columns",
            lambda whole=whole: whole.write.format("noop").mode("overwrite").save(),
            report=number > 0,
        )
    if type(system).compact is not System.compact:
        _services(system, rows)
    for _ in range(_LOADS):
        _step(system, "overwrite 1 of 10 partitions", lambda: _overwrite(system, data))
    if type(system) is DbtHudi:
        one = spark.read.parquet(str(data / "load")).drop("dt")
        for operation in ("bulk_insert", "insert"):
            table = system.create(f"one_{operation}", ["id"], [])
            _step(system, f"{operation} into one partition", partial(getattr(table, operation), one))


def _tiny_upserts(system: System, data: Path) -> None:
    read = system.spark.read
    _step(system, "load 100 k", lambda: system.load("small", read.parquet(str(data / "small"))), report=False)
    for number in range(TINY_BATCHES):
        batch = read.parquet(str(data / batch_folder("tiny", number)))
        _step(system, "tiny upsert", partial(system.upsert, "small", batch), report=number > 0)


def _scans(system: System, name: str) -> None:
    def scan() -> None:
        system.spark.sql(SCAN.format(table="bench_big")).collect()

    start = time.monotonic()
    for _ in range(_WARM_SCANS):
        if time.monotonic() - start < _WARM_SECONDS:
            scan()
    for _ in range(_SCANS):
        _step(system, name, scan)


def _first_scan(system: System) -> None:
    """Open the table and scan it once."""
    system.read("big").createOrReplaceTempView("bench_big")
    system.spark.sql(SCAN.format(table="bench_big")).collect()


def _load(system: System, data: Path) -> None:
    system.load("big", system.spark.read.parquet(str(data / "load")))


def _warm(system: System, data: Path, rows: int) -> None:
    for name in list(batches(rows))[1:]:
        system.upsert("big", system.spark.read.parquet(str(data / batch_folder(name, 0))))
    _overwrite(system, data)


def _overwrite(system: System, data: Path) -> None:
    system.overwrite("big", one_partition(system.spark.read.parquet(str(data / "load"))))


def _services(system: System, rows: int) -> None:
    spark = system.spark
    _step(system, "compaction", lambda: system.compact("big"))
    system.read("big").createOrReplaceTempView("bench_big")
    _scans(system, "scan after compaction")
    seconds = pyarrow_copy_seconds(system.path("big"), system.folder / "copy")
    _say("pyarrow copy of the bytes", seconds)
    seconds, deleted = clean_seconds(
        spark, system.folder, CLEANED_FILES if rows >= 1_000_000 else CLEANED_FILES // 20
    )
    _say(f"clean of {deleted} files", seconds)


def _say(step: str, seconds: float) -> None:
    print(json.dumps({"step": step, "seconds": round(seconds, 3), "cpu": 0, "jobs": 0}), flush=True)


def _step(system: System, name: str, work: Callable[[], object], *, report: bool = True) -> None:
    tracker = system.spark.sparkContext.statusTracker()
    group = f"bench-{name}-{time.monotonic_ns()}"
    system.spark.sparkContext.setJobGroup(group, name)
    before, cpu_before = time.monotonic(), cpu_seconds()
    work()
    seconds, cpu = time.monotonic() - before, cpu_seconds() - cpu_before
    jobs = len(tracker.getJobIdsForGroup(group))
    if report:
        found = {"step": name, "seconds": round(seconds, 3), "cpu": round(cpu, 2), "jobs": jobs}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
