"""One partition's share of a write: tag, merge or append, and place the new rows.

The same function runs on the driver (small batches) and inside executor tasks, so every way of distributing the work gives
the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.config.enums import TableType
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError, DataError
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.handles.append import LogDeletes, LogTarget, append_log
from hudi_engine.handles.changelog import changes_of, given_changes, settled_rows
from hudi_engine.handles.create import create_files
from hudi_engine.handles.merge import FileChanges, compose_partial, merge_file
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.handles.write_task import WriteTask
from hudi_engine.index.kinds import IndexKind
from hudi_engine.index.tagging import SliceTag, tag_slice
from hudi_engine.keygen.bucket import bucket_ids
from hudi_engine.merge.delete_marker import delete_mask, ordering_values
from hudi_engine.merge.modes.registry import combine_batch
from hudi_engine.merge.slice_reader import read_slice
from hudi_engine.schema.meta_fields import OPERATION, RECORD_KEY
from hudi_engine.timeline.commit_metadata import WriteStat
from hudi_engine.write.packing import share_inserts

DELETE_FLAG = "__hudi_delete"
INSERT_FLAG = "__hudi_insert"


@dataclass(frozen=True)
class UnitPlan:
    """How the rows of a partition are treated.

    Args:
        index: Index of the write.
        lookup: Rows are looked up by key (upsert, delete, insert without duplicates).
        combine: Rows of the batch with the same key are merged into one first.
        delete_only: Rows are keys to delete; nothing is inserted.
        skip_existing: Rows whose key is in the table are dropped (insert without duplicates).
        packing: New rows may go into small files.
        replaces: The partition's file groups are taken out by this commit, so none of them is written to.
        update_columns: Only these columns of a row that is in the table are replaced; None for all.
    """

    index: IndexKind
    lookup: bool
    combine: bool
    delete_only: bool = False
    skip_existing: bool = False
    packing: bool = True
    replaces: bool = False
    update_columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class PartitionUnit:
    """One partition of the table and what a task must know of it.

    Args:
        partition: Partition path.
        slices: Latest slices, pending compactions merged in.
        log_instants: Instant for the next log's name by file id, where it is not the slice's own (pending compaction).
        frozen: File ids that take no new rows.
        exists: Whether the partition metadata file is there already.
    """

    partition: str
    slices: tuple[FileSlice, ...] = ()
    log_instants: tuple[tuple[str, str], ...] = ()
    frozen: tuple[str, ...] = ()
    exists: bool = False


@dataclass(frozen=True)
class TaggedUnit:
    """A partition's rows after the index look-up, ready to be written.

    Args:
        unit: The partition.
        batch: Its rows, combined by key where asked.
        tags: Which slices the rows touch.
    """

    unit: PartitionUnit
    batch: pa.Table
    tags: tuple[SliceTag, ...]

    @property
    def matched_rows(self) -> int:
        """Rows of the batch whose key is in the table."""
        return sum(len(tag.matched) for tag in self.tags)


def tag_unit(context: WriteContext, plan: UnitPlan, unit: PartitionUnit, batch: pa.Table) -> TaggedUnit:
    """Combine rows with the same key and look the keys up; reads key columns only, writes nothing.

    Args:
        context: The write.
        plan: How rows are treated.
        unit: The partition.
        batch: Its rows: key columns and data columns of the table's schema.
    """
    if plan.combine and batch.num_rows:
        batch = combine_batch(batch, context.config)
    if not plan.lookup or plan.index.buckets is not None or batch.num_rows == 0:
        return TaggedUnit(unit, batch, ())
    tags = _tags(context, plan, unit, batch)
    if not plan.combine and tags and OPERATION not in batch.column_names:
        combined = _combine_known(context, batch, tags)
        if combined.num_rows < batch.num_rows:
            batch, tags = combined, _tags(context, plan, unit, combined)
    if plan.skip_existing and tags:
        batch, tags = _unknown_rows(context, plan, unit, batch, tags)
    return TaggedUnit(unit, batch, tuple(_without_dead(context, batch, tags)))


def _tags(context: WriteContext, plan: UnitPlan, unit: PartitionUnit, batch: pa.Table) -> list[SliceTag]:
    keys = lookup_keys(batch)
    pruning = plan.index.pruning(context.options)
    found = (tag_slice(context.read, each, keys, pruning) for each in unit.slices)
    tags = [tag for tag in found if tag is not None]
    return [_every_row(tag, batch) for tag in tags] if OPERATION in batch.column_names else tags


def _every_row(tag: SliceTag, batch: pa.Table) -> SliceTag:
    """The tag of a batch whose rows name their changes, with all rows of a key instead of the first."""
    keys = batch.column(RECORD_KEY)
    known = pc.is_in(keys, value_set=keys.take(tag.matched).combine_chunks())
    return replace(tag, matched=pa.array(np.flatnonzero(np.asarray(known))))


def _combine_known(context: WriteContext, batch: pa.Table, tags: Sequence[SliceTag]) -> pa.Table:
    """The batch with the rows of a stored key combined into one, which can only be updated once."""
    known = pc.unique(batch.column(RECORD_KEY).take(_matched(tags)))
    is_known = pc.is_in(batch.column(RECORD_KEY), value_set=known)
    if INSERT_FLAG in batch.column_names:
        is_known = pc.and_(is_known, pc.invert(batch.column(INSERT_FLAG)))
    updates = combine_batch(batch.filter(is_known), context.config)
    return pa.concat_tables([updates, batch.filter(pc.invert(is_known))])


def _unknown_rows(
    context: WriteContext, plan: UnitPlan, unit: PartitionUnit, batch: pa.Table, tags: Sequence[SliceTag]
) -> tuple[pa.Table, list[SliceTag]]:
    """Rows whose key is not in the table; a key that only logs deleted is tagged, so that it comes back in its place."""
    known = np.zeros(batch.num_rows, dtype=bool)
    for tag in tags:
        known[_live_matches(context, batch, tag)] = True
    if not known.any():
        return batch, list(tags)
    batch = batch.filter(pa.array(~known))
    logged = any(tag.file_slice.log_files for tag in tags)
    return batch, _tags(context, plan, unit, batch) if logged and batch.num_rows else []


def _without_dead(context: WriteContext, batch: pa.Table, tags: Sequence[SliceTag]) -> list[SliceTag]:
    """Of several slices that hold a key, those whose logs deleted it do not count: an update would bring it back twice."""
    if len(tags) < 2 or not any(tag.file_slice.log_files for tag in tags):
        return list(tags)
    counts = np.bincount(np.asarray(_matched(tags)), minlength=batch.num_rows)
    if counts.max() < 2:
        return list(tags)
    live = [_live_matches(context, batch, tag) for tag in tags]
    lives = np.bincount(np.concatenate(live), minlength=batch.num_rows)
    result = []
    for tag, alive in zip(tags, live, strict=True):
        matched = np.asarray(tag.matched)
        dead = matched[(lives[matched] > 0) & ~np.isin(matched, alive)]
        result.append(tag.without(dead))
    return [tag for tag in result if len(tag.matched)]


def _live_matches(context: WriteContext, batch: pa.Table, tag: SliceTag) -> np.ndarray:
    """Batch rows of a tag whose key the slice still holds once its logs are merged in."""
    matched = np.asarray(tag.matched)
    if not tag.file_slice.log_files:
        return matched
    stored = read_slice(context.read, tag.file_slice, columns=[RECORD_KEY]).column(RECORD_KEY)
    keys = batch.column(RECORD_KEY).take(tag.matched)
    alive: np.ndarray = matched[np.asarray(pc.is_in(keys, value_set=stored.combine_chunks()))]
    return alive


def _matched(tags: Sequence[SliceTag]) -> pa.Array:
    return pa.concat_arrays([tag.matched for tag in tags])


def write_unit(task: WriteTask, plan: UnitPlan, tagged: TaggedUnit) -> list[WriteStat]:
    """Write one partition's tagged rows; returns the write stats of the files written, possibly none."""
    unit, batch = tagged.unit, tagged.batch
    if not unit.exists and batch.num_rows and not plan.delete_only:
        ensure_partition_metadata(task.context.storage, unit.partition, task.context.instant)
    if plan.index.buckets is not None:
        return list(_run_buckets(task, plan, unit, batch, plan.index.buckets))
    return list(_write(task, plan, unit, batch, list(tagged.tags)))


def lookup_keys(batch: pa.Table) -> pa.Array:
    """Record keys of a batch; null for rows that count as new whether or not their key is stored (match condition)."""
    keys = batch.column(RECORD_KEY).combine_chunks()
    if INSERT_FLAG in batch.column_names:
        keys = pc.if_else(batch.column(INSERT_FLAG).combine_chunks(), pa.scalar(None, keys.type), keys)
    return keys


def _deletes(batch: pa.Table, plan: UnitPlan, config: TableConfig) -> pa.Array | None:
    if plan.delete_only:
        return None
    marked = delete_mask(batch, config)
    if DELETE_FLAG not in batch.column_names:
        return marked
    flagged = batch.column(DELETE_FLAG).combine_chunks()
    return flagged if marked is None else pc.or_(flagged, marked.fill_null(False))


def _write(
    task: WriteTask, plan: UnitPlan, unit: PartitionUnit, batch: pa.Table, tags: list[SliceTag]
) -> Iterator[WriteStat]:
    deletes = _deletes(batch, plan, task.context.config)
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
        if _appends(task, file_slice) and added is None and tag is not None:
            yield from _append(task, plan, unit, tag, batch, deletes)
            continue
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


def _appends(task: WriteTask, file_slice: FileSlice) -> bool:
    return task.context.config.table_type is TableType.MERGE_ON_READ


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
        yield from _append_changes(task, plan, unit, tag.file_slice, touched, marks)
        return
    if plan.update_columns is not None:
        touched = compose_partial(task.context, tag.file_slice, touched, plan.update_columns)
    target = _target(unit, tag.file_slice)
    if plan.delete_only:
        yield from append_log(task, target, None, LogDeletes(touched.column(RECORD_KEY).combine_chunks()))
        return
    mask = None if deletes is None else deletes.take(tag.matched).fill_null(False)
    yield from append_log(task, target, *_split_deletes(task, touched, mask))


def _append_changes(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    file_slice: FileSlice,
    rows: pa.Table,
    deletes: pa.Array | None,
) -> Iterator[WriteStat]:
    """Changelog mode: the log gets every change with the row before it."""
    if OPERATION in rows.column_names:
        changes = given_changes(task.context, rows)
    else:
        changes = changes_of(
            task.context,
            file_slice,
            rows,
            deletes,
            delete_always=plan.delete_only,
            update_columns=plan.update_columns,
        )
    if changes.rows.num_rows:
        yield from append_log(
            task,
            _target(unit, file_slice),
            changes.rows,
            changes.deletes,
            inserts=changes.inserted,
            updated=changes.updated,
        )


def _target(unit: PartitionUnit, file_slice: FileSlice) -> LogTarget:
    return LogTarget(file_slice, dict(unit.log_instants).get(file_slice.file_id, file_slice.base_instant))


def _split_deletes(
    task: WriteTask, rows: pa.Table, mask: pa.Array | None
) -> tuple[pa.Table | None, LogDeletes | None]:
    if mask is None:
        return rows, None
    gone = rows.filter(mask)
    if gone.num_rows == 0:
        return rows, None
    ordering = ordering_values(gone, task.context.config)
    return rows.filter(pc.invert(mask)), LogDeletes(gone.column(RECORD_KEY).combine_chunks(), ordering)


def _run_buckets(
    task: WriteTask, plan: UnitPlan, unit: PartitionUnit, batch: pa.Table, count: int
) -> Iterator[WriteStat]:
    """Bucket index: the key's hash names the file group; no lookup over files is needed (Hudi table format, bucket ids)."""
    if batch.num_rows == 0:
        return
    buckets = bucket_ids(batch, task.context.config, count, task.context.options)
    by_bucket = {} if plan.replaces else _slices_by_bucket(unit, count)
    for bucket in np.unique(np.asarray(buckets)):
        rows = batch.filter(pc.equal(buckets, pa.scalar(int(bucket), pa.int32())))
        yield from _run_bucket(task, plan, unit, int(bucket), by_bucket.get(int(bucket)), rows)


def _slices_by_bucket(unit: PartitionUnit, count: int) -> dict[int, FileSlice]:
    """Slices by the bucket in their file id; refuses file groups that another index or another number of buckets made."""
    found: dict[int, FileSlice] = {}
    for each in unit.slices:
        bucket = int(each.file_id[:8]) if each.file_id[:8].isdigit() else -1
        if not 0 <= bucket < count or bucket in found:
            raise ConfigError(
                f"file group {each.file_id!r} of partition {unit.partition!r} is no bucket of {count}: the table was written with "
                "another index or another hoodie.bucket.index.num.buckets. Use the index it was made with, or rebuild it"
            )
        found[bucket] = each
    return found


def _run_bucket(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    bucket: int,
    file_slice: FileSlice | None,
    rows: pa.Table,
) -> Iterator[WriteStat]:
    deletes = _deletes(rows, plan, task.context.config)
    if file_slice is None:
        if plan.delete_only:
            return
        if OPERATION in rows.column_names:
            alive = settled_rows(rows)
        else:
            alive = rows if deletes is None else rows.filter(pc.invert(deletes.fill_null(False)))
        if alive.num_rows:
            yield from create_files(task, unit.partition, alive, file_id=task.new_file_id(f"{bucket:08d}"))
        return
    if OPERATION in rows.column_names:
        yield from _append_changes(task, plan, unit, file_slice, rows, deletes)
        return
    pruning = plan.index.pruning(task.context.options)
    tag = tag_slice(task.context.read, file_slice, lookup_keys(rows), pruning, with_logs=True)
    known = np.zeros(rows.num_rows, dtype=bool)
    if tag is not None:
        known[np.asarray(tag.matched)] = True
    if plan.skip_existing:
        rows, tag, deletes = rows.filter(pa.array(~known)), None, None
        known = np.zeros(rows.num_rows, dtype=bool)
    if task.context.config.table_type is TableType.MERGE_ON_READ:
        _check_new_keys(task, plan, file_slice, rows)
        yield from _append_bucket(task, plan, unit, file_slice, rows, known, deletes)
        return
    fresh = ~known if deletes is None else ~known & ~np.asarray(deletes.fill_null(False))
    inserts = None if plan.delete_only else rows.filter(pa.array(fresh))
    changes = FileChanges(
        None if tag is None else tag.batch_rows, rows, deletes, plan.delete_only, inserts, plan.update_columns
    )
    stat = merge_file(task, file_slice, changes)
    if stat is not None:
        yield stat


def _check_new_keys(task: WriteTask, plan: UnitPlan, file_slice: FileSlice, rows: pa.Table) -> None:
    """Refuse rows that a match condition wants beside the stored row of their key: a log has one row a key."""
    if INSERT_FLAG not in rows.column_names:
        return
    keys = rows.filter(rows.column(INSERT_FLAG)).column(RECORD_KEY).combine_chunks()
    pruning = plan.index.pruning(task.context.options)
    tag = tag_slice(task.context.read, file_slice, keys, pruning, with_logs=True) if len(keys) else None
    if tag is not None:
        raise DataError(
            f"record key {keys[tag.matched[0].as_py()].as_py()!r} is stored in a row that does not fulfil the match condition, "
            "and a merge-on-read table with hoodie.index.type=BUCKET holds one row a key, so the new row cannot stand beside "
            "it. Legal are a condition that every stored row of the batch's keys fulfils, and no condition"
        )


def _append_bucket(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    file_slice: FileSlice,
    rows: pa.Table,
    known: np.ndarray,
    deletes: pa.Array | None,
) -> Iterator[WriteStat]:
    if task.context.config.keeps_operations:
        if rows.num_rows:
            yield from _append_changes(task, plan, unit, file_slice, rows, deletes)
        return
    target = _target(unit, file_slice)
    if plan.delete_only:
        gone = rows.filter(pa.array(known))
        if gone.num_rows:
            yield from append_log(task, target, None, LogDeletes(gone.column(RECORD_KEY).combine_chunks()))
        return
    if rows.num_rows == 0:
        return
    if plan.update_columns is not None:
        rows = compose_partial(task.context, file_slice, rows, plan.update_columns)
    updates, removed = _split_deletes(task, rows, None if deletes is None else deletes.fill_null(False))
    alive = ~known if deletes is None else ~known & ~np.asarray(deletes.fill_null(False))
    yield from append_log(task, target, updates, removed, inserts=int(alive.sum()))
