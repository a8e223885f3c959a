"""Running one function over many items on Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from hudi_engine.format.parallel import Failure, Item, Result, RunTasks, attempt, raise_worker_error
from hudi_engine.format.worker import settle_worker


def run_in_spark(spark: SparkSession) -> RunTasks:
    """Return a runner that gives every item to a task of its own on the session's executors."""

    def run(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if not items:
            return []
        tasks: Any = spark.sparkContext.parallelize(list(items), len(items))

        def task(item: Item) -> Result | Failure:
            settle_worker()
            return attempt(function, item)

        try:
            found = tasks.map(task).collect()
        except Exception as error:
            raise_worker_error(error)
            raise
        for each in found:
            if isinstance(each, Failure):
                raise each.error()
        return list(found)

    return run
