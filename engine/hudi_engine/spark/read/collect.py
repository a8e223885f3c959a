"""What Spark brings back to the driver: rows of a frame as Arrow, and the write stats that writing tasks report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_engine.errors import HudiError, StorageError
from hudi_engine.format.parallel import (
    Failure,
    Item,
    Result,
    RunTasks,
    WorkerError,
    attempt,
    each_once,
    raise_worker_error,
    worker_errors,
)
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.worker import settle_worker
from hudi_engine.spark.jvm.errors import JAVA_ERRORS
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask

_RESULT_LIMIT = "spark.driver.maxResultSize"
"""The setting that Spark names when it stops a job whose results are too large for the driver."""
_ROW, _SIZE = "__hudi_row", "__hudi_size"
_LONG_ROWS = 64
"""Rows of more than the limit divided by this are left out, however few they are: a batch may have many tasks."""
_ROW_NUMBER = (1 << 33) - 1
"""The bits of Spark's `monotonically_increasing_id` that count the rows of a task."""
_REPORT_SCHEMA = pa.schema([(name, pa.string()) for name in ("stat", "failure", "bucket", "rows")])


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
    return _as_table(frame, _batches(frame))


def query_rows(frame: DataFrame) -> pa.Table:
    """Collect the rows of a query, whose columns may have any names and types, as those of a table may not."""
    found = _batches(frame)
    return pa.Table.from_batches(found) if found else to_arrow_schema(frame.schema).empty_table()


def _batches(frame: DataFrame) -> list[pa.RecordBatch]:
    collected: Any = frame
    with worker_errors_raised():
        return list(collected._collect_as_arrow())


def _as_table(frame: DataFrame, batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches) if batches else spark_to_arrow(frame.schema).empty_table()


@dataclass(frozen=True)
class BoundedRows:
    """Rows that are collected only where they are within a limit of bytes.

    Args:
        measured: What is collected: each row as a struct, null where it is too long, and its size; the rows themselves where
            all of them have a fixed size.
        max_rows: How many rows of ``frame`` are collected where they fit after all; None for all.
    """

    frame: DataFrame
    measured: DataFrame
    max_bytes: int
    max_rows: int | None = None

    def collect(self) -> pa.Table | None:
        """Return the rows, None where they are larger than the limit, or than Spark lets through to the driver."""
        try:
            found = _batches(self.measured)
        except JAVA_ERRORS as error:
            if _RESULT_LIMIT in str(error):
                return None
            raise
        if self.measured is self.frame:
            return _as_table(self.frame, found)
        if sum(pc.sum(each.column(_SIZE)).as_py() for each in found) > self.max_bytes:
            return None
        if any(each.column(_ROW).null_count for each in found):
            # all of them fit, such as many short rows and a long one at the end
            return to_arrow(_limited(self.frame, self.max_rows))
        return _as_table(self.frame, [pa.RecordBatch.from_struct_array(each.column(_ROW)) for each in found])


def bounded(frame: DataFrame, max_bytes: int, max_rows: int | None = None) -> BoundedRows:
    """Return rows to be collected within a limit; each task measures its rows, as its result has to fit the driver whole.

    A row is too long if it is large itself, or if the rows of its task up to it would be beyond the limit if all had its size.

    Args:
        max_bytes: Bytes of texts, binary and nested values.
        max_rows: Rows to collect; None for all.
    """
    short = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)
    texts = [
        quoted(field.name) if field.dataType == T.StringType() else f"cast({quoted(field.name)} as string)"
        for field in frame.schema.fields
        if not isinstance(field.dataType, short)
    ]
    if not texts:
        limited = _limited(frame, max_rows)
        return BoundedRows(limited, limited, max_bytes)
    # One projection, as text: each plan and each column object takes longer than the rows of a small batch.
    size = f"cast(octet_length(concat_ws('', {', '.join(texts)})) as bigint)"
    number = f"(monotonically_increasing_id() & {_ROW_NUMBER})"
    allowed = f"least({max_bytes // _LONG_ROWS}, floor({max_bytes} / ({number} + 1)))"
    row = f"struct({', '.join(quoted(name) for name in frame.columns)})"
    measured = frame.selectExpr(f"if({size} <= {allowed}, {row}, null) as {_ROW}", f"{size} as {_SIZE}")
    return BoundedRows(frame, _limited(measured, max_rows), max_bytes, max_rows)


def _limited(frame: DataFrame, max_rows: int | None) -> DataFrame:
    return frame if max_rows is None else frame.limit(max_rows)


def to_arrow_within_limit(frame: DataFrame, max_bytes: int, max_rows: int | None = None) -> pa.Table | None:
    """Collect rows as `bounded` does; None when they are beyond a limit."""
    return bounded(frame, max_bytes, max_rows).collect()


def current_task(context: WriteContext) -> WriteTask:
    """Return the Spark task this code runs in, as a write task."""
    running = TaskContext.get()
    number, stage = (0, 0) if running is None else (running.partitionId(), running.stageId())
    # Spark's own numbers of attempts start again in each application
    return WriteTask(context, number, stage)


def stats_batch(stats: list[WriteStat], bucket: str | None = None, rows: int = 0) -> pa.RecordBatch:
    """Write stats as rows of JSON text, the form in which tasks report to the driver.

    Args:
        bucket: The bucket that was written, and ``rows`` that came for it; None without buckets.
    """
    reports = [{"stat": json.dumps(asdict(stat))} for stat in stats]
    if bucket is not None:
        reports.append({"bucket": bucket, "rows": str(rows)})
    return pa.RecordBatch.from_pylist(reports, schema=_REPORT_SCHEMA)


def collect_stats(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> list[WriteStat]:
    """Run a writing function over a frame (one Spark job) and return what its tasks report; raises what they met."""
    return collect_buckets(frame, function)[0]


def collect_buckets(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> tuple[list[WriteStat], list[tuple[str, int]]]:
    """Do as `collect_stats`, and return each bucket that was reported with the rows that came for it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        try:
            with worker_errors():
                yield from function(batches)
        except StorageError as error:
            raise WorkerError(error) from error
        except HudiError as error:
            failed = [{"failure": Failure.of(error).to_json()}]
            yield pa.RecordBatch.from_pylist(failed, schema=_REPORT_SCHEMA)

    with worker_errors_raised():
        rows = frame.mapInArrow(run, ", ".join(f"{name} string" for name in _REPORT_SCHEMA.names)).collect()
    for row in rows:
        if row.failure is not None:
            raise Failure.from_json(row.failure).error()
    buckets = [(row.bucket, int(row.rows)) for row in rows if row.bucket is not None]
    return [WriteStat(**json.loads(row.stat)) for row in rows if row.stat is not None], buckets


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
        return each_once(list(found), items, "tasks")

    return run
