"""Rows of a partition whose keys were looked up: merged or appended where they are, packed where they are new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.config.enums import TableType
from hudi_engine.handles.append import LogDeletes, append_log
from hudi_engine.handles.changelog import settled_rows
from hudi_engine.handles.create import create_files
from hudi_engine.handles.merge import FileChanges, compose_partial, merge_file
from hudi_engine.handles.write_task import WriteTask
from hudi_engine.index.lookup.tagging import SliceTag, StoredKeys, tag_slice
from hudi_engine.index.lookup.unit import PartitionUnit, UnitPlan, lookup_keys
from hudi_engine.schema.meta_fields import OPERATION, RECORD_KEY
from hudi_engine.timeline.commit_metadata import WriteStat
from hudi_engine.write.place.changelog import append_changes, log_target
from hudi_engine.write.place.deletes import deletes_of, split_deletes, takes_several
from hudi_engine.write.place.packing import share_inserts
from hudi_engine.write.place.returning import brings_back


def write_keys(
    task: WriteTask, plan: UnitPlan, unit: PartitionUnit, batch: pa.Table, tags: list[SliceTag]
) -> Iterator[WriteStat]:
    """Write the rows of a partition: those with a tag where their key is, the others as new ones."""
    deletes = deletes_of(batch, plan, task.context.config)
    fresh = np.ones(batch.num_rows, dtype=bool)
    for tag in tags:
        fresh[np.asarray(tag.matched)] = False
    if OPERATION in batch.column_names:
        inserts = settled_rows(batch.filter(pa.array(fresh)))
    else:
        if deletes is not None:
            fresh &= ~np.asarray(deletes.fill_null(False))
        inserts = None if plan.delete_only else batch.filter(pa.array(fresh))
    yield from _place(task, plan, unit, batch, tags, deletes, inserts)


def _place(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    batch: pa.Table,
    tags: list[SliceTag],
    deletes: pa.Array | None,
    inserts: pa.Table | None,
) -> Iterator[WriteStat]:
    by_file = {tag.file_slice.file_id: tag for tag in tags}
    open_unit = unit
    if task.context.config.keeps_operations:
        # A base file that is rewritten for new rows would take updates in without a trace.
        open_unit = replace(unit, slices=tuple(each for each in unit.slices if each.file_id not in by_file))
    packed, new_rows = _pack(task, plan, open_unit, inserts)
    for file_slice in unit.slices:
        tag, added = by_file.get(file_slice.file_id), packed.get(file_slice.file_id)
        if tag is None and added is None:
            continue
        if tag is not None and added is None and _appends(task, plan, unit, tag, batch, deletes):
            yield from _append(task, plan, unit, tag, batch, deletes)
            continue
        if tag is not None and file_slice.log_files:
            tag, added = _on_live_rows(task, plan, tag, batch, deletes, added)
        changes = FileChanges(
            None if tag is None else tag.batch_rows,
            None if tag is None else batch,
            deletes,
            plan.delete_only,
            added,
            plan.update_columns,
        )
        stat = merge_file(task, file_slice, changes)
        if stat is not None:
            yield stat
    if new_rows is not None and new_rows.num_rows:
        yield from create_files(task, unit.partition, new_rows)


def _appends(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    tag: SliceTag,
    batch: pa.Table,
    deletes: pa.Array | None,
) -> bool:
    """Tell whether the rows of a slice go to its log."""
    config = task.context.config
    if config.table_type is not TableType.MERGE_ON_READ:
        return False
    if not config.keeps_operations and takes_several(plan, unit, batch, tag):
        return False
    if plan.delete_only or OPERATION in batch.column_names:
        return True
    return not brings_back(task, unit, tag.file_slice, batch.take(_kept(tag, deletes)))


def _kept(tag: SliceTag, deletes: pa.Array | None) -> pa.Array:
    """Return the numbers of the batch rows of a tag that are no deletes."""
    if deletes is None:
        return tag.matched
    return tag.matched.filter(pc.invert(deletes.take(tag.matched).fill_null(False)))


def _on_live_rows(
    task: WriteTask,
    plan: UnitPlan,
    tag: SliceTag,
    batch: pa.Table,
    deletes: pa.Array | None,
    added: pa.Table | None,
) -> tuple[SliceTag | None, pa.Table | None]:
    """Return the tag of a slice as its logs have left it, and the rows to add: those come back whose key a log deleted."""
    pruning = plan.index.pruning(task.context.options)
    live = tag_slice(task.context.read, tag.file_slice, lookup_keys(batch), pruning, StoredKeys.LIVE)
    if plan.delete_only:
        return live, added
    numbers = _kept(tag, deletes)
    if live is not None:
        numbers = numbers.filter(pc.invert(pc.is_in(numbers, value_set=live.matched)))
    back = batch.take(numbers)
    if added is None or not back.num_rows:
        return live, back if back.num_rows else added
    return live, pa.concat_tables([added, back])


def _pack(
    task: WriteTask, plan: UnitPlan, unit: PartitionUnit, inserts: pa.Table | None
) -> tuple[dict[str, pa.Table], pa.Table | None]:
    if inserts is None or inserts.num_rows == 0:
        return {}, None
    if not plan.packing:
        return {}, inserts
    frozen = {(unit.partition, file_id) for file_id in unit.frozen}
    packed: dict[str, pa.Table] = {}
    start = 0
    rest: pa.Table | None = None
    for share in share_inserts(task.context, unit.slices, inserts.num_rows, frozen):
        part = inserts.slice(start, share.rows)
        start += share.rows
        if share.file_slice is None:
            rest = part
        else:
            packed[share.file_slice.file_id] = part
    return packed, rest


def _append(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    tag: SliceTag,
    batch: pa.Table,
    deletes: pa.Array | None,
) -> Iterator[WriteStat]:
    touched = batch.take(tag.matched)
    if task.context.config.keeps_operations:
        marks = None if deletes is None else deletes.take(tag.matched)
        yield from append_changes(task, plan, unit, tag.file_slice, touched, marks)
        return
    if plan.update_columns is not None:
        touched = compose_partial(task.context, tag.file_slice, touched, plan.update_columns)
    target = log_target(unit, tag.file_slice)
    if plan.delete_only:
        yield from append_log(task, target, None, LogDeletes(touched.column(RECORD_KEY).combine_chunks()))
        return
    mask = None if deletes is None else deletes.take(tag.matched).fill_null(False)
    yield from append_log(task, target, *split_deletes(task, touched, mask))
