"""How the rows of a bulk write are spread over tasks, which decides how many files there are."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_engine.config.declared.write_options import WriteOptions
from hudi_engine.config.enums import BulkSortMode
from hudi_engine.config.options import Options
from hudi_engine.frames.layout import sorted_frame
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.layout.layout import RowLayout
from hudi_engine.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.write.rows.source_plan import estimated_bytes, is_parquet_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY_SORTS = (BulkSortMode.GLOBAL_SORT, BulkSortMode.PARTITION_SORT)
"""Values of ``hoodie.bulkinsert.sort.mode`` that need the record key."""

UNSHUFFLED_FILE_BYTES = 8 * 1024 * 1024
"""Files at least this big are left as the tasks of the source give them, when nobody asks for a shuffle."""


def bulk_layout(options: Options, schema: pa.Schema) -> RowLayout:
    """Return the order in which a bulk load writes rows, none when no sort columns are given.

    Args:
        options: Sort columns of bulk loads, ``hoodie.layout.optimize.*``.
        schema: Columns of the table.

    Raises:
        ConfigError: A column is not there, or has no order.
    """
    columns = WriteOptions.BULK_INSERT_SORT_COLUMNS
    return RowLayout.from_options(options, columns=columns).fitted(schema, columns.key)


def ordered_for_bulk(frame: DataFrame, context: WriteContext, source: DataFrame | None) -> DataFrame:
    """Return rows distributed and sorted as ``hoodie.bulkinsert.*`` asks.

    Args:
        frame: Rows with key columns.
        context: The write.
        source: The rows without key columns, None when they are not at hand.
    """
    from pyspark.sql import functions as F

    options = context.options
    mode = options[WriteOptions.BULK_INSERT_SORT_MODE]
    tasks = options[WriteOptions.BULK_INSERT_PARALLELISM]
    if context.layout.columns:
        return sorted_frame(frame, context.layout, tasks, first=(PARTITION_PATH,))
    order = [F.col(PARTITION_PATH), *([F.col(RECORD_KEY)] if RECORD_KEY in frame.columns else [])]
    if mode is BulkSortMode.GLOBAL_SORT:
        return frame.sort(*order)
    if mode is BulkSortMode.PARTITION_SORT:
        return frame.sortWithinPartitions(*order)
    if mode is not BulkSortMode.NONE or (
        context.config.is_partitioned and _gathers_partitions(frame, context, source)
    ):
        shuffled = frame.repartition(tasks, PARTITION_PATH) if tasks else _rebalanced(frame)
        sorts = mode is BulkSortMode.PARTITION_PATH_REPARTITION_AND_SORT
        return shuffled.sortWithinPartitions(PARTITION_PATH) if sorts else shuffled
    return frame.repartition(tasks) if tasks else frame


def _gathers_partitions(frame: DataFrame, context: WriteContext, source: DataFrame | None) -> bool:
    """Tell whether the rows of a partition are brought together; without a word from the user the file sizes decide.

    They are known when the rows are all those of some Parquet files: then a look at the partition columns alone is cheap.
    """
    gathers = context.options[WriteOptions.BULK_INSERT_SHUFFLE_BY_PARTITION]
    if gathers is not None:
        return gathers
    if context.options[WriteOptions.BULK_INSERT_PARALLELISM]:
        return True
    if source is None or not is_parquet_scan(source, whole=True):
        return True
    plan: Any = source._jdf.queryExecution()
    tasks = int(plan.toRdd().getNumPartitions())
    share = estimated_bytes(source) // max(1, tasks)
    most = share // UNSHUFFLED_FILE_BYTES
    if most == 0:
        return True
    return len(frame.select(PARTITION_PATH).distinct().limit(most + 1).collect()) > most


def _rebalanced(frame: DataFrame) -> DataFrame:
    """Return rows of a partition path together, in tasks of even size; only SQL takes a column in this hint in every PySpark."""
    name = f"hudi_rows_{uuid.uuid4().hex}"
    frame.createTempView(name)
    try:
        return frame.sparkSession.sql(f"select /*+ rebalance(`{PARTITION_PATH}`) */ * from {name}")
    finally:
        frame.sparkSession.catalog.dropTempView(name)
