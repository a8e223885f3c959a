"""What a table costs by the number of its file groups: opening, planning a snapshot, counting one partition, and a small upsert.

``python3 -m benchmarks.scale`` builds tables of 100 and of 100,000 file groups (ten a partition) and prints a line for each step:
seconds, seconds of CPU of Python and of Java, folders listed and files opened by this process. Only the ten partitions
that are written to are real; the others are hard links to the files of one of them, which nothing here reads the rows of.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.snapshot.manifest import publish
from hudi_engine.table.snapshot.manifest_file import CATALOG_FOLDER
from pyspark.sql import SparkSession

from benchmarks.session import small_session

REAL = 10
GROUPS = 10
ROWS_OF_A_FILE = 20
SIZES = (10, 10_000)
PLAN_LIMIT_S, UPSERT_LIMIT = 3.0, 2.0
OPTIONS = {"hoodie.parquet.small.file.limit": "0"}


def main() -> int:
    """Build, measure, print; 1 when an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--type", default="cow", choices=["cow", "mor"])
    parser.add_argument(
        "--metadata", action="store_true", help="with files and column_stats of the metadata table"
    )
    given = parser.parse_args()
    spark = small_session()
    found = {}
    for count in given.partitions:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            build(spark, f"{folder}/t", count, given.type)
            if given.metadata:
                HudiTable.open(spark, f"{folder}/t").services().create_index(
                    "column_stats", columns=["id", "value"]
                )
            found[count] = measure(spark, f"{folder}/t", count)
    small, large = (found[each] for each in (min(found), max(found)))
    ratio = large["upsert"] / small["upsert"]
    print(
        f"open and plan {large['plan']:.2f} s (at most {PLAN_LIMIT_S}); upsert {ratio:.2f} x (at most {UPSERT_LIMIT})"
    )
    return int(large["plan"] > PLAN_LIMIT_S or ratio > UPSERT_LIMIT)


def build(spark: SparkSession, path: str, partitions: int, kind: str = "cow") -> None:
    """Make a table of ten file groups a partition: ten partitions are written, the others are links.

    Args:
        spark: The session.
        path: Where.
        partitions: How many, ten or more.
        kind: Table type.
    """
    hudi = HudiTable.create(
        spark,
        path,
        name="scale",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["p"],
        table_type=kind,
        options={
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.write.table.version": "9",
            "hoodie.metadata.enable": "false",
        },
    )
    for group in range(GROUPS):
        hudi.insert(_rows(spark, group), options={**OPTIONS, "hoodie.clean.automatic": "false"})
    pattern = Path(path) / "p=0"
    files = [each for each in pattern.iterdir() if not each.name.startswith(".") or "partition" in each.name]
    for number in range(REAL, partitions):
        folder = Path(path) / f"p={number}"
        folder.mkdir()
        for each in files:
            os.link(each, folder / each.name)
    hudi.storage.delete_tree(CATALOG_FOLDER)
    publish(hudi.storage)


def measure(spark: SparkSession, path: str, partitions: int) -> dict[str, float]:
    """Return the seconds of each step; the upsert's are those of the second of two."""
    found = {}

    def step(name: str, action: Callable[[], Any]) -> Any:
        with _Counted() as calls:
            before, cpu, java = time.perf_counter(), time.process_time(), _java_cpu(spark)
            result = action()
            found[name] = time.perf_counter() - before
        own, jvm = time.process_time() - cpu, _java_cpu(spark) - java
        print(
            f"{partitions:>7} partitions {name:<26} {found[name]:7.2f} s  cpu {own:6.2f} + {jvm:6.2f} s"
            f"  lists {calls.lists:>6}  opens {calls.opens:>6}",
            flush=True,
        )
        return result

    frame = step("plan", lambda: HudiTable.open(spark, path).snapshot())
    for name, filters in (
        ("filter by partition", [("p", "=", "3")]),
        ("filter by value", [("id", "=", "05-03-001")]),
    ):
        for again in ("", " again"):
            step(name + again, lambda filters=filters: HudiTable.open(spark, path).snapshot(filters=filters))
    step("one partition", lambda: frame.where("p = 3").count())
    hudi = HudiTable.open(spark, path)
    options = {**OPTIONS, "hoodie.metadata.enable": str(bool(hudi.config.metadata_partitions)).lower()}
    for number, name in enumerate(("first upsert", "upsert")):
        batch = _rows(spark, 0, ts=number + 2, most=1)
        step(name, lambda batch=batch: hudi.upsert(batch, options=options))
    step("plan again", lambda: HudiTable.open(spark, path).snapshot())
    return found


class _Counted:
    """Counts listings and opens of local files while it is entered."""

    def __init__(self) -> None:
        self.lists = self.opens = 0

    def __enter__(self) -> _Counted:
        self._before = LocalStorage.list, LocalStorage.open_input
        lists, opens = self._before

        def counted_list(storage: LocalStorage, *args: Any, **options: Any) -> Any:
            self.lists += 1
            return lists(storage, *args, **options)

        def counted_open(storage: LocalStorage, *args: Any, **options: Any) -> Any:
            self.opens += 1
            return opens(storage, *args, **options)

        LocalStorage.list, LocalStorage.open_input = counted_list, counted_open  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        LocalStorage.list, LocalStorage.open_input = self._before  # type: ignore[method-assign]


def _java_cpu(spark: SparkSession) -> float:
    """Seconds of CPU of the Java process, 0 where there is no ``/proc``."""
    try:
        pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rows(spark: SparkSession, group: int, ts: int = 1, most: int = ROWS_OF_A_FILE) -> Any:
    rows = [
        (f"{partition:02d}-{group:02d}-{row:03d}", ts, float(row), str(partition))
        for partition in range(REAL)
        for row in range(most)
    ]
    return spark.createDataFrame(rows, "id string, ts long, value double, p string")


if __name__ == "__main__":
    raise SystemExit(main())
