"""Record keys of rows: the stored key, or the one its columns make where a table keeps no meta columns."""

from __future__ import annotations

import pyarrow as pa

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.text import complex_keys, key_text
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.schema.nested import nested_values


def key_column_names(config: TableConfig) -> list[str]:
    """Top-level columns that :func:`record_keys` looks at."""
    if config.populate_meta_fields:
        return [RECORD_KEY]
    return [RECORD_KEY, *dict.fromkeys(name.split(".")[0] for name in config.record_key_fields)]


def record_keys(table: pa.Table, config: TableConfig) -> pa.ChunkedArray:
    """Return key of each row."""
    return table.column(RECORD_KEY) if config.populate_meta_fields else made_keys(table, config)


def made_keys(table: pa.Table, config: TableConfig) -> pa.ChunkedArray:
    """Return the key that the columns of each row make."""
    fields = config.record_key_fields
    if not fields:
        raise UnsupportedTableError(
            f"table {config.name!r} has neither stored record keys nor hoodie.table.recordkey.fields, so "
            "its log records cannot be matched with its base files; read it with merge "
            "type skip_merge or base_only"
        )
    texts = [key_text(_column(table, name)) for name in fields]
    keys = texts[0] if len(fields) == 1 else complex_keys(list(zip(fields, texts, strict=True)))
    return pa.chunked_array([keys], pa.string())


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    parts = name.split(".")
    if parts[0] not in table.column_names:
        raise CorruptTableError(
            f"the key column {name!r} is not among the table's columns {table.column_names}"
        )
    return nested_values(table, parts)
