"""Keys to delete, as values of the table's types: a record key is text, and 1.5 and 1.5000 are two."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.config.enums import SchemaChange
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.spark.schema.fit import FitPolicy, quoted
from hudi_engine.spark.write.rows.batch import AlignedBatch, align, select_columns
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.state import TableState


def delete_batch(
    state: TableState, rows: DataFrame, index: IndexKind, *, prepped: bool
) -> tuple[AlignedBatch, IndexKind]:
    """Return only the columns that say which rows go; without the partition columns keys are looked for everywhere."""
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
    """Return keys to delete with decimals as the table has them; a value that the table's type does not hold is nobody's key.

    Args:
        batch: Key and partition columns as they were given.
        stored: The same columns as the table has them.

    Raises:
        SchemaError: A type whose text may differ from that of the stored value, and which no cast makes the same.
    """
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
