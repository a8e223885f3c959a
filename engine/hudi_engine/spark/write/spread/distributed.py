"""Batches that are not small: prepared in the JVM, counted once, written by executor tasks."""

from __future__ import annotations

import json
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from hudi_engine.errors import HudiError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import BulkSortMode
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.buckets import bucket_ids, bucket_of_file
from hudi_engine.format.keygen.generator import KeyGenerator, build_key_generator, refuse_keyless
from hudi_engine.format.keygen.partition_path import check_new_partition
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.parallel import WorkerError
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.spark.jvm.frames import depends_on_time, row_size_estimate, size_estimate, task_count
from hudi_engine.spark.lookup.joins import (
    NEW_ROWS,
    combine_by_key,
    locate,
    new_row_buckets,
    spread_new_rows,
    tag_files,
)
from hudi_engine.spark.read.collect import to_arrow_within_limit, worker_errors_raised
from hudi_engine.spark.read.layout import sorted_frame
from hudi_engine.spark.write.rows.batch import AlignedBatch, is_parquet_scan
from hudi_engine.spark.write.rows.key_columns import rows_by_partition, with_key_columns
from hudi_engine.spark.write.spread.executor_path import (
    most_tasks,
    run_buckets,
    run_bulk,
)
from hudi_engine.table.handles.base_file_options import SAMPLE_ROWS
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.unit import BUCKET, ORDER, PartitionUnit, UnitPlan
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.planned import PlannedTransaction
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.bulk_layout import BY_KEY, KEY_SORTS
from hudi_engine.table.write.operation import Operation
from hudi_engine.table.write.place.partitions import check_partition_count, partition_profile
from hudi_engine.table.write.place.shares import shares_of_new

if TYPE_CHECKING:
    import pandas


logger = logging.getLogger(__name__)


SEVERAL_TASKS_BYTES = 64 * 1024 * 1024
"""Base files that are worth several tasks where partitions are too few for the machine."""
SAMPLE_BYTES = 16 * 1024 * 1024
"""Rows that come to the driver to be measured are no more than make a file of this size, by the row size of commits."""
_SAMPLE_LIMIT = 4 * SAMPLE_BYTES
"""Longer rows are not brought to the driver."""


MAX_EVEN_BUCKETS = 512


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
    """Whether rows of the batch with the same key may be made one, of which the later wins."""
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
    """Count the rows of each partition, and refuse those that cannot be written."""
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
    refuse_keyless(sum(row["keyless"] for row in counted), config)
    for row in counted:
        check_new_partition(row[PARTITION_PATH])


def write_distributed(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    batch: DistributedBatch,
    transaction: WriteTransaction | PlannedTransaction,
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
    # rows that were merged by key since are not counted again
    counted = None if everywhere and not plan.lookup else sum(rows.values())
    if plan.index.buckets is not None:
        bucketed, units, buckets = parts_by_bucket(spark, context, plan, frame, keys, units, rows)
        shuffled = shuffle_by_bucket(bucketed, buckets, most_tasks(context))
        return "partitions", run_buckets(spark, context, plan, units, shuffled, keys, rows=counted)
    per_file = rows_of_a_file(context, frame, rows)
    if plan.lookup and is_wide(spark, context, units, rows, per_file):
        places = partial(places_of_new, context, plan, per_file)
        tagged = tag_files(spark, context, plan, units, (frame, rows, batch.kept), places)
        shuffled = shuffle_by_bucket(tagged.rows, tagged.buckets, most_tasks(context))
        return "joined", run_buckets(spark, context, plan, tagged.units, shuffled, rows=tagged.count)
    if not (plan.lookup or plan.combine) and len(rows) == 1:
        [(name, count)] = rows.items()
        small, files = places_of_new(context, plan, per_file, units.get(name) or PartitionUnit(name), count)
        if not small and 1 < files and min(files, spark.sparkContext.defaultParallelism) <= tasks_of(frame):
            tasks = min(files, most_tasks(context) or files)
            return "bulk", run_bulk(spark, context, without_keys(frame, keys).coalesce(tasks), keys)
    bucketed, units, buckets = parts_by_rows(frame, keys, units, rows, per_file)
    shuffled = shuffle_by_bucket(bucketed, buckets, most_tasks(context))
    return "partitions", run_buckets(spark, context, plan, units, shuffled, keys, rows=counted)


def _write_bulk(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    batch: DistributedBatch,
    transaction: WriteTransaction | PlannedTransaction,
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


def rows_of_a_file(context: WriteContext, frame: DataFrame, rows: Mapping[str, int]) -> int:
    """Return the rows of a new file, measured where by the row size of commits a partition needs several files."""
    per_file = context.file_size.rows_per_file()
    if max(rows.values(), default=0) <= per_file:
        return per_file
    most = min(SAMPLE_ROWS, max(1, SAMPLE_BYTES // context.file_size.row_bytes))
    return context.file_size.rows_per_file(to_arrow_within_limit(frame.drop(ORDER), _SAMPLE_LIMIT, most))


def is_wide(
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
    sizes = [_base_bytes(unit.slices) for unit in touched]
    limit = context.options[EngineOptions.WIDE_PARTITION_BYTES]
    if any(size > limit for size in sizes):
        return True
    files = sum(len(unit.slices) for unit in touched)
    cores = spark.sparkContext.defaultParallelism
    return len(rows) < cores and files > len(rows) and sum(sizes) > SEVERAL_TASKS_BYTES


def parts_by_rows(
    frame: DataFrame,
    keys: KeyGenerator | None,
    units: Mapping[str, PartitionUnit],
    rows: Mapping[str, int],
    per_file: int,
) -> tuple[DataFrame, Mapping[str, PartitionUnit], list[str]]:
    """Give rows their bucket: their partition, or a part of it where its new rows fill several files.

    Small files of such a partition take rows of its first part.

    Returns:
        The rows, what is known of each bucket, and the buckets, largest first.
    """
    parts = {partition: -(-count // per_file) for partition, count in rows.items()}

    def slices_of(unit: PartitionUnit, number: int, _: int) -> PartitionUnit:
        return unit if number == 0 else PartitionUnit(unit.partition, exists=unit.exists)

    known, buckets = _known_parts(units, rows, parts, slices_of)
    spread = {name: new_row_buckets(name, count) for name, count in parts.items()}
    return _divided(frame, keys, spread), known or units, buckets


def parts_by_bucket(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    frame: DataFrame,
    keys: KeyGenerator | None,
    units: Mapping[str, PartitionUnit],
    rows: Mapping[str, int],
) -> tuple[DataFrame, Mapping[str, PartitionUnit], list[str]]:
    """Do as `parts_by_rows` for a table with a bucket index, where a part holds whole buckets of the index."""
    count = plan.index.buckets or 1
    per_file = rows_of_a_file(context, frame, rows)
    limit = context.options[EngineOptions.WIDE_PARTITION_BYTES]
    if len(rows) < spark.sparkContext.defaultParallelism:
        limit = min(limit, SEVERAL_TASKS_BYTES)
    stored = {name: 0 if plan.replaces else _bytes(unit.slices) for name, unit in units.items()}
    parts = {
        name: min(count, max(-(-number // per_file), -(-stored.get(name, 0) // limit)))
        for name, number in rows.items()
    }

    def slices_of(unit: PartitionUnit, number: int, several: int) -> PartitionUnit:
        held = [(bucket_of_file(each.file_id, count), each) for each in unit.slices]
        # File groups of no bucket are for every part to refuse.
        own = [each for bucket, each in held if bucket < 0 or bucket % several == number]
        return replace(unit, slices=tuple(own))

    known, buckets = _known_parts(units, rows, parts, slices_of)
    number = _bucket_number(context.config, context.options, plan.index)(F.col(RECORD_KEY))
    spread = {name: new_row_buckets(name, count) for name, count in parts.items()}
    return _divided(frame, keys, spread, number), known or units, buckets


def places_of_new(
    context: WriteContext, plan: UnitPlan, per_file: int, unit: PartitionUnit, count: int
) -> tuple[list[tuple[str, int]], int]:
    """Return the small files of a partition that take new rows, with how many, and how many new files take the others."""
    shares = shares_of_new(context, plan, unit, count)
    small = [(share.file_slice.file_id, share.rows) for share in shares if share.file_slice is not None]
    rest = sum(share.rows for share in shares if share.file_slice is None)
    return small, -(-rest // per_file)


def _known_parts(
    units: Mapping[str, PartitionUnit],
    rows: Mapping[str, int],
    parts: Mapping[str, int],
    part_of: Callable[[PartitionUnit, int, int], PartitionUnit],
) -> tuple[dict[str, PartitionUnit], list[str]]:
    """Return what is known of each part, nothing where a bucket is a partition, and the buckets, largest first."""
    if all(count < 2 for count in parts.values()):
        return {}, sorted(rows, key=lambda each: (-rows[each], each))
    known: dict[str, PartitionUnit] = {}
    sizes: dict[str, float] = {}
    for partition, count in parts.items():
        unit = units.get(partition) or PartitionUnit(partition)
        for number, name in enumerate(new_row_buckets(partition, count)):
            known[name] = part_of(unit, number, count)
            sizes[name] = rows[partition] / count
    return known, sorted(sizes, key=lambda each: (-sizes[each], each))


def _divided(
    frame: DataFrame,
    keys: KeyGenerator | None,
    parts: Mapping[str, Sequence[str]],
    number: Column | None = None,
) -> DataFrame:
    """Return rows with their bucket, without the record key when the task that writes them makes it: it need not be shuffled."""
    if all(len(each) < 2 for each in parts.values()):
        return without_keys(frame, keys).withColumnRenamed(PARTITION_PATH, BUCKET)
    frame = frame.withColumn(BUCKET, F.concat(F.lit(NEW_ROWS), F.col(PARTITION_PATH)))
    return without_keys(spread_new_rows(frame, parts, number), keys)


def without_keys(frame: DataFrame, keys: KeyGenerator | None) -> DataFrame:
    """Return rows without the record key when the task that writes them makes it."""
    return frame if keys is None else frame.drop(RECORD_KEY)


def _bucket_number(config: TableConfig, options: Options, index: IndexKind) -> Any:
    """Return Spark's function from a record key to the number of its bucket; only the key goes to Python for it."""
    import pandas

    def number(keys: pandas.Series) -> pandas.Series:
        try:
            rows = pa.table({RECORD_KEY: pa.array(keys, pa.string())})
            return bucket_ids(rows, config, index.buckets or 1, options, index.form).to_pandas()
        except HudiError as error:
            raise WorkerError(error) from error

    number.__annotations__.update({"keys": pandas.Series, "return": pandas.Series})
    as_function: Any = pandas_udf
    return as_function(number, "int")


def _base_bytes(slices: Iterable[FileSlice]) -> int:
    return sum(each.base_file.size for each in slices if each.base_file is not None)


def _bytes(slices: Iterable[FileSlice]) -> int:
    return sum(each.size for each in slices)


def shuffle_by_bucket(frame: DataFrame, buckets: Sequence[str], tasks: int) -> DataFrame:
    """Shuffle so that each bucket is in one task; few buckets get a task each instead of colliding by hash.

    Those of several buckets get them one after the other: Spark's sort spills, while a task holds the rows of a bucket.

    Args:
        frame: Rows with column ``__hudi_bucket``.
        buckets: Largest first.
        tasks: Most tasks; 0 gives each bucket one, and leaves it to the session's setting when there are many buckets.
    """
    if not buckets:
        return frame
    if len(buckets) > MAX_EVEN_BUCKETS:
        wanted = tasks or int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
        return frame.repartition(wanted, BUCKET).sortWithinPartitions(BUCKET)
    count = min(len(buckets), tasks or len(buckets))
    own = _slots(count)
    # One literal: a call of Java for each bucket would take a second where they are many.
    slots = json.dumps({bucket: own[number % count] for number, bucket in enumerate(buckets)})
    slot = F.from_json(F.lit(slots), "map<string,int>")[F.col(BUCKET)]
    placed = frame.withColumn("__hudi_slot", slot).repartition(count, "__hudi_slot").drop("__hudi_slot")
    return placed if count == len(buckets) else placed.sortWithinPartitions(BUCKET)


def _slots(count: int) -> list[int]:
    """Return integers that Spark's hash partitioning sends to the tasks 0, 1, ... count - 1."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(_spark_hash(candidate) % count, candidate)
        candidate += 1
    return [found[task] for task in range(count)]


def _spark_hash(value: int, seed: int = 42) -> int:
    """Return Spark's hash of one int (Murmur3, 32 bit), signed."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = (seed ^ k) & mask
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & mask
    h ^= h >> 13
    h = h * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


UNSHUFFLED_FILE_BYTES = 8 * 1024 * 1024
"""Files at least this big are left as the tasks of the source give them, unless an option requires a shuffle."""
COUNTED_BYTES = 128 * 1024 * 1024
"""Bytes of a filtered source for each core, below which counting the rows that are left takes longer than shuffling them."""
MAX_PARTITIONS = 100
"""With rows of more partitions a task does not write files of each."""


def ordered_for_bulk(frame: DataFrame, context: WriteContext, source: DataFrame | None) -> DataFrame:
    """Return rows distributed and sorted by ``hoodie.bulkinsert.*``.

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
    """Return rows whose partitions need not be brought together; unless the user chooses, the file sizes decide."""
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
        counted = _rows_of_few_partitions(frame, context, source, most)
        return _in_full_tasks(frame, context, counted, readers) if len(counted) <= most else None
    return _of_fewer_tasks(frame, context, source)


def _rows_of_few_partitions(
    frame: DataFrame, context: WriteContext, source: DataFrame, most: int
) -> dict[str, int]:
    """Return rows by partition path, of at most about ``most`` + 1 paths."""
    # Rows that came with their keys lie where their keys are.
    schema = None if PARTITION_PATH in source.columns else context.schema
    counted = rows_by_partition(frame, context.config, schema=schema, options=context.options)
    with worker_errors_raised():
        # without the column that needs keys Spark does not read them
        found = counted.drop("keyless").limit(most + 1).collect()
    return {row[PARTITION_PATH]: row["rows"] for row in found}


def _in_full_tasks(
    frame: DataFrame, context: WriteContext, counted: Mapping[str, int], readers: int
) -> DataFrame:
    """Return the rows of all of the source's files in as few tasks as use the machine and hold their rows until the end."""
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
    cores = frame.sparkSession.sparkContext.defaultParallelism
    if size_estimate(source) < COUNTED_BYTES * cores:
        return None
    counted = _rows_of_few_partitions(frame, context, source, MAX_PARTITIONS)
    if not 0 < len(counted) <= MAX_PARTITIONS:
        return None
    size = sum(counted.values()) * min(context.file_size.row_bytes, row_size_estimate(frame))
    tasks = max(cores, -(-size // context.file_size.max_bytes))
    small = UNSHUFFLED_FILE_BYTES * len(counted)
    # Planning gives the number of tasks of the source, and takes its time.
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
