"""The changes of a table's last commit against a scan with a filter on the commit time, and Apache Hudi's incremental query.

The filter is timed as Spark runs it, which leaves out the row groups whose statistics rule them out, and without that.
Two tables: one of which a commit touched 1 % of the rows, all in one of ten partitions, and one of twenty small commits
(the shape of Apache Hudi's issue 7254). All ways are timed in turns in one run, so the ratio holds on any machine.
Apache Hudi runs in processes of its own (PySpark 3.5), where ``python3 dev.py setup all`` has brought it in, and reads the
same table.

    python -m benchmarks.changes [--rows 5000000] [--turns 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from pyspark.sql import DataFrame, SparkSession

from tests.judge.apache_hudi import VERSIONS, ApacheHudi, available

PARTITIONS = 10
COMMITS = 20
OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def main() -> int:
    """Measure both tables and print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    conf = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[*]").config(map=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    peers = [ApacheHudi(version, java="") for version in VERSIONS] if available() else []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (
            ("1 % in one of ten partitions", one_partition),
            ("twenty commits", twenty_commits),
        ):
            table, since = make(spark, Path(folder, name.replace(" ", "_").replace("%", "")), given.rows)
            told, *others = in_turns(ways_of(table, since, peers), given.turns)
            print(f"{name}: {told.way} {told.median:.2f} s", flush=True)
            for each in others:
                print(
                    f"  {each.way} {each.median:.2f} s, ratio {told.ratio_to(each):.2f} (median of the turns)",
                    flush=True,
                )
    for peer in peers:
        peer.close()
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


@dataclass(frozen=True)
class Timed:
    """Seconds of one way of asking, turn by turn."""

    way: str
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds of the turn in the middle."""
        return statistics.median(self.seconds)

    def ratio_to(self, other: Timed) -> float:
        """Return the ratio to another way, each turn by itself, as the machine's speed may drift."""
        return statistics.median(one / two for one, two in zip(self.seconds, other.seconds, strict=True))


def ways_of(table: HudiTable, since: str, peers: Sequence[ApacheHudi]) -> dict[str, Callable[[], None]]:
    """Return the ways to ask what a table's last commit brought, ours first."""

    def drained(rows: DataFrame) -> None:
        rows.write.format("noop").mode("overwrite").save()

    def filtered(statistics_: str) -> None:
        table.spark.conf.set("spark.sql.parquet.filterPushdown", statistics_)
        drained(table.snapshot().where(f"_hoodie_commit_time > '{since}'"))

    return {
        "changes": lambda: drained(table.changes(since)),
        "filter": partial(filtered, "true"),
        "filter without statistics": partial(filtered, "false"),
        **{
            f"incremental query of Apache Hudi {peer.version}": partial(
                peer.drain, table.path, "incremental", begin=since
            )
            for peer in peers
        },
    }


def in_turns(ways: dict[str, Callable[[], None]], turns: int) -> list[Timed]:
    """Time the ways one after the other, as often as there are turns, and once before that is not counted."""
    found = [Timed(name) for name in ways]
    for turn in range(turns + 1):
        for each in found:
            begun = time.perf_counter()
            ways[each.way]()
            if turn:
                each.seconds.append(time.perf_counter() - begun)
    return found


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
