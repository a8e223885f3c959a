"""Shapes that others have published times of, on this engine: ours beside theirs, each on its own machine.

PyIceberg 0.11, one million rows (383 MiB) upserted: its issue #3129. duckrun (DuckDB and delta-rs, 4 cores, 16 GB), TPC-H
``lineitem`` of scale factor 10: its page "Incremental MERGE benchmark". Here the table has a tenth of its rows, and so have the
batches.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.session import small_session
from benchmarks.workload import rows_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUBLISHED = {
    "PyIceberg: upsert of 1 M rows": 1065.8,
    "duckrun: mixed, 1 %": 63.1,
    "duckrun: no change, 5 %": 78.0,
    "duckrun: new rows only, 5 %": 13.9,
    "duckrun: delete, update and insert, 6 %": 43.3,
}
"""Seconds as published; duckrun's are of ten times the rows."""

_LINES = 6_000_000
_PER_ORDER = 4
_KEY = ["l_orderkey", "l_linenumber"]


def measure(scale: float = 1.0) -> dict[str, float]:
    """Measure every shape; says each as it ends.

    Args:
        scale: Part of the rows, for a short run.

    Returns:
        Seconds by the names of `PUBLISHED`.
    """
    spark = small_session()
    try:
        with tempfile.TemporaryDirectory(prefix="hudi-published-") as folder:
            found = {**_pyiceberg(spark, Path(folder), scale), **_duckrun(spark, Path(folder), scale)}
    finally:
        spark.stop()
    return found


def table(found: dict[str, float]) -> str:
    """Return ours beside theirs in Markdown."""
    lines = ["| shape | here, s | published, s |", "|---|---|---|"]
    for name, seconds in found.items():
        theirs = f"{PUBLISHED[name]:,.1f}" + (" (ten times the rows)" if name.startswith("duckrun") else "")
        lines.append(f"| {name} | {seconds:.1f} | {theirs} |")
    return "\n".join(lines)


def _pyiceberg(spark: SparkSession, folder: Path, scale: float) -> dict[str, float]:
    count = int(1_000_000 * scale)
    table = _create(spark, folder / "million", ["id"])
    rows = _landed(_wide(rows_frame(spark, 0, count)), folder / "stored")
    table.bulk_insert(rows)
    batch = _landed(_wide(rows_frame(spark, 0, count, version=1)), folder / "million_batch")
    return dict([_timed("PyIceberg: upsert of 1 M rows", lambda: table.upsert(batch))])


def _wide(rows: DataFrame) -> DataFrame:
    """Rows of about 400 bytes, as in the issue."""
    from pyspark.sql import functions as F

    return rows.withColumns({f"text_{n}": F.sha2(F.concat("payload", F.lit(str(n))), 256) for n in range(4)})


def _duckrun(spark: SparkSession, folder: Path, scale: float) -> dict[str, float]:
    from pyspark.sql import functions as F

    count = int(_LINES * scale)
    table = _create(spark, folder / "lines", _KEY)
    table.bulk_insert(_landed(_lines(spark, 0, count), folder / "lines_stored"))

    def land(name: str, rows: DataFrame) -> DataFrame:
        return _landed(rows, folder / name)

    hundredth, twentieth = count // 100, count // 20
    changed = _lines(spark, 0, hundredth * 4 // 5, 125).withColumn("l_tax", F.lit(0.5))
    mixed = land("mixed", changed.unionByName(_lines(spark, count, hundredth // 5)))
    same = land("same", _lines(spark, 7, twentieth, 19).withColumn("l_tax", F.lit(0.25)))
    new = land("new", _lines(spark, 2 * count, twentieth))
    steps = [
        _timed("duckrun: mixed, 1 %", lambda: table.upsert(mixed)),
        _timed(
            "duckrun: no change, 5 %",
            lambda: table.upsert(same),
            lambda: table.upsert(same, options={"hoodie.engine.skip.unchanged": "true"}),
        ),
        _timed("duckrun: new rows only, 5 %", lambda: table.upsert(new)),
    ]
    half = _create(spark, folder / "half", _KEY)
    half.bulk_insert(_landed(_lines(spark, 0, count // 2), folder / "half_stored"))
    goes = _lines(spark, 3, count // 200, 100).withColumn("__hudi_is_deleted", F.lit(True))
    stays = (
        _lines(spark, 1, count * 3 // 200, 33)
        .withColumn("l_tax", F.lit(0.75))
        .unionByName(_lines(spark, count, count // 100))
    )
    cdc = land("cdc", goes.unionByName(stays.withColumn("__hudi_is_deleted", F.lit(False))))
    steps.append(_timed("duckrun: delete, update and insert, 6 %", lambda: half.upsert(cdc)))
    return dict(steps)


def _lines(spark: SparkSession, start: int, count: int, step: int = 1) -> DataFrame:
    """Rows like those of TPC-H's lineitem, four lines an order."""
    from pyspark.sql import functions as F

    number = F.col("id")
    day = F.date_add(F.lit("1992-01-01"), (number % 2500).cast("int"))
    return spark.range(start, start + count * step, step, 4).select(
        F.floor(number / _PER_ORDER).alias("l_orderkey"),
        (F.abs(F.hash(number)) % 200_000).cast("long").alias("l_partkey"),
        (number % 10_000).alias("l_suppkey"),
        (number % _PER_ORDER).cast("int").alias("l_linenumber"),
        (number % 50 + 1).cast("double").alias("l_quantity"),
        (F.abs(F.hash(number)) / 100).alias("l_extendedprice"),
        (number % 11 / 100).alias("l_discount"),
        (number % 9 / 100).alias("l_tax"),
        F.element_at(F.array(*map(F.lit, "NAR")), (number % 3 + 1).cast("int")).alias("l_returnflag"),
        F.element_at(F.array(*map(F.lit, "OF")), (number % 2 + 1).cast("int")).alias("l_linestatus"),
        day.alias("l_shipdate"),
        F.date_add(day, 30).alias("l_commitdate"),
        F.date_add(day, 10).alias("l_receiptdate"),
        F.lit("DELIVER IN PERSON").alias("l_shipinstruct"),
        F.element_at(F.array(*map(F.lit, ("AIR", "MAIL", "SHIP"))), (number % 3 + 1).cast("int")).alias(
            "l_shipmode"
        ),
        F.substring(F.md5(number.cast("string")), 1, 27).alias("l_comment"),
    )


def _create(spark: SparkSession, path: Path, key: list[str]) -> Any:
    from hudi_engine import HudiTable

    return HudiTable.create(spark, str(path), name=path.name, record_key=key)


def _landed(rows: DataFrame, path: Path) -> DataFrame:
    rows.repartition(4).write.parquet(str(path))
    return rows.sparkSession.read.parquet(str(path))


def _timed(name: str, *works: Callable[[], object]) -> tuple[str, float]:
    """Time the last of the works."""
    seconds = 0.0
    for work in works:
        begun = time.monotonic()
        work()
        seconds = time.monotonic() - begun
    print(f"  {name:<42}{seconds:>8.1f} s", flush=True)
    return name, seconds
