"""Required columns of tables of other writers become optional, as Hudi makes them, when rows may have nulls in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from hudi_engine.format.schema.avro import AvroSchema
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
