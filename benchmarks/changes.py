"""The changes of a table's last commit against a scan of the whole table with a filter on the commit time.

The filter is timed as Spark runs it, which leaves out the row groups whose statistics rule them out, and without that.
Two tables: one of which a commit touched 1 % of the rows, all in one of ten partitions, and one of twenty small commits
(the shape of Apache Hudi's issue 7254). All ways are timed in turns in one run, so the ratio holds on any machine.

    python -m benchmarks.changes [--rows 5000000] [--turns 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 10
COMMITS = 20
OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def main() -> int:
    """Measure both tables and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (
            ("1 % in one of ten partitions", one_partition),
            ("twenty commits", twenty_commits),
        ):
            table, since = make(spark, Path(folder, name.replace(" ", "_").replace("%", "")), given.rows)
            told, *scanned = in_turns(table, since, given.turns)
            for way, seconds in zip(("filter", "full scan"), scanned, strict=True):
                print(f"{name}: changes {told:.2f} s, {way} {seconds:.2f} s, ratio {told / seconds:.2f}")
    spark.stop()
    return 0


def one_partition(spark: SparkSession, path: Path, rows: int) -> tuple[HudiTable, str]:
    """Make a table whose last commit changed a hundredth of its rows, in one partition."""
    table = _table(spark, path)
    first = table.bulk_insert(_rows(spark, 0, rows))
    assert first.instant is not None
    part = _rows(spark, 0, rows).where("part = 3").limit(rows // 100)
    table.upsert(part.withColumn("amount", part.amount + 1))
    return table, first.instant


def twenty_commits(spark: SparkSession, path: Path, rows: int) -> tuple[HudiTable, str]:
    """Make a table by twenty commits; what the last one brought is asked for."""
    table = _table(spark, path)
    size, instants = rows // COMMITS, []
    for number in range(COMMITS):
        instants.append(table.upsert(_rows(spark, number * size, (number + 1) * size)).instant)
    return table, str(instants[-2])


def in_turns(table: HudiTable, since: str, turns: int) -> list[float]:
    """Return the median seconds of the changes, the filter and the filter without statistics, run one after the other."""

    def filtered() -> DataFrame:
        return table.snapshot().where(f"_hoodie_commit_time > '{since}'")

    ways = [(lambda: table.changes(since), "true"), (filtered, "true"), (filtered, "false")]
    seconds: list[list[float]] = [[] for _ in ways]
    for turn in range(turns + 1):
        for (way, pushed), found in zip(ways, seconds, strict=True):
            table.spark.conf.set("spark.sql.parquet.filterPushdown", pushed)
            begun = time.perf_counter()
            way().write.format("noop").mode("overwrite").save()
            if turn:
                found.append(time.perf_counter() - begun)
    return [statistics.median(each) for each in seconds]


def _table(spark: SparkSession, path: Path) -> HudiTable:
    definition: dict[str, Any] = {"record_key": ["id"], "precombine_field": "ts", "partition_by": ["part"]}
    return HudiTable.create(spark, str(path), name="t", options=OPTIONS, **definition)


def _rows(spark: SparkSession, begin: int, end: int) -> DataFrame:
    return spark.range(begin, end).selectExpr(
        "id",
        f"cast(id % {PARTITIONS} as int) as part",
        "cast(id as bigint) as ts",
        "id * 3 % 1000 as amount",
        "concat('name ', id % 977) as name",
    )


if __name__ == "__main__":
    raise SystemExit(main())
