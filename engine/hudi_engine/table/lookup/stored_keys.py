"""A few of the keys and rows that a file slice holds, which tell how its writer made and placed them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.filters.footer import KeyFooter, key_footer, read_key_footer
from hudi_engine.format.keygen.generator import field_values, resolve_field
from hudi_engine.format.keygen.text import key_text
from hudi_engine.format.merge.base_reader import opened_base_file, select_schema
from hudi_engine.format.merge.log_records import block_rows
from hudi_engine.format.merge.log_scanner import load_blocks, scan_slice
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.schema.nested import field_type


def some_stored_keys(read: ReadContext, file_slice: FileSlice) -> list[str]:
    """Return the smallest and the greatest key of a base file, or some of the first log block; empty when there is none."""
    if file_slice.base_file is not None:
        return _ends(read_key_footer(read.storage, file_slice.base_file.path))
    return _ends_of(_first_rows(read, file_slice, [RECORD_KEY]))


def some_stored_rows(read: ReadContext, file_slice: FileSlice, columns: Sequence[str], most: int) -> pa.Table:
    """Return the first ``most`` rows of a base file, or some of the first log block, as they were written."""
    if file_slice.base_file is None:
        names = list(dict.fromkeys((*columns, RECORD_KEY)))
        return _first_rows(read, file_slice, names).select(list(columns)).slice(0, most)
    with opened_base_file(read, file_slice.base_file) as base:
        return base.take(np.arange(min(base.count, most)), columns)


def names_its_field(read: ReadContext, file_slice: FileSlice) -> bool | None:
    """Return whether a slice has its keys, of one field each, as ``field:value`` and not as the bare value; None without keys.

    A bare value may begin with the column's name too (``arn:aws:...`` in ``arn``), so text keys are compared with the row's value.
    """
    (field,) = read.config.record_key_fields
    column = _text_column(read, field)
    if file_slice.base_file is None:
        rows = _first_rows(read, file_slice, [RECORD_KEY, *([] if column is None else [column])])
        named = _named_by_look(field, _ends_of(rows))
        return not _is_bare(rows, field) if named and column is not None else named
    with opened_base_file(read, file_slice.base_file) as base:
        stored = _ends(key_footer(base.texts, base.count, file_slice.base_file.path))
        named = _named_by_look(field, stored)
        if not named or column is None:
            return named
        least = base.smallest(column)
        if least is not None and stored[0] in (least, f"{field}:{least}"):
            return stored[0] != least
        return not _is_bare(base.take(np.arange(min(base.count, 1)), [RECORD_KEY, column]), field)


def _named_by_look(field: str, stored: Sequence[str]) -> bool | None:
    """Tell by keys alone whether they name their field; None when there are none."""
    return all(key.startswith(f"{field}:") for key in stored) if stored else None


def _text_column(read: ReadContext, field: str) -> str | None:
    """Return the column of a key field whose values may begin like keys that name it, None for one that is no text, or is gone."""
    try:
        steps = resolve_field(read.schema, field)
    except SchemaError:
        return None
    return steps[0] if pa.types.is_string(field_type(read.schema, steps)) else None


def _is_bare(rows: pa.Table, field: str) -> bool:
    """Return whether the first row's key is the value it has."""
    first = rows.slice(0, 1)
    return bool(
        first.num_rows and key_text(field_values(first, field)).equals(key_text(first.column(RECORD_KEY)))
    )


def _ends_of(rows: pa.Table) -> list[str]:
    keys = rows.column(RECORD_KEY)
    return [keys[0].as_py(), keys[len(keys) - 1].as_py()] if len(keys) else []


def _ends(footer: KeyFooter) -> list[str]:
    return [key for key in dict.fromkeys((footer.min_key, footer.max_key)) if key is not None]


def _first_rows(read: ReadContext, file_slice: FileSlice, columns: Sequence[str]) -> pa.Table:
    """Return the rows of the first log block that has some with a key."""
    wanted = select_schema(read.schema, columns)
    blocks = scan_slice(read, file_slice).blocks
    with_rows = [each for each in blocks if each.place.is_data and not each.place.is_partial]
    for block in load_blocks(read, with_rows):
        rows = block_rows(read, file_slice, block, wanted)
        rows = rows.filter(rows.column(RECORD_KEY).is_valid())
        if rows.num_rows:
            return rows
    return wanted.empty_table()
