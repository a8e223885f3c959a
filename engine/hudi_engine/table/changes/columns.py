"""The columns and words in which changes are told."""

from __future__ import annotations

import pyarrow as pa

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.schema.meta_fields import OPERATION, without_meta_columns

CHANGE_TYPE, COMMITTED, STEP = "_change_type", "_commit_time", "__hudi_step"
"""Columns that follow those of the table; the last one is not told."""

INSERT, BEFORE, AFTER, DELETE = CHANGE_TYPES = ("insert", "update_before", "update_after", "delete")
NET, ALL, LATEST = MODES = ("net", "all", "latest")


def check_names(read_schema: pa.Schema) -> None:
    """Refuse a table whose own columns have the names in which changes are told; raises UnsupportedTableError."""
    own = [name for name in read_schema.names if name.lower() in (CHANGE_TYPE, COMMITTED)]
    if own:
        raise UnsupportedTableError(
            f"the changes of a table with a column {own[0]!r} cannot be told: that is the name of a column of its changes, "
            f"{CHANGE_TYPE} and {COMMITTED}. Rename the column in the table"
        )


def task_schema(read_schema: pa.Schema) -> pa.Schema:
    """Return what `compare_group` gives: meta columns, data columns, the change, and the step's number."""
    text = [pa.field(name, pa.string()) for name in (CHANGE_TYPE, COMMITTED)]
    return pa.schema([*read_schema, *text, pa.field(STEP, pa.int32())])


def told_schema(read_schema: pa.Schema) -> pa.Schema:
    """Return `told_columns` with their types."""
    types = task_schema(read_schema)
    return pa.schema([types.field(name) for name in told_columns(read_schema)])


def told_columns(read_schema: pa.Schema) -> list[str]:
    """Return the columns that changes are told in: those of the table, then what happened and when."""
    names = [field.name for field in without_meta_columns(read_schema) if field.name != OPERATION]
    return [*names, CHANGE_TYPE, COMMITTED]
