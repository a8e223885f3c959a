"""The stored rows that a batch may meet: of the files that may hold its keys, where the metadata table has an index of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.spark.read.collect import to_arrow_within_limit
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.spark.write.rows.batch import AlignedBatch, is_parquet_scan, may_be_small
from hudi_engine.spark.write.rows.key_columns import with_keys_of
from hudi_engine.table.data_skipping.predicate import PruningPredicate
from hudi_engine.table.state import TableState

_INDEXES = frozenset((MetadataPartition.RECORD_INDEX.value, MetadataPartition.COLUMN_STATS.value))
_MOST_COMPARED = 1000
"""Statistics are compared with each of so many keys, and with the smallest and the largest of more."""


def can_skip(state: TableState, rows: DataFrame, options: Options) -> bool:
    """Return whether files without a key of some rows can be skipped: the table has an index for it, and the rows may be few."""
    return not _INDEXES.isdisjoint(state.config.metadata_partitions) and may_be_small(rows, options)


def kept(rows: DataFrame) -> tuple[DataFrame, ...]:
    """Return rows to be kept when Spark first evaluates them, as their keys are read before; none where they are plain files."""
    return () if is_parquet_scan(rows) else (rows.persist(),)


def few_rows(rows: DataFrame, options: Options) -> pa.Table | None:
    """Return rows by one Spark job; None for more than a small batch has."""
    most = options[EngineOptions.SMALL_BATCH_ROWS]
    found = to_arrow_within_limit(rows, options[EngineOptions.SMALL_BATCH_BYTES], most + 1)
    return None if found is None or found.num_rows > most else found


def stored_rows(
    spark: SparkSession, state: TableState, batch: AlignedBatch, options: Options
) -> tuple[AlignedBatch, DataFrame]:
    """Return a batch, kept where its keys were read, and the rows of the table, without those of files that hold none of them."""
    if not can_skip(state, batch.frame, options):
        return batch, snapshot_frame(spark, state, options)
    batch = replace(batch, cached=(*batch.cached, *kept(batch.frame)))
    keys = few_rows(with_keys_of(state, batch.frame, batch.schema, options).select(RECORD_KEY), options)
    found = None if keys is None else pc.unique(keys.column(0)).drop_null()
    return batch, rows_of_keys(spark, state, options, found)


def rows_of_keys(
    spark: SparkSession, state: TableState, options: Options, keys: pa.Array | None
) -> DataFrame:
    """Return the rows of a table, the meta columns first, without those of files that hold none of some record keys.

    Args:
        keys: Record keys, each once; None for all rows.
    """
    if keys is None:
        return snapshot_frame(spark, state, options)
    column = pc.field(RECORD_KEY)
    if len(keys) <= _MOST_COMPARED:
        filters = column.isin(keys)
    else:
        filters = (column >= pc.min(keys)) & (column <= pc.max(keys))
    return snapshot_frame(spark, state, options, predicate=PruningPredicate(filters, keys))
