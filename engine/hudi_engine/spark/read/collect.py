"""What Spark brings back to the driver: rows of a frame as Arrow, and the write stats that writing tasks report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_engine.errors import HudiError, StorageError
from hudi_engine.format.parallel import Failure, WorkerError, raise_worker_error, worker_errors_told
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.worker import settle_worker
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT_LIMIT = "spark.driver.maxResultSize"
"""The setting that Spark names when it stops a job whose results are too large for the driver."""
_REPORT_SCHEMA = pa.schema([("stat", pa.string()), ("failure", pa.string())])


@contextmanager
def worker_errors_raised() -> Iterator[None]:
    """Run jobs of Spark; an error of the engine that a worker met is raised instead of Spark's that carries it."""
    try:
        yield
    except Exception as error:
        raise_worker_error(error)
        raise


def to_arrow(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame as an Arrow table (one Spark job)."""
    collected: Any = frame
    with worker_errors_raised():
        batches = collected._collect_as_arrow()
    if batches:
        return pa.Table.from_batches(batches)
    return spark_to_arrow(frame.schema).empty_table()


def to_arrow_within_limit(frame: DataFrame) -> pa.Table | None:
    """Collect a DataFrame as an Arrow table; None when it is more than Spark lets through to the driver."""
    from py4j.protocol import Py4JJavaError

    try:
        return to_arrow(frame)
    except Py4JJavaError as error:
        if _RESULT_LIMIT in str(error):
            return None
        raise


def current_task(context: WriteContext) -> WriteTask:
    """Return the Spark task this code runs in, as a write task."""
    from pyspark import TaskContext

    running = TaskContext.get()
    number, stage = (0, 0) if running is None else (running.partitionId(), running.stageId())
    # Spark's own numbers of attempts begin anew in each application
    return WriteTask(context, number, stage)


def stats_batch(stats: list[WriteStat]) -> pa.RecordBatch:
    """Write stats as rows of JSON text, the form in which tasks report to the driver."""
    reports = [
        pa.array([json.dumps(asdict(stat)) for stat in stats], pa.string()),
        pa.nulls(len(stats), pa.string()),
    ]
    return pa.RecordBatch.from_arrays(reports, schema=_REPORT_SCHEMA)


def collect_stats(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> list[WriteStat]:
    """Run a writing function over a frame (one Spark job) and return what its tasks report; raises what they met."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        try:
            with worker_errors_told():
                yield from function(batches)
        except StorageError as error:
            raise WorkerError(error) from error
        except HudiError as error:
            nothing = pa.array([None], pa.string())
            failed = pa.array([Failure.of(error).to_json()], pa.string())
            yield pa.RecordBatch.from_arrays([nothing, failed], schema=_REPORT_SCHEMA)

    with worker_errors_raised():
        rows = frame.mapInArrow(run, "stat string, failure string").collect()
    for row in rows:
        if row.failure is not None:
            raise Failure.from_json(row.failure).error()
    return [WriteStat(**json.loads(row.stat)) for row in rows]
