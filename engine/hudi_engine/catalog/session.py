"""What a SparkSession needs so that tables can be read by name, and how it runs the engine's own tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hudi_engine.catalog.manifest import build_in_threads
from hudi_engine.catalog.sidecar import RunSidecars, SidecarTask, build_sidecar
from hudi_engine.read.session import prepare_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRIVER_LIMIT_BYTES = 32 * 1024 * 1024
"""Logs up to this size in all are merged into sidecars on the driver, where it is quicker than a job."""


def session_conf() -> dict[str, str]:
    """Return the settings a session must have; all can be set at any time.

    Without the first, Spark 3.5 makes a plain ``CREATE TABLE AS`` a Hive text table; without the second,
    ``${...}`` in a comment or a model is replaced; the others read dates before 1900 as they were written.
    """
    return {
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.variable.substitute": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    }


def sidecar_runner(spark: SparkSession) -> RunSidecars:
    """Return how sidecars are built: on the driver while there is little to read, else on the executors."""

    def run(tasks: Sequence[SidecarTask]) -> list[int | None]:
        if sum(task.size_bytes for task in tasks) <= _DRIVER_LIMIT_BYTES:
            return build_in_threads(tasks)
        prepare_session(spark)
        return list(spark.sparkContext.parallelize(list(tasks), len(tasks)).map(build_sidecar).collect())

    return run
