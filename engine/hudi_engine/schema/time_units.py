"""Units of times: a table's are milliseconds or microseconds, as its Avro schema says, Spark's are microseconds.

Other writers make ``timestamp-millis`` of Flink's ``TIMESTAMP(3)`` and of many Avro schemas. Where rows of a table go to Spark,
and where columns come from it, the unit changes; everything else has the table's.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_engine.schema.casting import cast_table

_SPARK_UNIT = "us"


def for_spark(rows: pa.Table) -> pa.Table:
    """Return a table's rows with their times as Spark takes them; nothing is copied where they are so.

    Args:
        rows: Rows in the types of the table, with any further columns.
    """
    wanted = pa.schema([field.with_type(_in_spark_unit(field.type)) for field in rows.schema])
    return cast_table(rows, wanted)


def schema_in_units_of(given: pa.Schema, table: pa.Schema | None) -> pa.Schema:
    """Return columns with their times in the units that the table has them in; those that it does not have are as given.

    Args:
        given: Columns as Spark has them.
        table: Data columns of the table, None for one without a schema.
    """
    if table is None:
        return given
    known = {field.name: field.type for field in table}
    return pa.schema(
        [field.with_type(in_units_of(field.type, known.get(field.name, field.type))) for field in given]
    )


def in_units_of(given: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return a type with its times, inside structs, lists and maps too, in the units of another one.

    Args:
        given: Type of a batch's column.
        known: Type of the table's column.
    """
    if pa.types.is_struct(given) and pa.types.is_struct(known):
        fields = {field.name: field.type for field in known}
        return pa.struct(
            [field.with_type(in_units_of(field.type, fields.get(field.name, field.type))) for field in given]
        )
    if pa.types.is_list(given) and pa.types.is_list(known):
        return _list_of(in_units_of(given.value_type, known.value_type))
    if pa.types.is_map(given) and pa.types.is_map(known):
        return pa.map_(given.key_type, in_units_of(given.item_type, known.item_type))
    both_times = pa.types.is_timestamp(given) and pa.types.is_timestamp(known)
    return known if both_times and given.tz == known.tz else given


def _in_spark_unit(kind: pa.DataType) -> pa.DataType:
    """Return a type with all times in it in the unit of Spark."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(_SPARK_UNIT, kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_spark_unit(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return _list_of(_in_spark_unit(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _in_spark_unit(kind.item_type))
    return kind


def _list_of(element: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element))
