"""A partition's rows divided by the file groups they go to, so that several threads or tasks can write them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.filegroup.markers import marker_name
from hudi_engine.format.index.buckets import bucket_ids
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.table.write.place.by_bucket import slices_by_bucket
from hudi_engine.table.write.place.to_logs import log_target

Mask = npt.NDArray[np.bool_]


def shares_of(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit) -> list[TaggedUnit]:
    """Return shares that together are a partition's rows; each file group is written by one of them.

    New rows, and the files that have room for them, are one share; so is every other file group. A share has what it needs
    of the partition, so `hudi_engine.table.write.place.unit.write_unit` writes the same files as it would for the whole.
    """
    if context.config.keeps_operations or tagged.batch.num_rows == 0:
        return [tagged]
    if plan.index.buckets is not None:
        return _by_bucket(context, plan, tagged, plan.index.buckets)
    return _by_file(context, plan, tagged) if len(tagged.tags) > 1 else [tagged]


def _by_bucket(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit, count: int) -> list[TaggedUnit]:
    unit = tagged.unit
    numbers = np.asarray(bucket_ids(tagged.batch, context.config, count, context.options, plan.index.form))
    buckets = np.unique(numbers)
    if len(buckets) < 2:
        return [tagged]
    known = {} if plan.replaces else slices_by_bucket(unit, count)
    return [
        TaggedUnit(
            replace(unit, slices=(known[bucket],) if bucket in known else ()),
            tagged.batch.filter(pa.array(numbers == bucket)),
            (),
        )
        for bucket in buckets.tolist()
    ]


def _by_file(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit) -> list[TaggedUnit]:
    unit = tagged.unit
    fresh = np.ones(tagged.batch.num_rows, dtype=bool)
    for tag in tagged.tags:
        fresh[np.asarray(tag.matched)] = False
    takers = takers_of(context, plan, tagged, int(fresh.sum()))
    shares = []
    for tag in tagged.tags:
        rows = _rows_of(tagged.batch.num_rows, tag.matched)
        if tag.file_slice.file_id in takers:
            fresh |= rows
            continue
        own = replace(tagged, unit=replace(unit, slices=(tag.file_slice,)), tags=(tag,))
        shares.append(own.only(rows))
    if fresh.any():
        with_room = tuple(each for each in unit.slices if each.file_id in takers)
        tags = tuple(tag for tag in tagged.tags if tag.file_slice.file_id in takers)
        rest = replace(tagged, unit=replace(unit, slices=with_room), tags=tags)
        shares.append(rest.only(fresh))
    return shares


def takers_of(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit, new_rows: int) -> set[str]:
    """Return the file ids of the small files that new rows go to."""
    found = shares_of_new(context, plan, tagged.unit, new_rows)
    return {share.file_slice.file_id for share in found if share.file_slice is not None}


def _rows_of(count: int, numbers: pa.Array) -> Mask:
    rows = np.zeros(count, dtype=bool)
    rows[np.asarray(numbers)] = True
    return rows


@dataclass(frozen=True)
class InsertShare:
    """``rows`` new rows for a small file, or for new file groups when ``file_slice`` is None."""

    file_slice: FileSlice | None
    rows: int


def shares_of_new(context: WriteContext, plan: UnitPlan, unit: PartitionUnit, rows: int) -> list[InsertShare]:
    """Divide new rows of a partition as the write's plan has it; all go to new files where it does not pack."""
    if rows and (not plan.packing or plan.delete_only):
        return [InsertShare(None, rows)]
    frozen = {(unit.partition, file_id) for file_id in unit.frozen}
    return share_inserts(context, unit.slices, rows, frozen)


def share_inserts(
    context: WriteContext, slices: Sequence[FileSlice], rows: int, frozen: Collection[tuple[str, str]] = ()
) -> list[InsertShare]:
    """Divide new rows of one partition over small files and new files."""
    shares: list[InsertShare] = []
    left = rows
    ratio = context.options[FileOptions.LOG_COMPRESSION_RATIO]
    for small in small_files(context, slices, frozen):
        if left == 0:
            break
        room = context.file_size.room_in(small.merged_size(ratio))
        if room <= 0:
            continue
        taken = min(left, room)
        shares.append(InsertShare(small, taken))
        left -= taken
    if left:
        shares.append(InsertShare(None, left))
    return shares


def small_files(
    context: WriteContext, slices: Sequence[FileSlice], frozen: Collection[tuple[str, str]] = ()
) -> list[FileSlice]:
    """Return slices of a partition that may take new rows, smallest first."""
    limit = context.options[FileOptions.SMALL_FILE_LIMIT]
    if limit == 0:
        return []
    config = context.config
    merge_on_read = config.table_type is TableType.MERGE_ON_READ
    ratio = context.options[FileOptions.LOG_COMPRESSION_RATIO]
    if merge_on_read:
        limit = min(limit, context.options[EngineOptions.PACKING_MAX_BYTES])
    found = [
        each
        for each in slices
        if each.base_file is not None
        and each.merged_size(ratio) < limit
        and (each.partition, each.file_id) not in frozen
        # Changelog mode keeps changes in logs, which a rewritten base file would end.
        and not (config.keeps_operations and each.log_files)
    ]
    found.sort(key=lambda each: (each.merged_size(ratio), each.file_id))
    return found[:1] if merge_on_read else found


def planned_markers(task: WriteTask, plan: UnitPlan, tagged: TaggedUnit) -> Iterator[str]:
    """Give the markers of the file groups that rows of a share are in, or have room in.

    Whatever is not foreseen, such as a new file group, the task announces when it comes to it; what is foreseen need not come,
    as when no row changes.
    """
    context, unit = task.context, tagged.unit
    is_log = context.config.table_type is TableType.MERGE_ON_READ
    groups, takers = _groups(context, plan, tagged)
    for each in groups:
        if is_log and each.file_id not in takers:
            target = log_target(context, unit, each)
            name = log_file_name(each.file_id, target.instant, target.next_version, task.write_token)
            yield marker_name(unit.partition, name, context.config.table_version.log_marker)
        else:
            name = base_file_name(each.file_id, task.write_token, context.instant)
            yield marker_name(unit.partition, name, "MERGE")


def _groups(
    context: WriteContext, plan: UnitPlan, tagged: TaggedUnit
) -> tuple[Sequence[FileSlice], Collection[str]]:
    if plan.index.buckets is not None:
        # Shares of several buckets are those of changelog mode, or of no rows.
        return tagged.unit.slices if len(tagged.unit.slices) == 1 else (), ()
    matched = sum(len(tag.matched) for tag in tagged.tags)
    takers = takers_of(context, plan, tagged, max(tagged.batch.num_rows - matched, 0))
    named = takers | {tag.file_slice.file_id for tag in tagged.tags}
    return [each for each in tagged.unit.slices if each.file_id in named], takers
