"""Coded columns: texts of few values as numbers into a dictionary, as files hold them and Arrow's Parquet writer takes them.

A merge copies most rows from one file to the next; coded, their texts are neither made nor looked up again on the way.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def decoded(rows: pa.Table) -> pa.Table:
    """Return rows whose coded columns are plain values."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            plain = pa.chunked_array(
                [each.dictionary_decode() for each in rows.column(number).chunks], field.type.value_type
            )
            rows = rows.set_column(number, field.with_type(field.type.value_type), plain)
    return rows


def coded_like(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of another schema; columns that are coded there are coded.

    Args:
        rows: Rows with columns of the same names, in any order.
        schema: The wanted columns; codes are 32-bit.
    """
    columns = []
    for field in schema:
        column = rows.column(field.name)
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type):
            column = column.cast(field.type.value_type).dictionary_encode()
        columns.append(column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def with_used_values(rows: pa.Table) -> pa.Table:
    """Return rows whose coded columns have one dictionary each, of the values that a row has and no others.

    Arrow's writer takes a column's dictionary into the file as it is: the value of a row that was deleted would stay in it. Where
    the dictionary changes within a row group, it writes the rest of that group without one.
    """
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type) and len(rows):
            column = rows.column(number).unify_dictionaries().combine_chunks()
            whole = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            rows = rows.set_column(number, field, _used(whole))
    return rows


def _used(column: pa.DictionaryArray) -> pa.DictionaryArray:
    used = np.sort(pc.unique(column.indices).drop_null().to_numpy())
    if len(used) == len(column.dictionary):
        return column
    codes = np.zeros(len(column.dictionary), np.int32)
    codes[used] = np.arange(len(used), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(codes).take(column.indices), column.dictionary.take(pa.array(used))
    )
