"""Rows of a partition whose keys were looked up: merged or appended where they are, packed where they are new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.enums import TableType
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.meta_fields import OPERATION, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.append import LogDeletes, append_log, log_rows
from hudi_engine.table.handles.changelog import settled_rows
from hudi_engine.table.handles.create import create_files
from hudi_engine.table.handles.merge import merge_file
from hudi_engine.table.handles.updates import FileChanges
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.tagging import SliceTag, StoredKeys, tag_slice
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan, lookup_keys
from hudi_engine.table.write.place.partial_logs import composed, partial_columns
from hudi_engine.table.write.place.shares import shares_of_new
from hudi_engine.table.write.place.sidecars import log_batch, note_sidecar
from hudi_engine.table.write.place.to_logs import (
    append_changes,
    brings_back,
    deletes_of,
    log_target,
    split_deletes,
    takes_several,
)


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
    """Write tagged rows file by file, new ones into small files first; one file group is rewritten once."""
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
        rows = None if tag is None else _TaggedRows(task, plan, unit, tag, batch, deletes)
        if rows is not None and added is None and rows.go_to_log():
            yield from rows.append()
            continue
        if rows is not None and file_slice.log_files:
            tag, added = rows.on_live_rows(added)
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


@dataclass(frozen=True)
class _TaggedRows:
    """The rows of a batch whose keys are in one slice."""

    task: WriteTask
    plan: UnitPlan
    unit: PartitionUnit
    tag: SliceTag
    batch: pa.Table
    deletes: pa.Array | None

    def go_to_log(self) -> bool:
        """Return whether the rows are appended to the slice's log."""
        config, plan = self.task.context.config, self.plan
        if config.table_type is not TableType.MERGE_ON_READ:
            return False
        if takes_several(self.unit, self.tag, config):
            return False
        if plan.delete_only or OPERATION in self.batch.column_names:
            return True
        names = [RECORD_KEY, *(each for each in config.ordering_fields if each in self.batch.column_names)]
        rows = taken(self.batch.select(names), self._kept())
        return not brings_back(self.task, self.unit, self.tag.file_slice, rows)

    def on_live_rows(self, added: pa.Table | None) -> tuple[SliceTag | None, pa.Table | None]:
        """Return the tag of the slice as its logs have left it, and the rows to add: those come back whose key a log deleted."""
        context = self.task.context
        pruning = self.plan.index.pruning(context.options)
        live = tag_slice(context.read, self.tag.file_slice, lookup_keys(self.batch), pruning, StoredKeys.LIVE)
        if self.plan.delete_only:
            return live, added
        numbers = self._kept()
        if live is not None:
            numbers = numbers.filter(pc.invert(pc.is_in(numbers, value_set=live.matched)))
        back = taken(self.batch, numbers)
        if added is None or not back.num_rows:
            return live, back if back.num_rows else added
        return live, pa.concat_tables([added, back])

    def append(self) -> Iterator[WriteStat]:
        """Append the rows to the slice's log, as changes in changelog mode."""
        task, plan, file_slice = self.task, self.plan, self.tag.file_slice
        touched = taken(self.batch, self.tag.matched)
        marks = None if self.deletes is None else self.deletes.take(self.tag.matched)
        target = log_target(task.context, self.unit, file_slice)
        if task.context.config.keeps_operations:
            yield from append_changes(task, plan, target, touched, marks)
            return
        columns = partial_columns(task.context, plan, file_slice)
        touched, stored = composed(task.context, plan, file_slice, touched, columns)
        if plan.delete_only:
            updates, mask = None, None
            removed: LogDeletes | None = LogDeletes(touched.column(RECORD_KEY).combine_chunks())
        else:
            mask = None if marks is None else marks.fill_null(False)
            updates, removed = split_deletes(task, touched, mask)
        stored = stored if mask is None else stored[~np.asarray(mask)]
        written = None if updates is None else log_rows(task, target, updates, columns, stored)
        stats = append_log(task, target, written, removed)
        batch = log_batch(self.tag, touched, written, mask, all_deleted=plan.delete_only)
        note_sidecar(task.context, plan, target, batch, stats)
        yield from stats

    def _kept(self) -> pa.Array:
        """Return the numbers of the rows that are no deletes."""
        matched = self.tag.matched
        if self.deletes is None:
            return matched
        return matched.filter(pc.invert(self.deletes.take(matched).fill_null(False)))


def _pack(
    task: WriteTask, plan: UnitPlan, unit: PartitionUnit, inserts: pa.Table | None
) -> tuple[dict[str, pa.Table], pa.Table | None]:
    if inserts is None or inserts.num_rows == 0:
        return {}, None
    packed: dict[str, pa.Table] = {}
    start = 0
    rest: pa.Table | None = None
    for share in shares_of_new(task.context, plan, unit, inserts.num_rows):
        part = inserts.slice(start, share.rows)
        start += share.rows
        if share.file_slice is None:
            rest = part
        else:
            packed[share.file_slice.file_id] = part
    return packed, rest
