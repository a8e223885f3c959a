"""The columns Hudi adds to every record (table versions 4 to 6, 8 and 9).

Source: Hudi table format, base files: five optional strings before the table's own columns.
``_hoodie_operation`` follows them only in tables that keep the operation of each record;
``_hoodie_is_deleted`` is an ordinary column with a special meaning.
"""

from __future__ import annotations

import pyarrow as pa

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
META_FIELDS: tuple[str, ...] = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)

OPERATION = "_hoodie_operation"
IS_DELETED = "_hoodie_is_deleted"
DELETES = "__hudi_is_deleted"
"""Marks the rows of one batch that delete, as ``_hoodie_is_deleted`` does, and is never stored."""

INSERTED, UPDATED_FROM, UPDATED_TO, DELETED = OPERATIONS = ("I", "-U", "U", "D")
"""Values of ``_hoodie_operation``: a new row, a row before and after an update, a deleted row."""

META_SCHEMA = pa.schema([pa.field(name, pa.string()) for name in META_FIELDS])


def meta_fields(*, operation: bool = False) -> tuple[str, ...]:
    """Return names of a table's meta columns in order."""
    return (*META_FIELDS, OPERATION) if operation else META_FIELDS


def with_meta_columns(schema: pa.Schema, *, operation: bool = False) -> pa.Schema:
    """Put the five meta columns before the columns of ``schema``; those already there are not repeated."""
    names = meta_fields(operation=operation)
    meta = [pa.field(name, pa.string()) for name in names]
    return pa.schema([*meta, *(field for field in schema if field.name not in names)])


def without_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Return the table's own columns: ``schema`` without the five meta columns, order kept."""
    return pa.schema([field for field in schema if field.name not in META_FIELDS])
