"""Where the file groups of a service are rewritten: by threads of this process, or by tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hudi_engine.format.parallel import Item, Result, RunTasks, run_in_threads
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.tasks import run_in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIN_BYTES = 128 * 1024 * 1024
"""Below, a local session's workers take about as long to load what they need as threads take for the work."""
_WORKER_LIMIT = "spark.executor.pyspark.memory"


def service_runner(spark: SparkSession) -> RunTasks:
    """Return how a session does the work of a service.

    A cluster's executors do all of it. In a local session threads of this process do what is little, and the session's Python
    workers, which do not wait for each other as threads of Python do, what is much; unless their memory is limited, which
    that of this process is not.
    """
    local = str(spark.sparkContext.master).startswith("local")

    def run(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        size = sum(getattr(item, "size_bytes", 0) for item in items)
        if local and (size < _MIN_BYTES or len(items) < 2 or spark.conf.get(_WORKER_LIMIT, None)):
            return run_in_threads(function, items)
        prepare_session(spark)
        return run_in_spark(spark)(function, items)

    return run
