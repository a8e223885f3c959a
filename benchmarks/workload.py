"""The data and the steps every system runs.

5,000,000 rows: ``id`` md5 text in random order, ``ts`` long, ``dt`` ten values (partition column), ``customer`` int, ``amount``
double, ``note`` text, ``status`` int, ``event_at`` timestamp, ``payload`` text of 34 characters. Batches spread evenly over the
keys, so copy-on-write rewrites every file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL_ROWS = 100_000
TINY_BATCHES = 6
"""Upserts of 110 rows: a third of a second each, so one more or less would be chance."""
KEY = ("id", "dt")
SCAN = "select count(*) n, sum(amount) a, sum(status) s from {table}"


@dataclass(frozen=True)
class Batch:
    """One upsert: ``updates`` existing keys and ``inserts`` new ones of a table of ``rows`` rows."""

    name: str
    rows: int
    updates: int
    inserts: int


def batches(rows: int) -> dict[str, Batch]:
    """The upserts of the workload by name."""
    return {
        "tiny": Batch("tiny", SMALL_ROWS, 100, 10),
        "0.1 %": Batch("0.1 %", rows, rows // 1000 - rows // 10000, rows // 10000),
        "10 %": Batch("10 %", rows, rows // 10 - rows // 100, rows // 100),
    }


def one_partition(rows: DataFrame) -> DataFrame:
    """The rows of one of the ten partitions."""
    return rows.where("dt = '2026-01-03'")


def rows_frame(spark: SparkSession, start: int, count: int, step: int = 1, version: int = 0) -> DataFrame:
    """Rows number ``start``, ``start + step``, ... of the table, as they are at ``version``."""
    from pyspark.sql import functions as F

    number = F.col("id")
    return spark.range(start, start + count * step, step, 8).select(
        F.md5(number.cast("string")).alias("id"),
        (number + F.lit(version * 10_000_000)).alias("ts"),
        F.concat(F.lit("2026-01-"), F.lpad((number % 10 + 1).cast("string"), 2, "0")).alias("dt"),
        (number % 50_000).cast("int").alias("customer"),
        (F.hash(number, F.lit(version)) / F.lit(100.0)).alias("amount"),
        F.concat(F.lit("note "), (number % 1000).cast("string")).alias("note"),
        ((number + version) % 7).cast("int").alias("status"),
        F.timestamp_seconds(F.lit(1_760_000_000) + number).alias("event_at"),
        F.concat(F.lit("p-"), F.md5(F.concat(number.cast("string"), F.lit(str(version))))).alias("payload"),
    )


def prepare(spark: SparkSession, folder: Path, rows: int, repeats: int) -> None:
    """Write the load and the batches as snappy Parquet, once; every system reads the same files."""
    done = folder / "_DONE"
    if done.exists():
        return
    _save(rows_frame(spark, 0, rows), folder / "load", 8)
    _save(rows_frame(spark, 0, SMALL_ROWS), folder / "small", 2)
    for batch in batches(rows).values():
        for number in range(TINY_BATCHES if batch.name == "tiny" else repeats):
            step = max(1, batch.rows // batch.updates)
            old = rows_frame(spark, number % step, batch.updates, step, version=number + 1)
            new = rows_frame(spark, batch.rows + number * batch.inserts, batch.inserts, version=number + 1)
            _save(
                old.unionByName(new),
                folder / batch_folder(batch.name, number),
                1 if batch.name == "tiny" else 4,
            )
    done.touch()


def batch_folder(name: str, number: int) -> str:
    """Folder name of one batch."""
    return f"batch_{name.replace(' ', '').replace('%', 'pct').replace('.', '_')}_{number}"


def _save(frame: DataFrame, path: Path, files: int) -> None:
    frame.repartition(files).write.mode("overwrite").parquet(str(path))
