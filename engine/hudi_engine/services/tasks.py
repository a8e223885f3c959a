"""How the work of a service is spread: one call a file group, in threads or on Spark's executors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")


class RunTasks(Protocol):
    """Calls a function once for every item and returns the results in the order of the items.

    The function and the items can be pickled. The first error is raised; nothing is returned then.
    """

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run all of them."""


def run_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Run in threads of this process, as many as there are processors."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(max_workers=min(len(items), os.cpu_count() or 1)) as pool:
        return list(pool.map(function, items))


def run_in_spark(spark: SparkSession) -> RunTasks:
    """Return a runner that gives every item to a task of its own on the session's executors."""

    def run(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if not items:
            return []
        numbered: Any = spark.sparkContext.parallelize(list(enumerate(items)), len(items))
        results = numbered.map(lambda entry: (entry[0], function(entry[1]))).collect()
        return [result for _, result in sorted(results, key=lambda entry: int(entry[0]))]

    return run
