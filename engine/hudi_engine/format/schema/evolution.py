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
from hudi_engine.format.schema.nested import TypePair, paired_parts, type_of_parts

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
        allow_missing: Whether the batch may lack columns of the table (they are written as null).

    Returns:
        The table's columns in their order, widened where the batch is wider, then the batch's new columns.
        Meta columns are in front if ``table`` has them.
    """
    problems: list[str] = []
    own, batch = (pa.struct(list(without_meta_columns(each))) for each in (table, incoming))
    fields = _merge_types(own, batch, "", allow_missing, problems)
    if problems:
        raise SchemaError("the batch does not fit the table: " + "; ".join(problems))
    merged = pa.schema(list(fields))
    check_avro_names(merged)
    has_meta = any(name in META_FIELDS for name in table.names)
    return with_meta_columns(merged) if has_meta else merged


def can_promote(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether Hudi reads a column stored as ``stored`` when the table states ``wanted`` (both not nested)."""
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
    """Return whether a table's column may get another type: a wider one, also inside structs, which may get new fields."""
    problems: list[str] = []
    merged = _merge_types(stored, wanted, "", True, problems)
    return not problems and bool(merged.equals(wanted))


def _merge_types(
    table: pa.DataType, incoming: pa.DataType, path: str, allow_missing: bool, problems: list[str]
) -> pa.DataType:
    """Return the wider of two types, nested ones part by part; a problem is noted and the rest still checked."""
    pairs = paired_parts(table, incoming)
    if pairs is not None:
        return _merge_parts(table, pairs, path, allow_missing, problems)
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


def _merge_parts(
    table: pa.DataType, pairs: list[TypePair], path: str, allow_missing: bool, problems: list[str]
) -> pa.DataType:
    """Return a nested type with the wider of each two parts; fields of the batch alone come last."""
    merged: list[tuple[str, pa.DataType]] = []
    for name, own, other in pairs:
        inner = f"{path}.{name}" if path else name
        if own is None:
            merged.append((name, other))
        elif other is None:
            if not allow_missing:
                problems.append(
                    f"column {inner!r} of the table is missing in the batch: add it, or allow missing columns"
                )
            merged.append((name, own))
        else:
            merged.append((name, _merge_types(own, other, inner, allow_missing, problems)))
    if pa.types.is_struct(table):
        return pa.struct(merged)
    return type_of_parts(table, [part for _, part in merged])
