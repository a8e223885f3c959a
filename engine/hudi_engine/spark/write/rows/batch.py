"""The incoming rows: aligned to the table's schema, and fetched to the driver when they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import SchemaChange
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.any_case import refuse_same_names, spellings
from hudi_engine.format.schema.casting import cast_batch
from hudi_engine.format.schema.meta_fields import (
    DELETES,
    IS_DELETED,
    META_FIELDS,
    OPERATION,
    PARTITION_PATH,
    RECORD_KEY,
)
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.spark.jvm.frames import optimized_plan, row_size_estimate, size_estimate
from hudi_engine.spark.read.collect import bounded
from hudi_engine.spark.read.small_plans import interpreted, is_small
from hudi_engine.spark.schema.fit import FitPolicy, Missing, fit_schema, quoted
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.write.rows.casts import exact_marks, fit_frame
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.snapshot.native import refuse_reserved
from hudi_engine.table.state import TableState

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
    refuse_reserved(names)
    incoming = spark_to_arrow(StructType(fields))
    refuse_false_marks(incoming, table_schema)
    schema = fit_schema(incoming, table_schema, policy, spelling=policy.fixed)
    kept = tuple(name for name in (*carry, DELETES) if name in frame.columns)
    if DELETES in kept and frame.schema[DELETES].dataType.typeName() != "boolean":
        raise SchemaError(
            f"column {DELETES!r} is {frame.schema[DELETES].dataType.simpleString()}; it marks rows that delete and has to be "
            "boolean: cast it"
        )
    return AlignedBatch(fit_frame(frame, names, schema, kept), schema, kept)


def fit_policy(config: TableConfig, options: Options) -> FitPolicy:
    """Return how strictly a batch is fitted to the table."""
    allows = options[WriteOptions.NULL_FOR_MISSING_COLUMNS]
    return FitPolicy(
        Missing.NULL if allows else Missing.REFUSE,
        options[EngineOptions.SCHEMA_EVOLUTION],
        tuple(definition_columns(config)),
    )


def definition_columns(config: TableConfig) -> list[str]:
    """Return the columns that the table's definition names; its other readers find them in the spelling it has."""
    fields = [*config.record_key_fields, *config.ordering_fields]
    return [*fields, *(field.name for field in config.partition_fields)]


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
    rows_limit = options[EngineOptions.SMALL_BATCH_ROWS]
    if rows_limit == 0:
        return None
    rows = bounded(batch.frame, options[EngineOptions.SMALL_BATCH_BYTES], rows_limit + 1)
    # by the plan that is run, as planning takes longer than a small batch
    reads_little = _reads_little(rows.measured, options)
    if not reads_little and not may_be_small(batch.frame, options):
        return None
    with interpreted(batch.frame.sparkSession, when=reads_little):
        table = rows.collect()
    return _if_small(batch, table, options)


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


def refuse_false_marks(wanted: pa.Schema, known: pa.Schema | None) -> None:
    """Refuse a new column that looks like the mark of deletes and would be stored as any other value.

    Args:
        known: Data columns that the table has, None for a new one: what it has already stays what Hudi takes it for.
    """
    had = spellings(known.names if known is not None else ()).get(IS_DELETED)
    for field in wanted:
        if field.name.lower() != IS_DELETED or had in (field.name, IS_DELETED):
            continue
        boolean = pa.types.is_boolean(field.type)
        if had is None and not boolean:
            raise SchemaError(
                f"column {field.name!r} is {spark_name(field.type)}; it marks rows that delete and has to be boolean: cast it, or "
                "give it another name"
            )
        if had is None and field.name != IS_DELETED:
            raise SchemaError(
                f"column {field.name!r} marks rows that delete only where it is spelled {IS_DELETED!r}; rename it"
            )
        if had is not None and boolean:
            raise SchemaError(
                f"column {field.name!r} marks rows that delete, but the table has {had!r}, a value like any other, as Hudi looks "
                f"for {IS_DELETED!r} only; mark them with {DELETES!r}, or rebuild the table without that column"
            )


def delete_batch(
    state: TableState, rows: DataFrame, index: IndexKind, *, prepped: bool
) -> tuple[AlignedBatch, IndexKind]:
    """Return only the key and partition columns of rows to delete; without the partition columns keys are looked for everywhere."""
    config = state.config
    schema = state.data_schema()
    if prepped:
        frame = rows.select(RECORD_KEY, PARTITION_PATH)
        return AlignedBatch(frame, pa.schema([]), (RECORD_KEY, PARTITION_PATH)), index
    if not config.record_key_fields:
        raise ConfigError(
            f"table {config.name!r} has generated record keys, so rows cannot be deleted by key; "
            "use delete_where(condition) instead"
        )
    given = {name.lower() for name in rows.columns}
    keys = [name.partition(".")[0] for name in config.record_key_fields]
    parts = [field.name.partition(".")[0] for field in config.partition_fields]
    known = all(name.lower() in given for name in parts)
    if not known:
        index = replace(index, is_global=True, moves_partition=False, buckets=None)
    wanted = list(dict.fromkeys([*keys, *(parts if known else [])]))
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
        if not _text_may_differ(field.type, wanted):
            fields.append(field)
            continue
        if not (_is_exact(field.type) and pa.types.is_decimal(wanted)):
            raise SchemaError(
                f"the keys to delete have column {field.name!r} as {field.type}, and the table has it as {wanted}, which may "
                f"read otherwise as a key; cast it to {wanted}"
            )
        kind = spark_name(wanted)
        given = F.col(quoted(field.name))
        held = F.expr(f"try_cast({quoted(field.name)} as {kind})")
        frame = frame.where(given.isNull() | (held == given)).withColumn(field.name, held)
        fields.append(pa.field(field.name, wanted))
    return replace(batch, frame=frame, schema=pa.schema(fields))


def _text_may_differ(given: pa.DataType, wanted: pa.DataType) -> bool:
    if given.equals(wanted):
        return False
    return any(bool(pa.types.is_decimal(each) or pa.types.is_floating(each)) for each in (given, wanted))


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_integer(kind))


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
