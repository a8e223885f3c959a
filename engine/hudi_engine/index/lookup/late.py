"""Rows of a partial update that are older than the stored row, whose ordering value they do not take.

The row that is written keeps the stored ordering value, so merging it would compare that with itself. What the batch's row says
counts, as where it takes the value: the older row, and the older delete, lose. A null there claims nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.config.table_config import TableConfig
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.index.lookup.partition import TaggedUnit
from hudi_engine.index.lookup.unit import DELETE_FLAG, UnitPlan
from hudi_engine.merge.delete_marker import delete_mask
from hudi_engine.merge.modes.registry import keeps_newer_rows
from hudi_engine.merge.ordering import is_default, newer_wins
from hudi_engine.merge.slice_reader import read_slice
from hudi_engine.schema.meta_fields import RECORD_KEY

Mask = npt.NDArray[np.bool_]


def without_late(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit) -> TaggedUnit:
    """Return a partition's rows without those that are older than every stored row of their key.

    Args:
        context: The write.
        plan: How rows are treated.
        tagged: The partition's rows after the look-up.
    """
    batch, fields = tagged.batch, compared_apart(context.config, plan, tagged.batch)
    if not fields or not tagged.tags:
        return tagged
    stored, late = np.zeros(batch.num_rows, np.int64), np.zeros(batch.num_rows, np.int64)
    for tag in tagged.tags:
        rows = read_slice(context.read, tag.file_slice, columns=[RECORD_KEY, *fields])
        keys = batch.column(RECORD_KEY).take(tag.matched).combine_chunks()
        places = pc.index_in(rows.column(RECORD_KEY).combine_chunks(), value_set=keys)
        wanted = tag.matched.take(places.drop_null())
        old = rows.take(pa.array(np.flatnonzero(np.asarray(places.is_valid()))))
        numbers = np.asarray(wanted)
        np.add.at(stored, numbers, 1)
        np.add.at(late, numbers[late_rows(context.config, fields, old, batch.take(wanted))], 1)
    loses = (stored > 0) & (stored == late)
    return tagged.only(~loses) if loses.any() else tagged


def compared_apart(config: TableConfig, plan: UnitPlan, rows: pa.Table) -> list[str]:
    """Return the ordering fields where rows are to be compared before they are put together; empty where merging does it.

    Args:
        config: The table's settings.
        plan: How rows are treated.
        rows: Incoming rows.
    """
    if plan.update_columns is None or not keeps_newer_rows(config):
        return []
    taken = {name.lower() for name in plan.update_columns}
    fields = list(config.ordering_fields)
    if {name.lower() for name in fields} <= taken or not {*fields} <= {*rows.column_names}:
        return []
    return fields


def late_rows(config: TableConfig, fields: list[str], stored: pa.Table, rows: pa.Table) -> Mask:
    """Tell which rows are older than the stored ones.

    Args:
        config: The table's settings.
        fields: The ordering fields.
        stored: The stored row of each pair.
        rows: The incoming one.
    """
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
