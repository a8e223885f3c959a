"""What a SparkSession needs so that tables can be read by name, and how it runs the engine's own tasks."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pyspark.sql import SparkSession

from hudi_engine.spark.jvm.session import cloned
from hudi_engine.spark.read.collect import run_in_spark
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.table.snapshot.derive import DeriveTask, RunTasks, make_in_threads, run_task

_DRIVER_LIMIT_BYTES = 32 * 1024 * 1024
"""Up to this size in all files are derived on the driver, where it is quicker than a job."""
_copying = threading.Lock()


def session_conf() -> dict[str, str]:
    """Return the settings a session must have; all can be set at any time.

    Without the first, Spark 3.5 makes a plain ``CREATE TABLE AS`` a Hive text table; without the second,
    ``${...}`` in a comment or a model is replaced; two read dates before 1900 as they were written, and the last reads times
    in nanoseconds, as pandas writes them, of which a source shows microseconds.
    """
    return {
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.variable.substitute": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
    }


def sidecar_runner(spark: SparkSession) -> RunTasks:
    """Return how sidecars are made: on the driver while there is little to read, else on the executors."""

    def run(tasks: Sequence[DeriveTask]) -> list[int | None]:
        if sum(task.size_bytes for task in tasks) <= _DRIVER_LIMIT_BYTES:
            return make_in_threads(tasks)
        prepare_session(spark)
        return run_in_spark(spark)(run_task, tasks)

    return run


def apart(spark: SparkSession) -> SparkSession:
    """Return a copy of a session: it begins with the same settings and schema, and shares the catalog's tables and views.

    For work that changes settings or the current schema meanwhile, which threads that share the session would see. Neither Spark
    nor PySpark takes the copy for the session of anybody else.
    """
    with _copying:
        return cloned(spark)
