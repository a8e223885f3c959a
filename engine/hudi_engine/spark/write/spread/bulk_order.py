"""How the rows of a bulk write are spread over tasks, which decides how many files there are."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import BulkSortMode
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.spark.jvm.frames import row_size_estimate, size_estimate, task_count
from hudi_engine.spark.read.collect import worker_errors_raised
from hudi_engine.spark.read.layout import sorted_frame
from hudi_engine.spark.write.rows.key_columns import rows_by_partition
from hudi_engine.spark.write.rows.source_plan import is_parquet_scan
from hudi_engine.table.handles.write_context import WriteContext

KEY_SORTS = (BulkSortMode.GLOBAL_SORT, BulkSortMode.PARTITION_SORT)
"""Values of ``hoodie.bulkinsert.sort.mode`` that need the record key."""
BY_KEY = RowLayout((RECORD_KEY,))
"""The order of those within a partition."""

UNSHUFFLED_FILE_BYTES = 8 * 1024 * 1024
"""Files at least this big are left as the tasks of the source give them, when nobody asks for a shuffle."""
MAX_PARTITIONS = 100
"""With rows of more partitions a task is not asked to write files of each."""


def bulk_layout(options: Options, config: TableConfig, schema: pa.Schema) -> RowLayout:
    """Return the order in which a bulk load writes rows of a partition: that of the sort columns, else by key if asked for.

    Args:
        options: Sort columns and sort mode of bulk loads, ``hoodie.layout.optimize.*``.

    Raises:
        ConfigError: A column is not there, or has no order.
    """
    columns = WriteOptions.BULK_INSERT_SORT_COLUMNS
    layout = RowLayout.from_options(options, columns=columns).fitted(schema, columns.key)
    by_key = options[WriteOptions.BULK_INSERT_SORT_MODE] in KEY_SORTS and config.record_key_fields
    return BY_KEY if by_key and not layout.columns else layout


def ordered_for_bulk(frame: DataFrame, context: WriteContext, source: DataFrame | None) -> DataFrame:
    """Return rows distributed and sorted as ``hoodie.bulkinsert.*`` asks.

    Args:
        source: The rows without key columns, None when they are not at hand.
    """
    options, layout = context.options, context.layout
    mode = options[WriteOptions.BULK_INSERT_SORT_MODE]
    tasks = options[WriteOptions.BULK_INSERT_PARALLELISM]
    by_columns = bool(layout.columns) and layout != BY_KEY
    if by_columns or mode is BulkSortMode.GLOBAL_SORT:
        return sorted_frame(frame, layout, tasks, first=(PARTITION_PATH,))
    if mode is BulkSortMode.PARTITION_SORT:
        dealt = frame.repartition(tasks) if tasks else frame
        return dealt.sortWithinPartitions(PARTITION_PATH, *layout.columns)
    if mode is BulkSortMode.NONE:
        left = _left_where_they_are(frame, context, source)
        if left is not None:
            return left
    shuffled = frame.repartition(tasks, PARTITION_PATH) if tasks else _rebalanced(frame)
    sorts = mode is BulkSortMode.PARTITION_PATH_REPARTITION_AND_SORT
    return shuffled.sortWithinPartitions(PARTITION_PATH) if sorts else shuffled


def _left_where_they_are(
    frame: DataFrame, context: WriteContext, source: DataFrame | None
) -> DataFrame | None:
    """Return rows whose partitions need not be brought together; unless the user chooses, the file sizes decide.

    They are known beforehand when the rows come straight from Parquet files, of which only the partition columns are read.
    """
    gathers = context.options[WriteOptions.BULK_INSERT_SHUFFLE_BY_PARTITION]
    tasks = context.options[WriteOptions.BULK_INSERT_PARALLELISM]
    if not context.config.is_partitioned or gathers is False:
        return frame.repartition(tasks) if tasks else frame
    if gathers or tasks or source is None or not is_parquet_scan(source):
        return None
    if is_parquet_scan(source, whole=True):
        readers = tasks_of(source)
        most = size_estimate(source) // readers // UNSHUFFLED_FILE_BYTES
        if not most:
            return None
        counted = _rows_by_partition(frame, context, source, most)
        return _in_full_tasks(frame, context, counted, readers) if len(counted) <= most else None
    return _of_fewer_tasks(frame, context, source)


def _rows_by_partition(
    frame: DataFrame, context: WriteContext, source: DataFrame, most: int
) -> dict[str, int]:
    """Return rows by partition path, of at most about ``most`` + 1 paths."""
    # Rows that came with their keys lie where those say.
    schema = None if PARTITION_PATH in source.columns else context.schema
    counted = rows_by_partition(frame, context.config, schema=schema, options=context.options)
    with worker_errors_raised():
        # without the column that needs keys Spark does not read them
        found = counted.drop("keyless").limit(most + 1).collect()
    return {row[PARTITION_PATH]: row["rows"] for row in found}


def _in_full_tasks(
    frame: DataFrame, context: WriteContext, counted: Mapping[str, int], readers: int
) -> DataFrame:
    """Return the rows of all of the source's files in as few tasks as use the machine and hold their rows until the end.

    Each task gives each partition a file: fewer tasks make fewer and larger ones, which scans and merges open faster. Where
    executors come and go nobody can tell how many tasks the machine needs.
    """
    spark = frame.sparkSession
    if spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return frame
    cores = spark.sparkContext.defaultParallelism
    held = sum(counted.values()) * row_size_estimate(frame)
    # The same for each core, lest one has a task more than the others.
    tasks = cores * max(1, -(-held // (cores * context.options[EngineOptions.TASK_BYTES])))
    return frame.coalesce(tasks) if tasks < readers else frame


def _of_fewer_tasks(frame: DataFrame, context: WriteContext, source: DataFrame) -> DataFrame | None:
    """Return the rows that a filter leaves in as few tasks as use the machine; None where files would be small even then."""
    counted = _rows_by_partition(frame, context, source, MAX_PARTITIONS)
    if not 0 < len(counted) <= MAX_PARTITIONS:
        return None
    size = sum(counted.values()) * min(context.file_size.row_bytes, row_size_estimate(frame))
    cores = frame.sparkSession.sparkContext.defaultParallelism
    tasks = max(cores, -(-size // context.file_size.max_bytes))
    small = UNSHUFFLED_FILE_BYTES * len(counted)
    # Planning tells how many tasks there are without being asked for fewer, and takes its time.
    return frame.coalesce(tasks) if size >= small * tasks or size >= small * tasks_of(source) else None


def tasks_of(frame: DataFrame) -> int:
    """Return how many tasks read the rows of a frame that is a scan, or kept."""
    return max(1, task_count(frame))


def _rebalanced(frame: DataFrame) -> DataFrame:
    """Return rows of a partition path together, in tasks of even size; only SQL takes a column in this hint in every PySpark."""
    name = f"hudi_rows_{uuid.uuid4().hex}"
    frame.createTempView(name)
    try:
        return frame.sparkSession.sql(f"select /*+ rebalance(`{PARTITION_PATH}`) */ * from {name}")
    finally:
        frame.sparkSession.catalog.dropTempView(name)
