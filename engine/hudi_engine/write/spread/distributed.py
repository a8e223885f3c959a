"""Batches that are not small: prepared in the JVM, counted once, written by executor tasks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_engine.config.declared.engine_options import EngineOptions
from hudi_engine.config.declared.write_options import WriteOptions
from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import DataError, InvalidKeyError
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.frames.collect import to_arrow
from hudi_engine.handles.sizing import SAMPLE_ROWS
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.index.joins import combine_by_key, locate, tag_files
from hudi_engine.index.lookup.unit import BUCKET, ORDER, PartitionUnit, UnitPlan
from hudi_engine.index.new_rows import NEW_ROWS, new_row_buckets, spread_new_rows
from hudi_engine.keygen.generator import KeyGenerator, build_key_generator
from hudi_engine.keygen.partition_path import check_new_partition
from hudi_engine.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.table_state import TableState
from hudi_engine.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.txn.transaction import WriteTransaction
from hudi_engine.write.operation import Operation
from hudi_engine.write.place.profile import partition_profile
from hudi_engine.write.rows.batch import AlignedBatch
from hudi_engine.write.rows.key_columns import with_key_columns
from hudi_engine.write.rows.source_plan import is_parquet_scan
from hudi_engine.write.spread.bulk_order import KEY_SORTS, ordered_for_bulk
from hudi_engine.write.spread.executor_path import run_buckets, run_bulk
from hudi_engine.write.spread.shuffle import shuffle_by_bucket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DistributedBatch:
    """Rows with key columns, as a DataFrame.

    Args:
        frame: The rows.
        rows: Rows by partition path, None when they are not counted (bulk writes are one pass).
        schema: Data columns.
        kept: Frames cached while writing.
        generator: The table's key rules where the record key can also be made of the data columns, after a shuffle.
        source: The rows as they came, for bulk writes.
    """

    frame: DataFrame
    rows: Mapping[str, int] | None
    schema: pa.Schema
    kept: list[DataFrame] = field(default_factory=list)
    generator: KeyGenerator | None = None
    source: DataFrame | None = None

    def release(self) -> None:
        """Free every cache."""
        for frame in self.kept:
            frame.unpersist()


def prepare_distributed(
    batch: AlignedBatch,
    state: TableState,
    options: Options,
    operation: Operation,
    *,
    prepped: bool,
    reads_once: bool,
) -> DistributedBatch:
    """Add key columns; unless the write is one bulk pass, evaluate the rows once, keep them, count and check them.

    Args:
        batch: The rows.
        state: The table.
        options: Options of the write.
        operation: The operation.
        prepped: Rows carry their key columns already.
        reads_once: After counting the rows are read once only, so that a scan of files need not be kept.

    Raises:
        InvalidKeyError: Rows without a record key.
        PathEscapeError: A partition value that would leave the table.
        DataError: More partitions than one commit may touch.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    config = _key_config(state.config, batch.schema, operation)
    frame = batch.frame
    generator = None
    if not prepped:
        prefix = state.keys_carry_field_name()
        if config.record_key_fields and not operation.delete_only:
            generator = build_key_generator(config, options=options, complex_single_prefix=prefix)
        frame = with_key_columns(
            frame,
            config,
            schema=batch.schema,
            options=options,
            complex_single_prefix=prefix,
        )
    if operation.bulk and not (operation.combine_option and options[operation.combine_option]):
        return DistributedBatch(frame, None, batch.schema, generator=generator, source=batch.frame)
    if _order_matters(operation, options) and RECORD_KEY in frame.columns:
        frame = frame.withColumn(ORDER, F.monotonically_increasing_id())
    keeps = not reads_once or not is_parquet_scan(batch.frame)
    if keeps:
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        rows = _rows_by_partition(frame, options, config)
    except BaseException:
        if keeps:
            frame.unpersist()
        raise
    return DistributedBatch(frame, rows, batch.schema, [frame] if keeps else [], generator)


def _order_matters(operation: Operation, options: Options) -> bool:
    """Whether rows of the batch with the same key may be made one, of which the later stands."""
    if operation.delete_only:
        return False
    combines = operation.combine_option is not None and options[operation.combine_option]
    return operation.lookup or combines or options[WriteOptions.INSERT_DROP_DUPLICATES]


def _key_config(config: TableConfig, schema: pa.Schema, operation: Operation) -> TableConfig:
    """Return settings for the key columns; keys to delete may come without partition columns and are then looked up everywhere."""
    names = {name.lower() for name in schema.names}
    known = all(field.name.partition(".")[0].lower() in names for field in config.partition_fields)
    if known or not operation.delete_only:
        return config
    return config.with_properties(
        {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
        removals=("hoodie.table.partition.fields", "hoodie.table.keygenerator.type"),
    )


def _rows_by_partition(frame: DataFrame, options: Options, config: TableConfig) -> dict[str, int]:
    """Count the rows of each partition in one job, and refuse those that cannot be written."""
    from pyspark.sql import functions as F

    keyed = RECORD_KEY in frame.columns and config.record_key_fields
    keyless = F.count(F.when(F.col(RECORD_KEY).isNull(), 1)) if keyed else F.lit(0)
    limit = options[EngineOptions.MAX_PARTITIONS]
    counted = (
        frame.groupBy(PARTITION_PATH)
        .agg(F.count(F.lit(1)).alias("rows"), keyless.alias("keyless"))
        .coalesce(1)
        .limit(limit + 1)
        .collect()
    )
    _check_profile(counted, limit, config)
    return {row[PARTITION_PATH]: row["rows"] for row in counted}


def _check_profile(counted, limit: int, config: TableConfig) -> None:  # type: ignore[no-untyped-def]
    if len(counted) > limit:
        raise DataError(
            f"the batch touches more than hoodie.engine.max.partitions.per.commit={limit} partitions; "
            "check partition_by, or raise the limit"
        )
    keyless = sum(row["keyless"] for row in counted)
    if keyless:
        fields = ", ".join(config.record_key_fields)
        raise InvalidKeyError(
            f"{keyless} row(s) have a null or empty record key ({fields}); every row needs one. "
            "Filter them out or give them a key; nothing was written"
        )
    for row in counted:
        check_new_partition(row[PARTITION_PATH])


def write_distributed(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    batch: DistributedBatch,
    transaction: WriteTransaction,
    operation: Operation,
) -> tuple[str, list[WriteStat]]:
    """Write a distributed batch.

    Returns:
        The way taken (``bulk``, ``partitions`` or ``joined``) and the write stats.
    """
    if operation.bulk:
        return "bulk", _write_bulk(spark, context, plan, batch, transaction)
    rows = dict(batch.rows or {})
    transaction.inflight(partition_profile(context.operation, rows, units))
    frame = batch.frame
    everywhere = plan.index.is_global and (plan.lookup or plan.combine)
    if everywhere:
        frame = combine_by_key(frame, context, plan)
        if plan.lookup:
            state = TableState(context.storage, context.config, transaction.timeline)
            frame, rows = locate(spark, state, context, plan, units, frame, batch.kept)
        plan = replace(plan, combine=False)
    per_file = _rows_of_a_task(context, plan, frame, rows)
    if plan.lookup and plan.index.buckets is None and _is_wide(spark, context, units, rows, per_file):
        frame, units, buckets = tag_files(spark, context, plan, units, (frame, rows, batch.kept), per_file)
        plan = replace(plan, combine=False, packing=False)
        return "joined", run_buckets(
            spark, context, plan, units, shuffle_by_bucket(frame, buckets, _tasks(context))
        )
    keys = None if everywhere else batch.generator
    bucketed, units, buckets = _buckets(frame, keys, units, rows, per_file)
    shuffled = shuffle_by_bucket(bucketed, buckets, _tasks(context))
    return "partitions", run_buckets(spark, context, plan, units, shuffled, keys)


def _rows_of_a_task(context: WriteContext, plan: UnitPlan, frame: DataFrame, rows: Mapping[str, int]) -> int:
    """Rows of a partition that one task takes: those of a file, measured where what commits tell would cut them."""
    most = max(rows.values(), default=0)
    if plan.index.buckets is not None:
        return max(1, most)
    per_file = context.file_size.rows_per_file()
    if most <= per_file:
        return per_file
    return context.file_size.rows_per_file(to_arrow(frame.drop(ORDER).limit(SAMPLE_ROWS)))


def _buckets(
    frame: DataFrame,
    keys: KeyGenerator | None,
    units: Mapping[str, PartitionUnit],
    rows: Mapping[str, int],
    per_file: int,
) -> tuple[DataFrame, Mapping[str, PartitionUnit], list[str]]:
    """Rows with their bucket: their partition, or a part of it where its new rows fill several files.

    Small files of such a partition take rows of its first part.
    """
    from pyspark.sql import functions as F

    parts = {partition: -(-count // per_file) for partition, count in rows.items()}
    if all(count < 2 for count in parts.values()):
        bucketed = _without_keys(frame, keys).withColumnRenamed(PARTITION_PATH, BUCKET)
        return bucketed, units, sorted(rows, key=lambda each: (-rows[each], each))
    known: dict[str, PartitionUnit] = {}
    sizes: dict[str, float] = {}
    for partition, count in parts.items():
        unit = units.get(partition) or PartitionUnit(partition)
        for number, name in enumerate(new_row_buckets(partition, count)):
            known[name] = unit if number == 0 else PartitionUnit(partition, exists=unit.exists)
            sizes[name] = rows[partition] / count
    frame = frame.withColumn(BUCKET, F.concat(F.lit(NEW_ROWS), F.col(PARTITION_PATH)))
    spread = _without_keys(spread_new_rows(frame, parts), keys)
    return spread, known, sorted(sizes, key=lambda each: (-sizes[each], each))


def _without_keys(frame: DataFrame, keys: KeyGenerator | None) -> DataFrame:
    """Return rows without the record key when the task that writes them makes it: it need not go through the shuffle."""
    return frame if keys is None else frame.drop(RECORD_KEY)


def _write_bulk(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    batch: DistributedBatch,
    transaction: WriteTransaction,
) -> list[WriteStat]:
    transaction.inflight(CommitMetadata(operation_type=context.operation))
    frame, keys = batch.frame, batch.generator
    if plan.combine and RECORD_KEY in frame.columns:
        frame, keys = combine_by_key(frame, context, plan), None
    if context.options[WriteOptions.BULK_INSERT_SORT_MODE] in KEY_SORTS:
        keys = None
    return run_bulk(spark, context, ordered_for_bulk(_without_keys(frame, keys), context, batch.source), keys)


def _tasks(context: WriteContext) -> int:
    return context.options[WriteOptions.UPSERT_PARALLELISM]


def _is_wide(
    spark: SparkSession,
    context: WriteContext,
    units: Mapping[str, PartitionUnit],
    rows: Mapping[str, int],
    per_file: int,
) -> bool:
    """Whether partitions, or their shares of the batch, are too big, or too few for the machine, to be one task each."""
    if any(count > per_file and units[name].slices for name, count in rows.items() if name in units):
        return True
    touched = [units[partition] for partition in rows if partition in units]
    sizes = [sum(_size(each) for each in unit.slices) for unit in touched]
    limit = context.options[EngineOptions.WIDE_PARTITION_BYTES]
    if any(size > limit for size in sizes):
        return True
    files = sum(len(unit.slices) for unit in touched)
    cores = spark.sparkContext.defaultParallelism
    return len(rows) < cores and files > len(rows) and sum(sizes) > 64 * 1024 * 1024


def _size(file_slice: FileSlice) -> int:
    return file_slice.base_file.size if file_slice.base_file is not None else 0
