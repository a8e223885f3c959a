"""Rows that delete, and the ordering values that deletes carry.

A row deletes its key when ``_hoodie_is_deleted`` is true (in a batch also ``__hudi_is_deleted``), when the table's
delete field holds the delete marker (``hoodie.payload.delete.field`` and ``.marker``; ``Op`` = ``D`` or ``d``
for AWSDmsAvroPayload), or when ``_hoodie_operation`` is ``D``, or ``-U`` (the row before an update) but in tables of Hudi 0.x.
Source: Hudi table format, merging.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.evolution import cast_array
from hudi_engine.format.schema.meta_fields import DELETED, DELETES, IS_DELETED, OPERATION, UPDATED_FROM
from hudi_engine.format.schema.nested import one_array


def delete_mask(table: pa.Table, config: TableConfig) -> pa.BooleanArray | None:
    """Return which rows of a batch are deletes; None when no row can be one."""
    masks = []
    names = set(table.column_names)
    for mark in (IS_DELETED, DELETES):
        if mark in names and pa.types.is_boolean(table.schema.field(mark).type):
            masks.append(table.column(mark))
    field, _ = config.delete_marker or ("", "")
    column = spellings(table.column_names).get(field)
    if column is not None:
        masks.append(_is_one_of(table.column(column), *config.delete_markers))
    if OPERATION in names:
        images = () if config.merges_as_release_0 else (UPDATED_FROM,)
        masks.append(_is_one_of(table.column(OPERATION), DELETED, *images))
    if not masks:
        return None
    joined = masks[0]
    for mask in masks[1:]:
        joined = pc.or_kleene(joined, mask)
    return one_array(pc.fill_null(joined, False))


def can_delete(schema: pa.Schema, config: TableConfig) -> bool:
    """Return whether rows of a schema can be deletes by a mark of their own."""
    return delete_mask(schema.empty_table(), config) is not None


def ordering_values(table: pa.Table, config: TableConfig) -> pa.Array | None:
    """Return ordering values of rows, for a delete block.

    Returns:
        The ordering column; a struct array of them where the table has several ordering fields; None where it
        has none, or the rows lack one.
    """
    fields = config.ordering_fields
    if not fields or any(name not in table.column_names for name in fields):
        return None
    columns = [table.column(name).combine_chunks() for name in fields]
    if len(columns) == 1:
        return columns[0]
    return pa.StructArray.from_arrays(columns, list(fields))


def _is_one_of(column: pa.ChunkedArray, *texts: str) -> pa.ChunkedArray:
    known = pa.array(texts, pa.string())
    chunks = [pc.is_in(cast_array(chunk, pa.string()), value_set=known) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.bool_())
