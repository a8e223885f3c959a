"""What can be known of a batch before it is read: Spark's plan of it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from hudi_engine.spark.jvm.frames import optimized_plan, row_size_estimate, size_estimate


def is_parquet_scan(frame: DataFrame, *, whole: bool = False) -> bool:
    """Tell whether the rows come straight from Parquet files, by columns and filters that nothing but the time may change.

    Such rows are cheaper to read twice than to keep, and only the columns needed are read. Anything else (joins,
    aggregates, Python functions, text formats, databases) is evaluated once and kept.

    Args:
        whole: Whether filters do not count, which may leave few of the files' rows.
    """
    plan = optimized_plan(frame)
    if not plan.deterministic():
        return False
    passed = ("Project",) if whole else ("Project", "Filter")
    while class_name(plan) in passed:
        plan = plan.children().head()
    if class_name(plan) != "LogicalRelation" or class_name(plan.relation()) != "HadoopFsRelation":
        return False
    return class_name(plan.relation().fileFormat()) == "ParquetFileFormat"


def estimated_rows(frame: DataFrame) -> int:
    """Return rows of a Parquet scan, from the bytes of its files and the usual width of its columns in memory.

    Files are smaller than rows in memory, so it is rather too low.
    """
    return size_estimate(frame) // row_size_estimate(frame)


def class_name(thing: Any) -> str:
    """Return the name of an object's class in Java, without its package."""
    return str(thing.getClass().getSimpleName())
