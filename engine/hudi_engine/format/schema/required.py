"""Required columns of tables of other writers, and what becomes of them when rows bring nulls.

Hudi makes a column optional when the rows of a write may have no value there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hudi_engine.format.schema.avro import AvroSchema


def has_required(avro: AvroSchema) -> bool:
    """Tell whether an Avro type, a record mostly, has a field, element or value that must not be null."""
    return any(not _is_optional(part) or has_required(part) for part in _parts(avro))


def with_nulls_allowed(record: Mapping[str, Any], rows: pa.Schema) -> dict[str, Any]:
    """Return an Avro record whose fields are optional where rows may have a null; others are left as they are.

    Args:
        rows: Columns of the rows; what is nullable there may be null.
    """
    changed: dict[str, Any] = _allowed(record, pa.struct(list(rows)))
    return changed


def nulls_of_rows(rows: pa.Table) -> pa.Schema:
    """Return the columns of rows; nullable is, at every level, what has a null."""
    return pa.schema(
        [_field(name, column.combine_chunks()) for name, column in zip(rows.column_names, rows.columns)]
    )


def _field(name: str, values: Any) -> pa.Field:
    """Return a column of some values, nullable where one is null; of a null list, map or struct the parts do not count."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    kind, there = values.type, values
    if pa.types.is_nested(kind) and values.null_count:
        there = values.drop_null()
    if pa.types.is_struct(kind):
        parts = [_field(each.name, part) for each, part in zip(kind, there.flatten(), strict=True)]
        kind = pa.struct(parts)
    elif pa.types.is_list(kind):
        kind = pa.list_(_field("element", there.flatten()))
    elif pa.types.is_map(kind):
        pairs = there.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        kind = pa.map_(kind.key_type, _field("value", pairs.flatten().flatten()[1]))
    return pa.field(name, kind, nullable=bool(values.null_count))


def _allowed(avro: AvroSchema, rows: pa.DataType) -> AvroSchema:
    """Return an Avro type of values that are not null with nulls allowed in it where rows may have them."""
    if isinstance(avro, list):
        return [each if each == "null" else _allowed(each, rows) for each in avro]
    if not isinstance(avro, Mapping):
        return avro
    kind = avro.get("type")
    if kind == "record" and pa.types.is_struct(rows):
        return {**avro, "fields": [_allowed_field(each, rows) for each in avro["fields"]]}
    if kind == "array" and pa.types.is_list(rows):
        return {**avro, "items": _nullable(avro["items"], rows.value_field)}
    if kind == "map" and pa.types.is_map(rows):
        return {**avro, "values": _nullable(avro["values"], rows.item_field)}
    if isinstance(kind, (list, Mapping)):
        return {**avro, "type": _allowed(kind, rows)}
    return avro


def _allowed_field(field: Mapping[str, Any], rows: pa.StructType) -> Mapping[str, Any]:
    place = rows.get_field_index(field["name"])
    if place < 0:
        return field
    found = rows.field(place)
    kind = _allowed(field["type"], found.type)
    if not found.nullable or _is_optional(kind):
        return {**field, "type": kind}
    if field.get("default") is None:
        return {**field, "type": _with_null(kind, first=True), "default": None}
    # Avro wants a default to be of the union's first type
    return {**field, "type": _with_null(kind, first=False)}


def _nullable(avro: AvroSchema, found: pa.Field) -> AvroSchema:
    kind = _allowed(avro, found.type)
    return kind if not found.nullable or _is_optional(kind) else _with_null(kind, first=True)


def _with_null(kind: AvroSchema, *, first: bool) -> AvroSchema:
    branches = kind if isinstance(kind, list) else [kind]
    return ["null", *branches] if first else [*branches, "null"]


def _is_optional(avro: AvroSchema) -> bool:
    return avro == "null" or (isinstance(avro, list) and "null" in avro)


def _parts(avro: AvroSchema) -> list[AvroSchema]:
    """Return the types of the fields, elements or values of an Avro type, whether null is one of its branches or not."""
    if isinstance(avro, list):
        return [part for each in avro for part in _parts(each)]
    if not isinstance(avro, Mapping):
        return []
    if isinstance(avro.get("fields"), list):
        return [field["type"] for field in avro["fields"]]
    if isinstance(avro.get("type"), (list, Mapping)):
        return _parts(avro["type"])
    return [avro[name] for name in ("items", "values") if name in avro]
