"""Rows of a partial update that are older than the stored row, whose ordering value they do not take.

The written row keeps the stored ordering value, so merging would compare that with itself. A null in the batch claims nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.modes.registry import keeps_newer_rows
from hudi_engine.format.merge.ordering import is_default, newer_wins
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.tagging import SliceTag, stored_pairs
from hudi_engine.table.lookup.unit import DELETE_FLAG, UnitPlan

Mask = npt.NDArray[np.bool_]


def drop_outdated_updates(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit) -> TaggedUnit:
    """Return a partition's rows without those that are older than every stored row of their key."""
    fields = compared_apart(context.config, plan, tagged.batch)
    if not fields or not tagged.tags:
        return tagged
    tags = [_without_newer(context, fields, tagged.batch, tag) for tag in tagged.tags]
    met = np.zeros(tagged.batch.num_rows, dtype=bool)
    for tag in tagged.tags:
        met[np.asarray(tag.matched)] = True
    for tag in tags:
        met[np.asarray(tag.matched)] = False
    kept = replace(tagged, tags=tuple(tag for tag in tags if len(tag.matched)))
    return kept.only(~met)


def _without_newer(context: WriteContext, fields: list[str], batch: pa.Table, tag: SliceTag) -> SliceTag:
    """Return a tag without the stored rows that are newer than the row of the batch with their key."""
    rows, hits, wanted = stored_pairs(context.read, batch, tag, fields)
    late = late_rows(context.config, fields, taken(rows, hits), taken(batch, wanted))
    if not late.any():
        return tag
    numbers = np.asarray(wanted)
    if tag.file_slice.log_files or len(tag.batch_rows) != rows.num_rows:
        # for rows that logs have changed the row of the base file is not known
        return tag.without(np.setdiff1d(numbers[late], numbers[~late]))
    newer = np.zeros(rows.num_rows, dtype=bool)
    newer[hits[late]] = True
    batch_rows = pc.if_else(pa.array(newer), pa.scalar(None, tag.batch_rows.type), tag.batch_rows)
    left = pc.unique(batch_rows.drop_null())
    return SliceTag(tag.file_slice, batch_rows, left.take(pc.sort_indices(left)))


def compared_apart(config: TableConfig, plan: UnitPlan, rows: pa.Table) -> list[str]:
    """Return the ordering fields where rows are to be compared before they are put together; empty where merging does it."""
    if plan.update_columns is None or not keeps_newer_rows(config):
        return []
    taken = {name.lower() for name in plan.update_columns}
    fields = list(config.ordering_fields)
    if {name.lower() for name in fields} <= taken or not {*fields} <= {*rows.column_names}:
        return []
    return fields


def late_rows(config: TableConfig, fields: list[str], stored: pa.Table, rows: pa.Table) -> Mask:
    """Return which rows are older than the stored ones."""
    old, given = ([each.column(name) for name in fields] for each in (stored, rows))
    new = [pc.coalesce(mine, theirs.cast(mine.type)) for mine, theirs in zip(given, old, strict=True)]
    marked = delete_mask(rows, config)
    always = (
        np.zeros(rows.num_rows, bool)
        if marked is None
        else np.asarray(marked.fill_null(False)) & is_default(given)
    )
    if DELETE_FLAG in rows.column_names:
        always |= np.asarray(rows.column(DELETE_FLAG).fill_null(False))
    late: Mask = ~newer_wins(old, new) & ~always
    return late
