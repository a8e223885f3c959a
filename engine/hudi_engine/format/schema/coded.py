"""Coded columns: texts of few values as numbers into a dictionary, as files hold them and Arrow's Parquet writer takes them.

A merge copies most rows from one file to the next; coded, their texts are neither made nor looked up again on the way.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.schema.casting import cast_table, with_values


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns with the types of their values where they are coded."""
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def decoded(rows: pa.Table) -> pa.Table:
    """Return rows whose coded columns are plain values."""
    return cast_table(rows, plain_schema(rows.schema))


def coded_like(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of another schema; columns that are coded there are coded."""
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
    if not len(rows):
        return rows
    coded = [field.name for field in rows.schema if pa.types.is_dictionary(field.type)]
    return with_values(
        rows, {name: pa.chunked_array([_used(with_one_dictionary(rows.column(name)))]) for name in coded}
    )


def with_one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return the rows of a coded column in one piece; their chunks may have dictionaries of their own."""
    whole = column.unify_dictionaries().combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _used(column: pa.DictionaryArray) -> pa.DictionaryArray:
    used = np.sort(pc.unique(column.indices).drop_null().to_numpy())
    if len(used) == len(column.dictionary):
        return column
    codes = np.zeros(len(column.dictionary), np.int32)
    codes[used] = np.arange(len(used), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(codes).take(column.indices), column.dictionary.take(pa.array(used))
    )
