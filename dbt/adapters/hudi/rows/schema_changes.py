"""What `on_schema_change` makes of a table's columns: which are added, dropped and widened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.spark.catalog.sql_text import type_text
from hudi_engine.spark.schema.spark_types import spark_to_arrow, stored_type
from pyspark.sql import types as T
from pyspark.sql.types import _parse_datatype_string

from dbt.adapters.hudi.column import same_stored_type, users_columns

_EXACT = {(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())}
APPEND, SYNC = "append_new_columns", "sync_all_columns"


@dataclass(frozen=True)
class ChangeOfColumns:
    """A change of a table's columns.

    Args:
        added: Columns that it gets, with the types of the query.
    """

    added: Sequence[T.StructField] = ()
    removed: Sequence[str] = ()
    retyped: Mapping[str, T.DataType] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.added or self.removed or self.retyped)

    def applied(self, table: T.StructType) -> T.StructType:
        """Return the table's columns after the change, new ones last, in the types that a Hudi table holds."""
        removed = {name.lower() for name in self.removed}
        types = AnyCase((name, _stored(kind)) for name, kind in self.retyped.items())
        kept = [
            T.StructField(column.name, types.get(column.name, column.dataType), True)
            for column in table.fields
            if column.name.lower() not in removed
        ]
        return T.StructType(
            [*kept, *(T.StructField(each.name, _stored(each.dataType), True) for each in self.added)]
        )


def schema_change(mode: str, table: T.StructType, query: T.StructType) -> ChangeOfColumns:
    """Return what a run does to its table's columns.

    Args:
        mode: The model's ``on_schema_change``.
    """
    if mode not in (APPEND, SYNC):
        return ChangeOfColumns()
    mine, theirs = users_columns(table), users_columns(query)
    known = {column.name.lower() for column in mine}
    added = [column for column in theirs if column.name.lower() not in known]
    retyped = type_changes(theirs, mine)
    if mode == APPEND:
        return ChangeOfColumns(added, (), new_fields(retyped, mine))
    given = {column.name.lower() for column in theirs}
    return ChangeOfColumns(added, [each.name for each in mine if each.name.lower() not in given], retyped)


def type_changes(query: Sequence[T.StructField], table: Sequence[T.StructField]) -> dict[str, T.DataType]:
    """Return the table's columns whose type in the query is not what the table holds for that type, with that type."""
    stored = AnyCase((column.name, column) for column in table)
    changes = {}
    for column in query:
        mine = stored.get(column.name)
        if mine is None or same_type(column.dataType, mine.dataType):
            continue
        wanted = _in_order_of(mine.dataType, column.dataType)
        if not same_type(wanted, mine.dataType):
            changes[mine.name] = wanted
    return changes


def new_fields(retyped: Mapping[str, T.DataType], table: Sequence[T.StructField]) -> dict[str, T.DataType]:
    """Of some changed types those whose structs get further fields; nothing else of them changes."""
    types = {column.name: column.dataType for column in table}
    grown = {name: _with_new_fields(types[name], kind) for name, kind in retyped.items()}
    return {name: kind for name, kind in grown.items() if not same_type(types[name], kind)}


def wider(retyped: Mapping[str, T.DataType], table: Sequence[T.StructField]) -> dict[str, T.DataType]:
    """Of some changed types those that hold every value of the table's as it is: wider numbers, and structs with further fields.

    Hudi also takes a floating point number for wider than a whole one, of which it rounds some, and text for wider than both.
    """
    now = spark_to_arrow(T.StructType(list(table)))
    types = spark_to_arrow(
        T.StructType([T.StructField(name, _stored(kind)) for name, kind in retyped.items()])
    )
    pairs = {name: (now.field(name).type, types.field(name).type) for name in retyped}
    return {
        name: retyped[name]
        for name, (old, new) in pairs.items()
        if can_change(old, new) and _is_exact(old, new)
    }


def _is_exact(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a type that Hudi treats as wider holds each value as it is, at every level."""
    if pa.types.is_struct(old):
        return all(_is_exact(field.type, new.field(field.name).type) for field in old)
    if pa.types.is_list(old):
        return _is_exact(old.value_type, new.value_type)
    if pa.types.is_map(old):
        return _is_exact(old.item_type, new.item_type)
    return bool(old == new or (old, new) in _EXACT or (pa.types.is_decimal(old) and pa.types.is_decimal(new)))


def _stored(kind: T.DataType) -> T.DataType:
    return _parse_datatype_string(stored_type(type_text(kind)))


def same_type(left: T.DataType, right: T.DataType) -> bool:
    """Whether a Hudi table holds the same for two types."""
    return left == right or same_stored_type(left.simpleString(), right.simpleString())


def column_differences(table: str, stored: T.StructType, query: T.StructType, *, keeps_rows: bool) -> str:
    """Return which columns of a query are not those of its table, and the ways out of it; ``""`` for none.

    Args:
        keeps_rows: The model's config has ``full_refresh: false``.
    """
    change = schema_change(SYNC, stored, query)
    if not change:
        return ""
    mine = AnyCase((each.name, each.dataType.simpleString()) for each in stored)
    theirs = AnyCase((each.name, each.dataType.simpleString()) for each in query)
    differences = [
        *(f"{each.name} {theirs[each.name]}: new in the query" for each in change.added),
        *(f"{name} {mine[name]}: no longer selected" for name in change.removed),
        *(f"{name}: {mine[name]} in the table, {theirs[name]} in the query" for name in change.retyped),
    ]
    once = "take full_refresh: false out of the model and run it once with --full-refresh"
    listed = "\n".join(f"  * {each}" for each in differences)
    return (
        f"The columns of the query are not those of {table}, and on_schema_change is 'fail':\n{listed}\n"
        "Select the table's columns in its types; or set on_schema_change to append_new_columns (adds columns and keeps others) or "
        "sync_all_columns (adds, widens and drops columns, with the values they have); or "
        f"{once if keeps_rows else 'run it with --full-refresh'}, which rebuilds the table"
    )


def _with_new_fields(old: T.DataType, new: T.DataType) -> T.DataType:
    """Return a table's type with the fields that structs of a query have besides; everything else stays as it is."""
    if isinstance(old, T.StructType) and isinstance(new, T.StructType):
        found = AnyCase((field.name, field.dataType) for field in new.fields)
        known = {field.name.lower() for field in old.fields}
        kept = [
            T.StructField(field.name, _with_new_fields(field.dataType, found.get(field.name, field.dataType)))
            for field in old.fields
        ]
        return T.StructType([*kept, *(field for field in new.fields if field.name.lower() not in known)])
    if isinstance(old, T.ArrayType) and isinstance(new, T.ArrayType):
        return T.ArrayType(_with_new_fields(old.elementType, new.elementType))
    if isinstance(old, T.MapType) and isinstance(new, T.MapType):
        return T.MapType(old.keyType, _with_new_fields(old.valueType, new.valueType))
    return old


def _in_order_of(old: T.DataType, new: T.DataType) -> T.DataType:
    """Return a query's type with the fields of its structs named and ordered as the table's, new ones last."""
    if isinstance(old, T.StructType) and isinstance(new, T.StructType):
        found = {field.name.lower(): field for field in new.fields}
        kept = [
            T.StructField(field.name, _in_order_of(field.dataType, found.pop(field.name.lower()).dataType))
            for field in old.fields
            if field.name.lower() in found
        ]
        return T.StructType([*kept, *found.values()])
    if isinstance(old, T.ArrayType) and isinstance(new, T.ArrayType):
        return T.ArrayType(_in_order_of(old.elementType, new.elementType))
    if isinstance(old, T.MapType) and isinstance(new, T.MapType):
        return T.MapType(new.keyType, _in_order_of(old.valueType, new.valueType))
    return new
