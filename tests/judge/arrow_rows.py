"""Plain rows of Arrow tables and of Spark data frames of the process under test."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.judge.rows import plain, plain_map


def rows_of_arrow(table: pa.Table) -> list[dict[str, Any]]:
    """Give the plain rows of an Arrow table."""
    columns = {
        field.name: [_plain(value, field.type) for value in table.column(index).to_pylist()]
        for index, field in enumerate(table.schema)
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def rows_of_spark(frame: Any) -> list[dict[str, Any]]:
    """Give the plain rows of a Spark data frame (session time zone UTC)."""
    return rows_of_arrow(frame.toArrow()) if hasattr(frame, "toArrow") else _collected(frame)


def _collected(frame: Any) -> list[dict[str, Any]]:
    return rows_of_arrow(pa.Table.from_batches(frame._collect_as_arrow()))


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return plain_map((_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value)
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return plain(value)
