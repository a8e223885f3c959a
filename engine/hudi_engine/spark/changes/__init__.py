"""Changes of a table as DataFrames and as a source of Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.storage.given import StoreAccess


def register_change_source(spark: SparkSession) -> None:
    """Make ``spark.read`` and ``spark.readStream`` know the format ``hudi_changes``.

    It keeps what `use_settings` and URIs have set for stores by then; register it again after a change.

    Raises:
        UnsupportedTableError: Spark is older than 4, which knows no sources of Python.
    """
    try:
        from hudi_engine.spark.changes.spark_source import source_that_knows
    except ImportError as error:
        raise UnsupportedTableError(
            f"the format hudi_changes needs Spark 4, this is {spark.version}; use table.changes(start, end), in a loop with "
            "table.next_window(start)"
        ) from error
    spark.dataSource.register(source_that_knows(StoreAccess()))
