"""An Avro record schema as a tree of types that whole columns are encoded and decoded by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.avro import avro_to_arrow, load_avro, register_type

_MAX_DEPTH = 64


@dataclass(frozen=True)
class AvroType:
    """One type of the tree.

    Attributes:
        kind: Avro type name; a union of null and T has T's kind.
        null_index: Position of null in the union; None when the value is required.
        branch: Position of the value in the union; None when there is no union.
        children: Field types of a record, the item type of an array, the value type of a map.
    """

    kind: str
    arrow: pa.DataType
    null_index: int | None = None
    branch: int | None = None
    size: int = 0
    symbols: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    children: tuple[AvroType, ...] = ()
    is_decimal: bool = False


def compile_schema(avro: str | Mapping[str, Any]) -> AvroType:
    """Return tree of an Avro record schema."""
    record = load_avro(avro)
    arrow = pa.struct(list(avro_to_arrow(record)))
    return _compile(record, arrow, "", {}, 0)


def _compile(schema: Any, arrow: pa.DataType, space: str, names: dict[str, Any], depth: int) -> AvroType:
    """Pair an Avro schema with its Arrow type once, so that decoding looks no name up; depth is limited against loops."""
    if depth > _MAX_DEPTH:
        raise SchemaError(f"the Avro schema is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(schema, list):
        return _compile_union(schema, arrow, space, names, depth)
    if isinstance(schema, str):
        found = names.get(schema) or names.get(f"{space}.{schema}")
        return _compile(found[0], arrow, found[1], names, depth + 1) if found else AvroType(schema, arrow)
    kind = schema["type"]
    if not isinstance(kind, str) or (kind not in _COMPLEX and not isinstance(schema.get("logicalType"), str)):
        return _compile(kind, arrow, space, names, depth + 1)
    if kind in ("record", "enum", "fixed"):
        space = register_type(schema, space, names)
    if kind == "record":
        fields = [
            _compile(field["type"], arrow.field(index).type, space, names, depth + 1)
            for index, field in enumerate(schema["fields"])
        ]
        labels = tuple(str(field["name"]) for field in schema["fields"])
        return AvroType(kind, arrow, names=labels, children=tuple(fields))
    if kind == "array":
        item = _compile(schema["items"], arrow.value_type, space, names, depth + 1)
        return AvroType(kind, arrow, children=(item,))
    if kind == "map":
        value = _compile(schema["values"], arrow.item_type, space, names, depth + 1)
        return AvroType(kind, arrow, children=(value,))
    return _compile_leaf(schema, kind, arrow)


_COMPLEX = ("record", "array", "map", "enum", "fixed")


def _compile_leaf(schema: Mapping[str, Any], kind: str, arrow: pa.DataType) -> AvroType:
    return AvroType(
        kind,
        arrow,
        size=int(schema.get("size", 0)),
        symbols=tuple(schema.get("symbols", ())),
        is_decimal=pa.types.is_decimal(arrow),
    )


def _compile_union(
    branches: list[Any], arrow: pa.DataType, space: str, names: dict[str, Any], depth: int
) -> AvroType:
    branch = next((index for index, member in enumerate(branches) if member != "null"), 0)
    inner = _compile(branches[branch], arrow, space, names, depth + 1)
    return replace(inner, null_index=branches.index("null") if "null" in branches else None, branch=branch)
