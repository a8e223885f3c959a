"""Large groups: rows are brought in order by a shuffle of Spark, and written by its tasks as they stream by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.parallel import Item, Result, RunTasks, run_in_threads
from hudi_engine.format.schema.casting import cast_batch
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.spark.read.collect import collect_stats, current_task, run_in_spark, stats_batch
from hudi_engine.spark.read.layout import sorted_frame
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import slices_frame
from hudi_engine.table.handles.base_file_options import FileSize
from hudi_engine.table.services.clustering.write_group import (
    ClusteringContext,
    GroupTask,
    RunLarge,
    write_rolling,
)
from hudi_engine.table.state import TableState

_MIN_BYTES = 128 * 1024 * 1024
"""Below, a local session's workers take about as long to load what they need as threads take for the work."""
_WORKER_LIMIT = "spark.executor.pyspark.memory"


def run_large_in_spark(spark: SparkSession) -> RunLarge:
    """Return how a session rewrites a group that is too large for one task; one shuffle a group."""

    def run(context: ClusteringContext, task: GroupTask) -> list[WriteStat]:
        """Rewrite one group."""
        prepare_session(spark)
        write = context.write
        state = TableState.load(write.storage)
        frame = slices_frame(spark, state, write.read, task.slices)
        rows = max(1, task.size // max(1, write.average_row_bytes))
        ordered = sorted_frame(frame, context.layout, task.outputs, rows=rows)
        shared = spark.sparkContext.broadcast((context, task.partition))

        def write_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            own, partition = shared.value
            yield stats_batch(
                write_rolling(
                    own,
                    current_task(own.write),
                    partition,
                    _cast(own, batches),
                    lambda rows: _most(own, rows),
                )
            )

        try:
            return collect_stats(ordered, write_rows)
        finally:
            shared.destroy()

    return run


def _cast(context: ClusteringContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from cast_batch(pa.Table.from_batches([batch]), context.write.schema).to_batches()


def _most(context: ClusteringContext, sample: pa.Table) -> int:
    """Return the rows of a file, a quarter above the target: ranges are even, and a last file of a few rows is not worth it."""
    write = context.write
    target = write.options[ClusteringOptions.TARGET_FILE_BYTES] * 5 // 4
    return FileSize(target, None, write.average_row_bytes, write.base_files.parquet_codec).rows_per_file(
        sample
    )


def service_runner(spark: SparkSession) -> RunTasks:
    """Return how a session does the work of a service.

    A cluster's executors do all of it. In a local session threads of this process do what is little, and the session's Python
    workers, which do not wait for each other as threads of Python do, what is much; unless their memory is limited, which
    that of this process is not.
    """
    local = str(spark.sparkContext.master).startswith("local")

    def run(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        size = sum(getattr(item, "size", 0) for item in items)
        if local and (size < _MIN_BYTES or len(items) < 2 or spark.conf.get(_WORKER_LIMIT, None)):
            return run_in_threads(function, items)
        prepare_session(spark)
        return run_in_spark(spark)(function, items)

    return run
