"""How a table's schema may change from one write to the next (table versions 6, 8 and 9).

New columns are added at the end, types widen, columns missing from a batch stay in the table; anything else
is refused, as Hudi refuses it. Source: Hudi table format, snapshot read, and the schema evolution rules of
Hudi's writers.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.avro import check_avro_names
from hudi_engine.format.schema.casting import cast_array, cast_column, cast_table
from hudi_engine.format.schema.meta_fields import META_FIELDS, with_meta_columns, without_meta_columns

__all__ = ["can_change", "can_promote", "cast_array", "cast_column", "cast_table", "evolve"]

_PROMOTIONS: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64(), pa.string()),
    pa.int64(): (pa.float32(), pa.float64(), pa.string()),
    pa.float32(): (pa.float64(), pa.string()),
    pa.float64(): (pa.string(),),
    pa.binary(): (pa.string(),),
    pa.string(): (pa.binary(),),
    pa.date32(): (pa.string(),),
}


def evolve(table: pa.Schema, incoming: pa.Schema, *, allow_missing: bool = True) -> pa.Schema:
    """Return schema of the table after a batch with schema ``incoming`` was written to it.

    Args:
        table: Schema of the table now, with or without meta columns.
        incoming: Schema of the batch; its meta columns are ignored.
        allow_missing: Whether the batch may lack columns of the table (they are written as null).

    Returns:
        The table's columns in their order, widened where the batch is wider, then the batch's new columns.
        Meta columns are in front if ``table`` has them.

    Raises:
        SchemaError: The batch changes a type in a way Hudi refuses, lacks a column that it must have, or
            brings an illegal name. All problems are in the message.
    """
    problems: list[str] = []
    fields = _merge_fields(
        list(without_meta_columns(table)), list(without_meta_columns(incoming)), "", allow_missing, problems
    )
    if problems:
        raise SchemaError("the batch does not fit the table: " + "; ".join(problems))
    merged = pa.schema(fields)
    check_avro_names(merged)
    has_meta = any(name in META_FIELDS for name in table.names)
    return with_meta_columns(merged) if has_meta else merged


def can_promote(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether Hudi reads a column stored as ``stored`` when the table says ``wanted`` (both not nested)."""
    if stored == wanted:
        return True
    if pa.types.is_decimal(stored):
        if pa.types.is_decimal(wanted):
            whole = wanted.precision - wanted.scale >= stored.precision - stored.scale
            return bool(whole and wanted.scale >= stored.scale)
        return bool(pa.types.is_string(wanted))
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        return bool(stored.tz == wanted.tz and (stored.unit, wanted.unit) == ("ms", "us"))
    return wanted in _PROMOTIONS.get(stored, ())


def can_change(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether a table's column may get another type: a wider one, also inside structs, which may get new fields."""
    problems: list[str] = []
    merged = _merge_types(stored, wanted, "", True, problems)
    return not problems and bool(merged.equals(wanted))


def _merge_fields(
    table: list[pa.Field], incoming: list[pa.Field], parent: str, allow_missing: bool, problems: list[str]
) -> list[pa.Field]:
    batch = {field.name: field for field in incoming}
    known = {field.name for field in table}
    merged = []
    for field in table:
        path = f"{parent}{field.name}"
        other = batch.get(field.name)
        if other is None:
            if not allow_missing:
                problems.append(
                    f"column {path!r} of the table is missing in the batch: add it, or allow missing columns"
                )
            merged.append(field)
            continue
        merged.append(
            pa.field(field.name, _merge_types(field.type, other.type, path, allow_missing, problems))
        )
    merged.extend(pa.field(field.name, field.type) for field in incoming if field.name not in known)
    return merged


def _merge_types(
    table: pa.DataType, incoming: pa.DataType, path: str, allow_missing: bool, problems: list[str]
) -> pa.DataType:
    """Return the wider of two types, nested ones part by part; a problem is noted and the rest still checked."""
    if pa.types.is_struct(table) and pa.types.is_struct(incoming):
        return pa.struct(_merge_fields(list(table), list(incoming), f"{path}.", allow_missing, problems))
    if pa.types.is_list(table) and pa.types.is_list(incoming):
        element = _merge_types(
            table.value_type, incoming.value_type, f"{path}.element", allow_missing, problems
        )
        return pa.list_(pa.field("element", element))
    if pa.types.is_map(table) and pa.types.is_map(incoming):
        value = _merge_types(table.item_type, incoming.item_type, f"{path}.value", allow_missing, problems)
        return pa.map_(table.key_type, value)
    if can_promote(incoming, table):
        return table
    if can_promote(table, incoming):
        return incoming
    legal = ", ".join(str(kind) for kind in _PROMOTIONS.get(table, ())) or "none"
    problems.append(
        f"column {path!r} is {table} in the table and {incoming} in the batch "
        f"(legal wider types of {table}: {legal}): "
        f"cast it to {table}"
    )
    return table
