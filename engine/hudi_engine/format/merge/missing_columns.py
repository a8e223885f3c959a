"""Defaults of columns that a log block in Avro or HFile does not have yet, in tables of Hudi 0.x.

Hudi 0.x reads the records of such a block with the table's Avro schema, so a missing column has its default there. In base
files and Parquet blocks it is null, and so it is where schema on read keeps ids of columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.meta_fields import IS_DELETED
from hudi_engine.format.schema.nested import paired_parts, walk_avro

_FILLED = (MergeMode.PARTIAL_UPDATE, MergeMode.OVERWRITE_NON_DEFAULTS)
_ASKS_FOR_NULL_BEFORE = 9


# Hudi takes a value that equals the column's default for "no value given", and no null for one, where that default is not null;
# which values equal it differs by type and release. Before version 9 PartialUpdateAvroPayload looks for null alone.
def defaults_that_fill(config: TableConfig, avro_schema: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return the defaults other than null that Hudi takes for a missing value of a column."""
    asks_for_null = config.merge_mode is MergeMode.PARTIAL_UPDATE and config.version < _ASKS_FOR_NULL_BEFORE
    if avro_schema is None or asks_for_null or config.merge_mode not in _FILLED:
        return {}
    record = json.loads(avro_schema) if isinstance(avro_schema, str) else avro_schema
    # a row that is stored is no delete, so there is no other value it could keep
    return {
        field["name"]: field["default"]
        for field in record["fields"]
        if field.get("default") is not None and field["name"] != IS_DELETED
    }


def refuse_defaults(config: TableConfig, avro_schema: Mapping[str, Any]) -> None:
    """Refuse to write rows that this engine would fill by null where Hudi fills by a default."""
    found = defaults_that_fill(config, avro_schema)
    if found:
        raise UnsupportedTableError(
            f"{_named(config, found)} and would keep other values. Write to it with Apache Hudi, or with a schema whose defaults "
            "are null"
        )


def refuse_to_fill(config: TableConfig, defaults: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Refuse to merge logs into columns that Hudi fills by a default."""
    found = {name: defaults[name] for name in columns if name in defaults}
    if found:
        raise UnsupportedTableError(
            f"{_named(config, found)} and would give other rows. Read base files only (read optimized), or columns that need none "
            "of these, where they are no record key or ordering field, or compact the table with Apache Hudi"
        )


def _named(config: TableConfig, found: Mapping[str, Any]) -> str:
    named = ", ".join(f"{name}={value!r}" for name, value in sorted(found.items()))
    return (
        f"table {config.name!r} fills rows column by column ({config.merge_mode.value}), and its Avro schema has the defaults "
        f"{named}, which Apache Hudi takes for no value given; this engine takes null for that"
    )


def schema_with_defaults(config: TableConfig, avro: str | None, *, by_ids: bool) -> str | None:
    """Return the Avro schema by which missing columns are filled; None where they are null."""
    if avro is None or by_ids or config.drop_partition_columns or not config.merges_as_release_0:
        return None
    return avro if any(map(_has_default, walk_avro(json.loads(avro)))) else None


def fill_defaults(rows: pa.Table, kind: BlockType, avro: str | None, wanted: pa.Schema) -> pa.Table:
    """Return the rows of a block with the columns that they lack and that have a default."""
    if avro is None or kind not in (BlockType.AVRO_DATA, BlockType.HFILE_DATA):
        return rows
    record, kinds, has_nested = _parsed(avro)
    names = set(wanted.names)
    for field in record["fields"]:
        name = field["name"]
        if name not in names:
            continue
        place = rows.schema.get_field_index(name)
        if place < 0 and field.get("default") is not None:
            rows = rows.append_column(name, _constant(field["default"], kinds.field(name), rows.num_rows))
        elif (
            place >= 0 and has_nested and _lacks_fields(rows.schema.field(place).type, kinds.field(name).type)
        ):
            raise _refusal(kinds.field(name), "defaults of fields inside it")
    return rows


@lru_cache(maxsize=8)
def _parsed(avro: str) -> tuple[Any, pa.Schema, bool]:
    """Return a record, its columns, and whether a field inside a column has a default."""
    record = json.loads(avro)
    return record, avro_to_arrow(avro), any(map(_has_default, list(walk_avro(record))[1:]))


def _has_default(kind: Any) -> bool:
    return any(field.get("default") is not None for field in kind.get("fields") or ())


def _lacks_fields(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a struct in a stored type lacks a field of the wanted one."""
    pairs = paired_parts(stored, wanted) or []
    return any(one is None or (other is not None and _lacks_fields(one, other)) for _, one, other in pairs)


def _constant(default: Any, field: pa.Field, count: int) -> pa.Array:
    kind = field.type
    types = pa.types
    if types.is_temporal(kind):
        default = pa.scalar(default, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind).as_py()
    elif types.is_binary(kind):
        default = default.encode("latin-1")
    elif not (
        types.is_boolean(kind) or types.is_string(kind) or types.is_integer(kind) or types.is_floating(kind)
    ):
        raise _refusal(field, f"the default {default!r}")
    return pa.repeat(pa.scalar(default, kind), count)


def _refusal(field: pa.Field, default: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"records of a log are older than column {field.name!r} of type {field.type}, or than fields of it, and it has {default}, "
        "which this engine does not fill. Compact the table with Apache Hudi, or read its base files only (read optimized)"
    )
