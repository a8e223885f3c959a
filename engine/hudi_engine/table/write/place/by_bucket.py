"""Rows of a partition under the bucket index: the hash of its key names the file group of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, DataError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.buckets import bucket_ids, bucket_of_file
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.schema.meta_fields import OPERATION, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.append import LogDeletes, append_log, log_rows
from hudi_engine.table.handles.changelog import settled_rows
from hudi_engine.table.handles.create import create_files
from hudi_engine.table.handles.merge import merge_file
from hudi_engine.table.handles.updates import FileChanges
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.partition import TaggedUnit, drop_outdated_updates, refuse_repeated
from hudi_engine.table.lookup.tagging import SliceTag, StoredKeys, tag_slice
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG, PartitionUnit, UnitPlan, lookup_keys
from hudi_engine.table.write.place.partial_logs import composed, partial_columns
from hudi_engine.table.write.place.to_logs import (
    append_changes,
    brings_back,
    check_rewritable,
    deletes_of,
    log_target,
    split_deletes,
    takes_several,
)


def write_buckets(
    task: WriteTask, plan: UnitPlan, unit: PartitionUnit, batch: pa.Table, count: int
) -> Iterator[WriteStat]:
    """Bucket index: the key's hash names the file group; no lookup over files is needed (Hudi table format, bucket ids)."""
    if batch.num_rows == 0:
        return
    buckets = bucket_ids(batch, task.context.config, count, task.context.options, plan.index.form)
    by_bucket = {} if plan.replaces else slices_by_bucket(unit, count)
    for bucket in np.unique(np.asarray(buckets)):
        rows = batch.filter(pc.equal(buckets, pa.scalar(int(bucket), pa.int32())))
        yield from _run_bucket(task, plan, unit, int(bucket), by_bucket.get(int(bucket)), rows)


def slices_by_bucket(unit: PartitionUnit, count: int) -> dict[int, FileSlice]:
    """Return slices by the bucket in their file id; refuses file groups that another index or another number of buckets made."""
    found: dict[int, FileSlice] = {}
    for each in unit.slices:
        bucket = bucket_of_file(each.file_id, count)
        if bucket < 0 or bucket in found:
            raise ConfigError(
                f"file group {each.file_id!r} of partition {unit.partition!r} is no bucket of {count}: the table was written with "
                "another index or another hoodie.bucket.index.num.buckets. Use the index it was made with, or rebuild the table "
                "(in dbt with --full-refresh)"
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
    """Write the rows of one bucket, which has one file group: made when absent, appended to, or merged."""
    deletes = deletes_of(rows, plan, task.context.config)
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
        yield from append_changes(task, plan, log_target(task.context, unit, file_slice), rows, deletes)
        return
    rows, tag = _looked_up(task, plan, unit, file_slice, rows)
    deletes = deletes_of(rows, plan, task.context.config)
    known = np.zeros(rows.num_rows, dtype=bool)
    if tag is not None:
        known[np.asarray(tag.matched)] = True
    fresh = ~known if deletes is None else ~known & ~np.asarray(deletes.fill_null(False))
    if plan.skip_existing:
        rows, tag, deletes = rows.filter(pa.array(fresh)), None, None
        known, fresh = np.zeros(rows.num_rows, dtype=bool), np.ones(rows.num_rows, dtype=bool)
    if _goes_to_log(task, plan, unit, file_slice, rows, tag):
        yield from _append_bucket(task, plan, unit, file_slice, rows, known, deletes)
        return
    inserts = None if plan.delete_only else rows.filter(pa.array(fresh))
    changes = FileChanges(
        None if tag is None else tag.batch_rows, rows, deletes, plan.delete_only, inserts, plan.update_columns
    )
    stat = merge_file(task, file_slice, changes)
    if stat is not None:
        yield stat


def _looked_up(
    task: WriteTask, plan: UnitPlan, unit: PartitionUnit, file_slice: FileSlice, rows: pa.Table
) -> tuple[pa.Table, SliceTag | None]:
    """Return the rows of a bucket that may do something, and which stored rows they meet.

    Rows that are only added meet none: a base file takes one next to the row of its key, whereas a log would replace that.
    """
    if not plan.lookup and task.context.config.table_type is TableType.COPY_ON_WRITE:
        return rows, None
    pruning = plan.index.pruning(task.context.options)
    tag = tag_slice(task.context.read, file_slice, lookup_keys(rows), pruning, StoredKeys.LIVE)
    refuse_repeated(task.context.read, plan, unit.partition, rows, [tag] if tag is not None else [])
    if tag is None:
        return rows, None
    kept = drop_outdated_updates(task.context, plan, TaggedUnit(unit, rows, (tag,)))
    return kept.batch, next(iter(kept.tags), None)


def _goes_to_log(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    file_slice: FileSlice,
    rows: pa.Table,
    tag: SliceTag | None,
) -> bool:
    """Return whether rows are appended to the log; if it cannot hold them, the base file is rewritten.

    A log has one row a key and obeys the ordering against the base file, also where the log deleted the row there. So a row
    that is added to a stored one with its key, in the place of one that goes or went, or together with another one, has to
    be in the base file.
    """
    if task.context.config.table_type is not TableType.MERGE_ON_READ:
        return False
    if tag is not None and takes_several(unit, tag, task.context.config):
        return False
    if DELETE_FLAG not in rows.column_names:
        _check_new_keys(task, plan, file_slice, rows)
        marked = None if plan.delete_only else deletes_of(rows, plan, task.context.config)
        kept = rows if marked is None else rows.filter(pc.invert(marked.fill_null(False)))
        return plan.delete_only or not brings_back(task, unit, file_slice, kept)
    keys = rows.column(RECORD_KEY).filter(rows.column(INSERT_FLAG)).combine_chunks()
    if len(keys) == 0:
        return True
    stored = tag_slice(
        task.context.read,
        file_slice,
        keys,
        plan.index.pruning(task.context.options),
        StoredKeys.BASE_AND_LOGS,
    )
    if stored is None and are_distinct(keys):
        return True
    check_rewritable(unit, file_slice)
    return False


def _check_new_keys(task: WriteTask, plan: UnitPlan, file_slice: FileSlice, rows: pa.Table) -> None:
    """Refuse rows that a match condition adds to the stored row of their key: a log has one row a key."""
    if INSERT_FLAG not in rows.column_names:
        return
    keys = rows.filter(rows.column(INSERT_FLAG)).column(RECORD_KEY).combine_chunks()
    pruning = plan.index.pruning(task.context.options)
    tag = tag_slice(task.context.read, file_slice, keys, pruning, StoredKeys.LIVE) if len(keys) else None
    if tag is not None:
        raise DataError(
            f"record key {keys[tag.matched[0].as_py()].as_py()!r} is stored in a row that does not fulfil the match condition, "
            "and a merge-on-read table with hoodie.index.type=BUCKET holds one row a key, so the new row cannot be added. "
            "Legal are a condition that every stored row of the batch's keys fulfils, and no condition"
        )


def _append_bucket(
    task: WriteTask,
    plan: UnitPlan,
    unit: PartitionUnit,
    file_slice: FileSlice,
    rows: pa.Table,
    known: npt.NDArray[Any],
    deletes: pa.Array | None,
) -> Iterator[WriteStat]:
    """Append a bucket's rows to its log, updates before deletes; new keys count as inserts."""
    target = log_target(task.context, unit, file_slice)
    if task.context.config.keeps_operations:
        if rows.num_rows:
            yield from append_changes(task, plan, target, rows, deletes)
        return
    if plan.delete_only:
        gone = rows.filter(pa.array(known))
        if gone.num_rows:
            yield from append_log(task, target, None, LogDeletes(gone.column(RECORD_KEY).combine_chunks()))
        return
    if rows.num_rows == 0:
        return
    columns = partial_columns(task.context, plan, file_slice)
    rows, stored = composed(task.context, plan, file_slice, rows, columns)
    updates, removed = split_deletes(task, rows, None if deletes is None else deletes.fill_null(False))
    stays = np.ones(len(known), dtype=bool) if deletes is None else ~np.asarray(deletes.fill_null(False))
    logged = None if updates is None else log_rows(task, target, updates, columns, (known & stored)[stays])
    yield from append_log(task, target, logged, removed, inserts=int((~known & stays).sum()))
