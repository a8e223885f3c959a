"""Batches that are not small: prepared in the JVM, counted once, written by executor tasks."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import InvalidKeyError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import KeyGenerator, build_key_generator
from hudi_engine.format.keygen.partition_path import check_new_partition
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.spark.jvm.frames import depends_on_time
from hudi_engine.spark.lookup.joins import combine_by_key, locate, tag_files
from hudi_engine.spark.read.collect import worker_errors_raised
from hudi_engine.spark.write.rows.batch import AlignedBatch
from hudi_engine.spark.write.rows.key_columns import rows_by_partition, with_key_columns
from hudi_engine.spark.write.rows.source_plan import is_parquet_scan
from hudi_engine.spark.write.spread.bulk_order import BY_KEY, KEY_SORTS, ordered_for_bulk, tasks_of
from hudi_engine.spark.write.spread.executor_path import check_partition_count, run_buckets, run_bulk
from hudi_engine.spark.write.spread.parts import (
    is_wide,
    parts_by_bucket,
    parts_by_rows,
    places_of_new,
    rows_of_a_file,
    without_keys,
)
from hudi_engine.spark.write.spread.shuffle import shuffle_by_bucket
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.unit import ORDER, PartitionUnit, UnitPlan
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.operation import Operation
from hudi_engine.table.write.place.profile import partition_profile

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DistributedBatch:
    """Rows with key columns, as a DataFrame.

    Args:
        rows: Rows by partition path, None when they are not counted (bulk writes are one pass).
        kept: What frees all that is cached while writing.
        generator: The table's key rules where the record key can also be made of the data columns, after a shuffle.
        source: The rows as they came, for bulk writes.
    """

    frame: DataFrame
    rows: Mapping[str, int] | None
    schema: pa.Schema
    kept: list[Callable[[], object]] = field(default_factory=list)
    generator: KeyGenerator | None = None
    source: DataFrame | None = None

    def release(self) -> None:
        """Free every cache."""
        while self.kept:
            self.kept.pop()()


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
        reads_once: After counting the rows are read once only, so that a scan of files need not be kept.

    Raises:
        InvalidKeyError: Rows without a record key.
        PathEscapeError: A partition value that would leave the table.
        DataError: More partitions than one commit may touch.
    """
    config = _key_config(state.config, batch.schema, operation)
    frame = batch.frame
    generator = None
    one_pass = operation.bulk and not (operation.combine_option and options[operation.combine_option])
    if not prepped:
        prefix = state.keys_carry_field_name()
        by_key = operation.bulk and options[WriteOptions.BULK_INSERT_SORT_MODE] in KEY_SORTS
        if config.record_key_fields and not operation.delete_only and not by_key:
            generator = build_key_generator(config, options=options, complex_single_prefix=prefix)
        frame = with_key_columns(
            frame,
            config,
            schema=batch.schema,
            options=options,
            complex_single_prefix=prefix,
            keyed=not one_pass or generator is None,
        )
    if one_pass:
        return DistributedBatch(frame, None, batch.schema, generator=generator, source=batch.frame)
    if _order_matters(operation, options) and RECORD_KEY in frame.columns:
        frame = frame.withColumn(ORDER, F.monotonically_increasing_id())
    keeps = not reads_once or not is_parquet_scan(batch.frame) or depends_on_time(_places_of(frame))
    if keeps:
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        rows = _rows_by_partition(frame, None if prepped else batch.schema, options, config)
    except BaseException:
        if keeps:
            frame.unpersist()
        raise
    return DistributedBatch(frame, rows, batch.schema, [frame.unpersist] if keeps else [], generator)


def _places_of(frame: DataFrame) -> DataFrame:
    """Return of each row its key and partition: what is counted and looked up has to be what is written."""
    return frame.select(*[name for name in (RECORD_KEY, PARTITION_PATH) if name in frame.columns])


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


def _rows_by_partition(
    frame: DataFrame, schema: pa.Schema | None, options: Options, config: TableConfig
) -> dict[str, int]:
    """Count the rows of each partition, and refuse those that cannot be written.

    Args:
        schema: Columns that the key columns were made of; None for rows that came with them.
    """
    limit = options[EngineOptions.MAX_PARTITIONS]

    def count(schema: pa.Schema | None) -> list[Row]:
        counts = rows_by_partition(frame, config, schema=schema, options=options)
        with worker_errors_raised():
            return counts.coalesce(1).limit(limit + 1).collect()

    counted = count(schema)
    if len(counted) > limit and schema is not None:
        counted = count(None)  # there may have been several of one path
    _check_profile(counted, options, config)
    found: Counter[str] = Counter()
    for row in counted:
        found[row[PARTITION_PATH]] += row["rows"]
    return dict(found)


def _check_profile(counted: list[Row], options: Options, config: TableConfig) -> None:
    check_partition_count(counted, options)
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
    keys = None if everywhere else batch.generator
    if plan.index.buckets is not None:
        bucketed, units, buckets = parts_by_bucket(spark, context, plan, frame, keys, units, rows)
        shuffled = shuffle_by_bucket(bucketed, buckets, _tasks(context))
        return "partitions", run_buckets(spark, context, plan, units, shuffled, keys)
    per_file = rows_of_a_file(context, frame, rows)
    if plan.lookup and is_wide(spark, context, units, rows, per_file):
        places = partial(places_of_new, context, plan, per_file)
        frame, units, buckets = tag_files(spark, context, plan, units, (frame, rows, batch.kept), places)
        return "joined", run_buckets(
            spark, context, plan, units, shuffle_by_bucket(frame, buckets, _tasks(context))
        )
    if not (plan.lookup or plan.combine) and len(rows) == 1:
        [(name, count)] = rows.items()
        small, files = places_of_new(context, plan, per_file, units.get(name) or PartitionUnit(name), count)
        if not small and 1 < files and min(files, spark.sparkContext.defaultParallelism) <= tasks_of(frame):
            return "bulk", run_bulk(spark, context, without_keys(frame, keys).coalesce(files), keys)
    bucketed, units, buckets = parts_by_rows(frame, keys, units, rows, per_file)
    shuffled = shuffle_by_bucket(bucketed, buckets, _tasks(context))
    return "partitions", run_buckets(spark, context, plan, units, shuffled, keys)


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
    if batch.rows is not None:
        frame = without_keys(frame, keys)
    ordered = ordered_for_bulk(frame, context, batch.source)
    if context.layout == BY_KEY:
        context = replace(context, layout=RowLayout())  # tasks get them in that order
    return run_bulk(spark, context, ordered, keys)


def _tasks(context: WriteContext) -> int:
    return context.options[WriteOptions.UPSERT_PARALLELISM]
