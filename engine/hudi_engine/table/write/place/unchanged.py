"""Leaving out rows of an upsert that change nothing of what is stored, so that no file is written for them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.modes.registry import keeps_newer_rows
from hudi_engine.format.merge.ordering import newer_wins
from hudi_engine.format.merge.row_equality import equal_rows
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.tagging import SliceTag, stored_pairs
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG, UnitPlan
from hudi_engine.table.txn.conflict import FileGroup

Mask = npt.NDArray[np.bool_]


def without_unchanged(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit) -> TaggedUnit:
    """Return a partition's rows without those whose every stored row has the values they bring, or is newer; deletes stay."""
    batch = tagged.batch
    if not tagged.tags:
        return tagged
    columns = [
        name for name in context.read.schema.names if name not in META_FIELDS and name in batch.column_names
    ]
    if plan.update_columns is not None:
        taken = {name.lower() for name in plan.update_columns}
        columns = [name for name in columns if name.lower() in taken]
    stored, equal = np.zeros(batch.num_rows, np.int64), np.zeros(batch.num_rows, np.int64)
    for tag in tagged.tags:
        _count(context, batch, tag, columns, stored, equal)
    unchanged = (stored > 0) & (stored == equal) & ~_marked(batch, context)
    if not unchanged.any():
        return tagged
    return tagged.only(~unchanged)


def _count(
    context: WriteContext,
    batch: pa.Table,
    tag: SliceTag,
    columns: list[str],
    stored: npt.NDArray[np.int64],
    equal: npt.NDArray[np.int64],
) -> None:
    """Count, for each row of the batch, the stored rows of its key and those that equal it."""
    rows, hits, wanted = stored_pairs(context.read, batch, tag, columns)
    old, new = taken(rows, hits), taken(batch, wanted)
    same = equal_rows(old, new, columns) | _loses(context.config, old, new)
    np.add.at(stored, np.asarray(wanted), 1)
    np.add.at(equal, np.asarray(wanted)[same], 1)


def _loses(config: TableConfig, old: pa.Table, new: pa.Table) -> Mask:
    """Return which new rows are older than the stored ones, in a table where these then stay as they are."""
    names = config.ordering_fields
    if not keeps_newer_rows(config) or not {*names} <= {*old.column_names}:
        return np.zeros(old.num_rows, dtype=bool)
    return ~newer_wins([old.column(name) for name in names], [new.column(name) for name in names])


def _marked(batch: pa.Table, context: WriteContext) -> Mask:
    """Rows that delete, or that stand beside the stored row."""
    marked = np.zeros(batch.num_rows, dtype=bool)
    deletes = delete_mask(batch, context.config)
    if deletes is not None:
        marked |= np.asarray(deletes).astype(bool)
    for flag in (DELETE_FLAG, INSERT_FLAG):
        if flag in batch.column_names:
            marked |= np.asarray(pc.fill_null(batch.column(flag), False)).astype(bool)
    return marked


_LEFT = "fileIdsLeft"


def stat_of_left(found: TaggedUnit, kept: TaggedUnit) -> list[WriteStat]:
    """Tell in a write stat without a file, which no commit gets, in which file groups rows were left as they are."""
    written = {tag.file_slice.file_id: len(tag.matched) for tag in kept.tags}
    left = [
        tag.file_slice.file_id
        for tag in found.tags
        if len(tag.matched) > written.get(tag.file_slice.file_id, 0)
    ]
    return [WriteStat(partition_path=found.unit.partition, other={_LEFT: left})] if left else []


def unchanged_file_groups(stats: Iterable[WriteStat]) -> frozenset[FileGroup]:
    """Return the file groups that write stats of the tasks name so."""
    return frozenset(
        (stat.partition_path or "", file_id) for stat in stats for file_id in stat.other.get(_LEFT, ())
    )
