"""Changes of a table's Avro schema in place: what a change leaves alone stays as the table's writers wrote it.

Required columns, defaults, enums, fixed types and the names of records are other writers' own, and Arrow's types do not show
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.avro import (
    AvroSchema,
    arrow_to_avro,
    avro_field,
    avro_to_arrow,
    avro_type,
    check_avro_names,
    full_name,
    load_avro,
)
from hudi_engine.format.schema.nested import array_parts, walk_avro


def has_required(avro: AvroSchema) -> bool:
    """Return whether an Avro record has a field, element or value, at any level, that must not be null."""
    return any(not _is_optional(part) for each in walk_avro(avro) for part in _part_types(each))


def columns_with_nulls(rows: pa.Table, record: Mapping[str, Any]) -> set[str]:
    """Return the columns with a null at any level, for an optional column of the record at any level below its own."""
    optional = {field["name"] for field in record["fields"] if _is_optional(field["type"])}
    return {
        name
        for name, column in zip(rows.column_names, rows.columns)
        if any(_has_null(chunk.drop_null() if name in optional else chunk) for chunk in column.chunks)
    }


def with_nulls_allowed(record: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """Return an Avro record with some columns optional at every level."""
    fields = [_optional_field(each) if each["name"] in columns else each for each in record["fields"]]
    return {**record, "fields": fields}


def _has_null(values: pa.Array) -> bool:
    there = values.drop_null() if pa.types.is_nested(values.type) and values.null_count else values
    return bool(values.null_count) or any(map(_has_null, array_parts(there)))


def _part_types(kind: Mapping[str, Any]) -> list[AvroSchema]:
    fields = [field["type"] for field in kind.get("fields") or ()]
    return fields + [kind[part] for part in ("items", "values") if part in kind]


def _optional_field(field: Mapping[str, Any]) -> dict[str, Any]:
    if _is_optional(field["type"]):
        return {**field, "type": _with_optional_parts(field["type"])}
    # Avro wants a default to be of the union's first type
    if field.get("default") is None:
        return {**field, "type": _optional(field["type"]), "default": None}
    branches = _optional(field["type"])
    return {**field, "type": [*branches[1:], "null"]}


def _optional(avro: AvroSchema) -> list[AvroSchema]:
    """Return a union of null and a type whose parts may be null, too."""
    inner = _with_optional_parts(avro)
    branches = inner if isinstance(inner, list) else [inner]
    return ["null", *(each for each in branches if each != "null")]


def _with_optional_parts(avro: AvroSchema) -> AvroSchema:
    """Return a type whose fields, items and values may be null; the type itself stays as required as it is."""
    if isinstance(avro, list):
        return [_with_optional_parts(each) for each in avro]
    if not isinstance(avro, Mapping):
        return avro
    kind = avro.get("type")
    if kind == "record":
        return {**avro, "fields": [_optional_field(each) for each in avro["fields"]]}
    for part in ("items", "values"):
        if part in avro:
            return {**avro, part: avro[part] if _is_optional(avro[part]) else _optional(avro[part])}
    return {**avro, "type": _with_optional_parts(kind)} if isinstance(kind, (list, Mapping)) else avro


def _is_optional(avro: AvroSchema) -> bool:
    return avro == "null" or (isinstance(avro, list) and "null" in avro)


_NUMBERS = (pa.int64(), pa.float32(), pa.float64())


def avro_with_columns(avro: str | Mapping[str, Any], columns: pa.Schema, table_name: str) -> dict[str, Any]:
    """Return a table's Avro record with other columns."""
    record = load_avro(avro)
    stored = avro_to_arrow(record)
    if stored.equals(columns):
        return record
    check_avro_names(columns)
    changed = {**record, "fields": _changed_fields(record, pa.struct(list(stored)), list(columns), "", ())}
    try:
        is_right = avro_to_arrow(changed).equals(columns)
    except SchemaError:
        is_right = False
    # a type that is named in one column and used in another may have been removed, or changed, with the first
    return changed if is_right else arrow_to_avro(columns, table_name)


def _changed_fields(
    record: Mapping[str, Any],
    stored: pa.StructType,
    wanted: list[pa.Field],
    space: str,
    path: tuple[str, ...],
) -> list[dict[str, Any]]:
    known = {field["name"]: field for field in record["fields"]}
    owner, _ = full_name(str(record.get("name", "")), record.get("namespace"), space)
    fields = []
    for field in wanted:
        steps = (*path, field.name)
        before = known.get(field.name)
        if before is None:
            fields.append(avro_field(field, owner, steps))
            continue
        old = stored.field(field.name).type
        if old.equals(field.type):
            fields.append(before)
            continue
        after = {**before, "type": _changed(before["type"], old, field.type, owner, steps)}
        fields.append(_with_fitting_default(after, field.type))
    return fields


def _changed(
    avro: AvroSchema, stored: pa.DataType, wanted: pa.DataType, owner: str, path: tuple[str, ...]
) -> AvroSchema:
    """Return an Avro type changed to another Arrow type, part by part; what is no record, array or map is made again."""
    if isinstance(avro, list):
        return [each if each == "null" else _changed(each, stored, wanted, owner, path) for each in avro]
    if isinstance(avro, Mapping):
        kind = avro.get("type")
        if isinstance(kind, (list, Mapping)):
            return {**avro, "type": _changed(kind, stored, wanted, owner, path)}
        if kind == "record" and pa.types.is_struct(wanted):
            return {
                **avro,
                "fields": _changed_fields(avro, stored, list(wanted), owner.rpartition(".")[0], path),
            }
        if kind == "array" and pa.types.is_list(wanted):
            parts = stored.value_type, wanted.value_type
            return {**avro, "items": _changed(avro["items"], *parts, owner, path)}
        if kind == "map" and pa.types.is_map(wanted):
            parts = stored.item_type, wanted.item_type
            return {**avro, "values": _changed(avro["values"], *parts, owner, path)}
    return avro_type(wanted, path[-1], owner, path)


def _with_fitting_default(field: dict[str, Any], wanted: pa.DataType) -> dict[str, Any]:
    """Return a field of another type than before without a default that is none of that type."""
    default = field.get("default")
    is_number = isinstance(default, (int, float)) and not isinstance(default, bool)
    if default is None or pa.types.is_nested(wanted) or (is_number and wanted in _NUMBERS):
        return field
    return {name: value for name, value in field.items() if name != "default"}
