"""The Spark session of the benchmarks of one table."""

from __future__ import annotations

from pyspark.sql import SparkSession


def small_session() -> SparkSession:
    """Return a quiet session with two tasks at a time and 2 GiB."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
