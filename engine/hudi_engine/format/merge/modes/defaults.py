"""Tables whose rows are filled column by column and whose columns have defaults other than null.

Hudi takes a value that equals the column's default in the table's Avro schema for "no value given", and no null for one, where
that default is not null; which values equal it differs by type and release. Before version 9, `PartialUpdateAvroPayload` asks
for null alone, as this engine does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.meta_fields import IS_DELETED

_FILLED = (MergeMode.PARTIAL_UPDATE, MergeMode.OVERWRITE_NON_DEFAULTS)
_ASKS_FOR_NULL_BEFORE = 9


def defaults_that_fill(config: TableConfig, avro_schema: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return the defaults by which Hudi tells that a record of a table says nothing of a column, where they are not null."""
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
