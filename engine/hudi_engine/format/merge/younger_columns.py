"""Columns that are younger than a log block in Avro or HFile, of tables that Hudi 0.x keeps.

Hudi 0.x reads the records of such a block with the table's Avro schema, so a column or nested field that they lack has its
default there. In base files and Parquet blocks it is null, and so it is where schema on read keeps ids of columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.casting import list_offsets

Names = Mapping[str, Any]


def schema_that_fills(config: TableConfig, avro: str | None, *, by_ids: bool) -> str | None:
    """Return the Avro schema by which columns are filled; None where they are null.

    Args:
        by_ids: Whether schema on read keeps the ids of the table's columns.
    """
    if avro is None or by_ids or config.drop_partition_columns or not config.merges_as_release_0:
        return None
    return avro if _has_defaults(json.loads(avro)) else None


def fill_younger(rows: pa.Table, kind: BlockType, avro: str | None, wanted: pa.Schema) -> pa.Table:
    """Return the rows of a block with the columns and nested fields that they lack and that have a default.

    Args:
        avro: Avro record of the table; None where nothing is filled.

    Raises:
        UnsupportedTableError: A default has a type that this engine cannot fill.
    """
    if avro is None or kind not in (BlockType.AVRO_DATA, BlockType.HFILE_DATA):
        return rows
    record, kinds, names = _parsed(avro)
    for field in record["fields"]:
        name = field["name"]
        if name not in wanted.names:
            continue
        place = rows.schema.get_field_index(name)
        if place >= 0:
            column = rows.column(place)
            if pa.types.is_nested(column.type) and column.num_chunks:
                chunks = [
                    _filled(chunk, field["type"], kinds.field(name).type, names) for chunk in column.chunks
                ]
                rows = rows.set_column(place, name, pa.chunked_array(chunks))
        elif field.get("default") is not None:
            rows = rows.append_column(
                name, _constant(field["default"], field["type"], kinds.field(name).type, names, rows.num_rows)
            )
    return rows


@lru_cache(maxsize=8)
def _parsed(avro: str) -> tuple[Any, pa.Schema, Names]:
    """Return a record, its columns and its named types: every block of a table is filled by the same."""
    record = json.loads(avro)
    names: dict[str, Any] = {}
    _collect(record, names)
    return record, avro_to_arrow(avro), names


def _has_defaults(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_has_defaults, schema))
    if not isinstance(schema, dict):
        return False
    fields = schema.get("fields", [])
    nested = [field["type"] for field in fields]
    nested += [
        schema[key] for key in ("items", "values", "type") if isinstance(schema.get(key), (list, dict))
    ]
    return any(field.get("default") is not None for field in fields) or any(map(_has_defaults, nested))


def _collect(schema: Any, names: dict[str, Any]) -> None:
    for each in schema if isinstance(schema, list) else [schema]:
        if not isinstance(each, dict):
            continue
        if "name" in each and "fields" in each:
            names[each["name"].rpartition(".")[2]] = each
        for inner in (
            *(field["type"] for field in each.get("fields", [])),
            each.get("items"),
            each.get("values"),
        ):
            _collect(inner, names)


def _plain(schema: Any, names: Names) -> Any:
    """Return the type that is not null, by its definition."""
    if isinstance(schema, list):
        schema = next((each for each in schema if each != "null"), "null")
    if isinstance(schema, dict) and isinstance(schema.get("type"), (list, dict)):
        return _plain(schema["type"], names)
    return names.get(schema.rpartition(".")[2], schema) if isinstance(schema, str) else schema


def _filled(array: pa.Array, schema: Any, kind: pa.DataType, names: Names) -> pa.Array:
    avro = _plain(schema, names)
    nulls = pc.is_null(array) if array.null_count else None
    if pa.types.is_struct(array.type) and pa.types.is_struct(kind):
        return _filled_struct(array, avro, kind, names)
    if pa.types.is_list(array.type) and pa.types.is_list(kind):
        values = _filled(array.flatten(), avro["items"], kind.value_type, names)
        return pa.ListArray.from_arrays(list_offsets(array), values, mask=nulls)
    if pa.types.is_map(array.type) and pa.types.is_map(kind):
        pairs = array.cast(
            pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)]))
        )
        keys, items = pairs.flatten().flatten()
        items = _filled(items, avro["values"], kind.item_type, names)
        made = pa.map_(keys.type, items.type)
        return pa.MapArray.from_arrays(list_offsets(pairs), keys, items, type=made, mask=nulls)
    return array


def _filled_struct(array: pa.StructArray, avro: Any, kind: pa.StructType, names: Names) -> pa.Array:
    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    for field in avro["fields"]:
        name = field["name"]
        of = kind.field(kind.get_field_index(name)).type
        if name in children:
            children[name] = _filled(children[name], field["type"], of, names)
        elif field.get("default") is not None:
            children[name] = _constant(field["default"], field["type"], of, names, len(array))
    nulls = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(list(children.values()), list(children), mask=nulls)


def _constant(default: Any, schema: Any, kind: pa.DataType, names: Names, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(_value(default, schema, kind, names), kind), count)


def _value(default: Any, schema: Any, kind: pa.DataType, names: Names) -> Any:
    """Return the Python value of a default as Avro writes it in JSON."""
    if default is None or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return default
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return default
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.scalar(default, width).cast(kind).as_py()
    if pa.types.is_binary(kind):
        return default.encode("latin-1")
    avro = _plain(schema, names)
    if pa.types.is_struct(kind):
        values = {field["name"]: default.get(field["name"], field.get("default")) for field in avro["fields"]}
        types = {field["name"]: field["type"] for field in avro["fields"]}
        return {each.name: _value(values[each.name], types[each.name], each.type, names) for each in kind}
    if pa.types.is_list(kind):
        return [_value(each, avro["items"], kind.value_type, names) for each in default]
    if pa.types.is_map(kind):
        return [(key, _value(each, avro["values"], kind.item_type, names)) for key, each in default.items()]
    raise UnsupportedTableError(
        f"records of a log are older than a column of type {kind} that has the default {default!r}, which this engine does not "
        "fill. Compact the table with Apache Hudi, or read its base files only (read optimized)"
    )
