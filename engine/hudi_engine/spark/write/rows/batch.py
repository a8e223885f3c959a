"""The incoming rows: aligned to the table's schema, and fetched to the driver when they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hudi_engine.errors import SchemaError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.enums import SchemaChange
from hudi_engine.format.config.options import Options
from hudi_engine.format.schema.any_case import refuse_same_names, spellings
from hudi_engine.format.schema.casting import cast_batch
from hudi_engine.format.schema.meta_fields import (
    DELETES,
    META_FIELDS,
    OPERATION,
    PARTITION_PATH,
    RECORD_KEY,
)
from hudi_engine.format.schema.sql_names import quoted, spark_name
from hudi_engine.spark.jvm.frames import optimized_plan, row_size_estimate, size_estimate
from hudi_engine.spark.read.collect import bounded
from hudi_engine.spark.read.small_plans import interpreted, is_small
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.write.rows.casts import exact_marks, fit_frame
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.state import TableState
from hudi_engine.table.write.fit import FitPolicy, fit_batch, refuse_other_marks
from hudi_engine.table.write.keys import keys_to_look_up, text_may_differ

UNKNOWN_SIZE = 1 << 60


@dataclass(frozen=True)
class AlignedBatch:
    """Incoming rows with the table's columns.

    Args:
        frame: The rows; columns are those of ``schema`` in order, then ``carried`` meta columns.
    """

    frame: DataFrame
    schema: pa.Schema
    carried: tuple[str, ...] = ()
    cached: tuple[DataFrame, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """The column that marks deletes and is not stored, if the rows have it."""
        return tuple(name for name in self.carried if name == DELETES)

    def release(self) -> None:
        """Free every cache."""
        for frame in self.cached:
            frame.unpersist()


def align(
    frame: DataFrame,
    table_schema: pa.Schema | None,
    policy: FitPolicy,
    *,
    carry: Sequence[str] = (),
) -> AlignedBatch:
    """Bring a DataFrame to the table's columns; meta columns it carries along are dropped, the mark of deletes follows.

    Both marks of deletes are found in whatever case they come, and get the name that Hudi looks for.

    Args:
        table_schema: Data columns of the table so far, None for a table without a schema.
    """
    frame = exact_marks(frame, table_schema)
    own = [field for field in frame.schema.fields if field.name not in (*META_FIELDS, OPERATION)]
    refuse_same_names(field.name for field in own)
    fields = [field for field in own if field.name != DELETES]
    names = [field.name for field in fields]
    schema = fit_batch(spark_to_arrow(StructType(fields)), table_schema, policy)
    kept = tuple(name for name in (*carry, DELETES) if name in frame.columns)
    if DELETES in kept:
        refuse_other_marks(frame.schema[DELETES].dataType.simpleString())
    return AlignedBatch(fit_frame(frame, names, schema, kept), schema, kept)


def select_columns(frame: DataFrame, names: Sequence[str], what: str) -> DataFrame:
    """Pick columns by name without regard to case; raises SchemaError naming what is missing."""
    given = spellings(frame.columns)
    missing = [name for name in names if name not in given]
    if missing:
        raise SchemaError(f"{what}: column(s) {missing} are not in the data; it has {frame.columns}")
    return frame.select(*[F.col(quoted(given[name])).alias(name) for name in names])


def fetch_small(batch: AlignedBatch, options: Options) -> pa.Table | None:
    """Return the rows as an Arrow table when they are within the small-batch limits, else None; one Spark job at most.

    Spark's estimate only saves the job where it is large: what the rows take is measured by the tasks that send them.
    """
    return _if_small(batch, _collected(batch.frame, options, only_little=False), options)


def fetch_little(frame: DataFrame, options: Options) -> pa.Table | None:
    """Return the rows of a query that reads little as an Arrow table when they are within the small-batch limits, else None."""
    table = _collected(frame, options, only_little=True)
    return None if table is None or table.num_rows > options[EngineOptions.SMALL_BATCH_ROWS] else table


def _collected(frame: DataFrame, options: Options, *, only_little: bool) -> pa.Table | None:
    """Return the rows, one more at most than a small batch has; None where they are too large, or not worth fetching.

    Args:
        only_little: Fetch only what reads little, whatever Spark's estimate of the rows is.
    """
    most = options[EngineOptions.SMALL_BATCH_ROWS]
    if most == 0:
        return None
    rows = bounded(frame, options[EngineOptions.SMALL_BATCH_BYTES], most + 1)
    # by the plan that is run, as planning takes longer than a small batch
    reads_little = _reads_little(rows.measured, options)
    if not reads_little and (only_little or not may_be_small(frame, options)):
        return None
    with interpreted(frame.sparkSession, when=reads_little):
        return rows.collect()


def fetch_counted(batch: AlignedBatch, kept: DataFrame, rows: int, options: Options) -> pa.Table | None:
    """Return rows that Spark has evaluated, counted and kept, as an Arrow table when they are within the small-batch limits.

    Of a query that reads much, such as an aggregate, it is only then known that it makes few rows.
    """
    if rows > options[EngineOptions.SMALL_BATCH_ROWS]:
        return None
    columns = [quoted(name) for name in batch.frame.columns]
    table = bounded(kept.select(*columns), options[EngineOptions.SMALL_BATCH_BYTES]).collect()
    return _if_small(batch, table, options)


def _reads_little(frame: DataFrame, options: Options) -> bool:
    """Tell whether a query reads so little that it is small, however large Spark's estimate is, which of a join is a product."""
    most = min(options[EngineOptions.SMALL_PLAN_BYTES], options[EngineOptions.SMALL_BATCH_BYTES])
    return most > 0 and is_small(frame, most)


def may_be_small(frame: DataFrame, options: Options) -> bool:
    """Tell whether a batch is worth fetching by Spark's estimate."""
    estimate = size_estimate(frame)
    if estimate >= UNKNOWN_SIZE:
        return True
    if estimate > options[EngineOptions.SMALL_BATCH_BYTES]:
        return False
    return not (is_parquet_scan(frame) and estimated_rows(frame) > options[EngineOptions.SMALL_BATCH_ROWS])


def _if_small(batch: AlignedBatch, table: pa.Table | None, options: Options) -> pa.Table | None:
    """Return collected rows in the batch's types, unless they are too many or too large."""
    most = options[EngineOptions.SMALL_BATCH_ROWS]
    if table is None or table.num_rows > most or table.nbytes > options[EngineOptions.SMALL_BATCH_BYTES]:
        return None
    return cast_batch(table, batch.schema)


def delete_batch(
    state: TableState, rows: DataFrame, index: IndexKind, *, prepped: bool
) -> tuple[AlignedBatch, IndexKind]:
    """Return only the key and partition columns of rows to delete; without the partition columns keys are looked for everywhere."""
    config = state.config
    schema = state.data_schema()
    if prepped:
        frame = rows.select(RECORD_KEY, PARTITION_PATH)
        return AlignedBatch(frame, pa.schema([]), (RECORD_KEY, PARTITION_PATH)), index
    wanted, index = keys_to_look_up(config, rows.columns, index)
    frame = select_columns(rows, wanted, f"delete from {config.name!r} needs the record key")
    subset = (
        None
        if schema is None
        else pa.schema([schema.field(name) for name in schema.names if name in set(wanted)])
    )
    batch = align(frame, subset, FitPolicy(change=SchemaChange.ANY))
    return batch if subset is None else _as_stored(batch, subset), index


def _as_stored(batch: AlignedBatch, stored: pa.Schema) -> AlignedBatch:
    """Return keys to delete with decimals as the table has them; a value that the table's type does not hold is no key of it."""
    frame, fields = batch.frame, []
    for field in batch.schema:
        place = stored.get_field_index(field.name)
        wanted = field.type if place < 0 else stored.field(place).type
        if not text_may_differ(field, wanted):
            fields.append(field)
            continue
        kind = spark_name(wanted)
        given = F.col(quoted(field.name))
        held = F.expr(f"try_cast({quoted(field.name)} as {kind})")
        frame = frame.where(given.isNull() | (held == given)).withColumn(field.name, held)
        fields.append(pa.field(field.name, wanted))
    return replace(batch, frame=frame, schema=pa.schema(fields))


def is_parquet_scan(frame: DataFrame, *, whole: bool = False) -> bool:
    """Tell whether the rows come straight from Parquet files, by columns and filters that nothing but the time may change.

    Such rows are cheaper to read twice than to keep, and only the columns needed are read. Anything else (joins,
    aggregates, Python functions, text formats, databases) is evaluated once and kept.

    Args:
        whole: Whether filters do not count, which may leave few of the files' rows.
    """
    plan = optimized_plan(frame)
    if not plan.deterministic():
        return False
    passed = ("Project",) if whole else ("Project", "Filter")
    while class_name(plan) in passed:
        plan = plan.children().head()
    if class_name(plan) != "LogicalRelation" or class_name(plan.relation()) != "HadoopFsRelation":
        return False
    return class_name(plan.relation().fileFormat()) == "ParquetFileFormat"


def estimated_rows(frame: DataFrame) -> int:
    """Return rows of a Parquet scan, from the bytes of its files and the usual width of its columns in memory.

    Files are smaller than rows in memory, so it is rather too low.
    """
    return size_estimate(frame) // row_size_estimate(frame)


def class_name(thing: Any) -> str:
    """Return the name of an object's class in Java, without its package."""
    return str(thing.getClass().getSimpleName())
