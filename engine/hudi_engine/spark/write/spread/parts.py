"""How the rows of partitions are divided over tasks, by what bounds a file and by the bytes a task rewrites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from hudi_engine.errors import HudiError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.buckets import bucket_ids, bucket_of_file
from hudi_engine.format.keygen.generator import KeyGenerator
from hudi_engine.format.parallel import WorkerError
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.spark.lookup.new_rows import NEW_ROWS, new_row_buckets, spread_new_rows
from hudi_engine.spark.read.collect import to_arrow_within_limit
from hudi_engine.table.handles.sizing import SAMPLE_ROWS
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.unit import BUCKET, ORDER, PartitionUnit, UnitPlan
from hudi_engine.table.write.place.packing import shares_of_new

if TYPE_CHECKING:
    import pandas

SEVERAL_TASKS_BYTES = 64 * 1024 * 1024
"""Base files that are worth several tasks where partitions are too few for the machine."""
SAMPLE_BYTES = 16 * 1024 * 1024
"""Rows that come to the driver to be measured are no more than make a file of this size, as far as commits tell."""
_SAMPLE_LIMIT = 4 * SAMPLE_BYTES
"""Longer rows than commits tell are not brought to the driver."""


def rows_of_a_file(context: WriteContext, frame: DataFrame, rows: Mapping[str, int]) -> int:
    """Return the rows of a new file, measured where what commits tell would cut a partition's rows, and they fit the driver."""
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

    Args:
        keys: Key rules where the task that writes the rows makes their record key.

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
