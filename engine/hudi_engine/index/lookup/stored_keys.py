"""A few of the record keys that a file slice holds, which tell how its writer made and placed them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.index.filters.footer import read_key_footer
from hudi_engine.keygen.generator import field_type, field_values, resolve_field
from hudi_engine.keygen.text import key_text
from hudi_engine.logformat.format import BlockType
from hudi_engine.merge.base_reader import opened_base_file, select_schema
from hudi_engine.merge.log_records import block_rows
from hudi_engine.merge.log_scanner import scan_slice
from hudi_engine.merge.read_context import ReadContext
from hudi_engine.schema.meta_fields import RECORD_KEY


def some_stored_keys(read: ReadContext, file_slice: FileSlice) -> list[str]:
    """Return the smallest and the greatest key of a base file, or some of the first log block; empty when there is none.

    Args:
        read: How the table is read.
        file_slice: The slice.

    Raises:
        CorruptTableError: A file is damaged.
    """
    if file_slice.base_file is not None:
        footer = read_key_footer(read.storage, file_slice.base_file.path)
        return [key for key in dict.fromkeys((footer.min_key, footer.max_key)) if key is not None]
    keys = _first_rows(read, file_slice, [RECORD_KEY]).column(RECORD_KEY)
    return [keys[0].as_py(), keys[len(keys) - 1].as_py()] if len(keys) else []


def names_its_field(read: ReadContext, file_slice: FileSlice) -> bool | None:
    """Tell whether a slice has its keys, of one field each, as ``field:value`` and not as the bare value; None when it has none.

    A bare value may begin with the name of its column as well (``arn:aws:...`` of a column ``arn``), so a key of text is compared
    with what its row has in that column, where a row has it yet.

    Args:
        read: How the table is read.
        file_slice: The slice.

    Raises:
        CorruptTableError: A file is damaged.
    """
    (field,) = read.config.record_key_fields
    stored = some_stored_keys(read, file_slice)
    if not stored or not all(key.startswith(f"{field}:") for key in stored):
        return False if stored else None
    try:
        steps = resolve_field(read.schema, field)
    except SchemaError:
        return True
    if not pa.types.is_string(field_type(read.schema, steps)):
        return True
    rows = _first_rows(read, file_slice, [RECORD_KEY, steps[0]]).slice(0, 1)
    return not (
        rows.num_rows and key_text(field_values(rows, field)).equals(key_text(rows.column(RECORD_KEY)))
    )


def _first_rows(read: ReadContext, file_slice: FileSlice, columns: Sequence[str]) -> pa.Table:
    """Return the first row of a base file, or those of the first log block, with a key."""
    wanted = select_schema(read.schema, columns)
    if file_slice.base_file is not None:
        with opened_base_file(read, file_slice.base_file) as base:
            rows = base.take(np.arange(min(base.count, 1)), columns)
            return rows.filter(rows.column(RECORD_KEY).is_valid())
    for scanned in scan_slice(read, file_slice).blocks:
        if scanned.place.kind is not BlockType.DELETE:
            rows = block_rows(read, file_slice, scanned.load(read), wanted)
            rows = rows.filter(rows.column(RECORD_KEY).is_valid())
            if rows.num_rows:
                return rows
    return wanted.empty_table()
