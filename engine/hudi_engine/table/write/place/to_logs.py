"""Which rows go to the log of their slice, and which have to be in its base file.

A log cannot bring a deleted row back with an ordering value that is not the newest: readers compare it with the delete, or with the
row that still is in the base file, and Apache Hudi 0.15, 1.2 and hudi-rs do not agree which of them wins. In a base file that is
rewritten there is neither, so all readers see what a copy-on-write table shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import DataError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.base_reader import read_base_file
from hudi_engine.format.merge.delete_marker import delete_mask, ordering_values
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.merge.log_scanner import scan_slice
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.ordering import newer_wins
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import scan_logs
from hudi_engine.format.schema.meta_fields import OPERATION, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.append import LogDeletes, LogTarget, append_log
from hudi_engine.table.handles.changelog import changes_of, given_changes
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.tagging import SliceTag
from hudi_engine.table.lookup.unit import DELETE_FLAG, PartitionUnit, UnitPlan
from hudi_engine.table.write.place.partial_logs import may_hold_deletes


def append_changes(
    task: WriteTask, plan: UnitPlan, target: LogTarget, rows: pa.Table, deletes: pa.Array | None
) -> Iterator[WriteStat]:
    """Changelog mode: the log gets every change with the row before it."""
    if OPERATION in rows.column_names:
        changes = given_changes(task.context, rows)
    else:
        changes = changes_of(
            task.context,
            target.file_slice,
            rows,
            deletes,
            delete_always=plan.delete_only,
            update_columns=plan.update_columns,
        )
    if changes.rows.num_rows:
        yield from append_log(
            task,
            target,
            changes.rows,
            changes.deletes,
            inserts=changes.inserted,
            updated=changes.updated,
        )


def log_target(context: WriteContext, unit: PartitionUnit, file_slice: FileSlice) -> LogTarget:
    """Return the log of a slice; while a compaction is pending it belongs to the slice that comes after it."""
    if context.config.table_version.names_logs_by_write:
        return LogTarget(file_slice, context.instant)
    return LogTarget(file_slice, dict(unit.log_instants).get(file_slice.file_id, file_slice.base_instant))


def brings_back(task: WriteTask, unit: PartitionUnit, file_slice: FileSlice, rows: pa.Table) -> bool:
    """Return whether a row has to be in the base file, as its key was deleted in the log and it is older than what was there.

    Args:
        rows: Rows for its log, none of them a delete; their record keys and ordering columns are enough.
    """
    context = task.context
    config = context.config
    fields = [name for name in config.ordering_fields if name in rows.column_names]
    if config.table_type is not TableType.MERGE_ON_READ:
        return False
    compares = bool(fields) and merge_rule(config).compares
    if not (rows.num_rows and may_hold_deletes(context, file_slice)):
        return False
    # Apache Hudi 1.2.0 fails to read a row that follows the delete of its key in logs with partial blocks (without order).
    has_partial = file_slice.file_id not in unit.frozen and scan_slice(context.read, file_slice).has_partial
    if not (compares or has_partial):
        return False
    found = scan_logs(context.read, file_slice, columns=[RECORD_KEY, *fields]).winners
    gone = found.take(np.flatnonzero(found.deleted & _among(found.keys, rows)))
    if has_partial or not len(gone):
        return len(gone) > 0
    loses = _older(rows, gone.rows.append_column("__key", gone.keys), "__key", fields, ~gone.always)
    if file_slice.base_file is not None:
        stored = read_base_file(context.read, file_slice.base_file, columns=[RECORD_KEY, *fields])
        stored = stored.filter(pc.is_in(stored.column(RECORD_KEY), value_set=gone.keys.combine_chunks()))
        loses |= _older(rows, stored, RECORD_KEY, fields, np.ones(stored.num_rows, dtype=bool))
    if loses and (config.keeps_operations or file_slice.file_id in unit.frozen):
        reason = (
            "the table is in changelog mode" if config.keeps_operations else "a compaction of it is pending"
        )
        raise DataError(
            f"rows of file group {file_slice.file_id!r} in partition {unit.partition!r} bring back deleted keys with a smaller "
            f"{', '.join(fields)} than the deleted rows had, which a log cannot, and {reason}. Give them a value that is not "
            "smaller, or run the compaction (compact()) and write again"
        )
    return loses


def _among(keys: pa.ChunkedArray, rows: pa.Table) -> npt.NDArray[Any]:
    return np.asarray(pc.is_in(keys, value_set=rows.column(RECORD_KEY).combine_chunks())).astype(bool)


def _older(rows: pa.Table, known: pa.Table, key: str, fields: list[str], counts: npt.NDArray[Any]) -> bool:
    """Return whether a row has a smaller ordering value than one of the ``known`` rows with its key that count."""
    known = known.filter(pa.array(counts))
    if known.num_rows == 0:
        return False
    places = pc.index_in(known.column(key), value_set=rows.column(RECORD_KEY).combine_chunks())
    same = taken(rows, places)
    wins = newer_wins([known.column(name) for name in fields], [same.column(name) for name in fields])
    return not bool(wins.all())


def deletes_of(batch: pa.Table, plan: UnitPlan, config: TableConfig) -> pa.Array | None:
    """Return which rows delete, by their marks or the flag of a move; None when none can, or all do."""
    if plan.delete_only:
        return None
    marked = delete_mask(batch, config)
    if DELETE_FLAG not in batch.column_names:
        return marked
    flagged = batch.column(DELETE_FLAG).combine_chunks()
    return flagged if marked is None else pc.or_(flagged, marked.fill_null(False))


def takes_several(unit: PartitionUnit, tag: SliceTag, config: TableConfig) -> bool:
    """Return whether a batch takes out or changes several rows of one key of a base file, which then has to be rewritten.

    Apache Hudi and hudi-rs apply a record of a log to the first row with its key, so of several only that one would change.
    """
    hits = tag.batch_rows.drop_null()
    if tag.file_slice.base_file is None or are_distinct(hits):
        return False
    if config.keeps_operations:
        raise DataError(
            f"rows of file group {tag.file_slice.file_id!r} in partition {unit.partition!r} have a key that is there more than "
            "once. The table is in changelog mode, so a change goes to a log, which changes only one of them for other readers. "
            "Insert each key once, or rebuild the table"
        )
    check_rewritable(unit, tag.file_slice)
    return True


def check_rewritable(unit: PartitionUnit, file_slice: FileSlice) -> None:
    """Refuse to take rows out of a base file that a pending compaction reads; raises DataError."""
    if file_slice.file_id in unit.frozen:
        raise DataError(
            f"rows of file group {file_slice.file_id!r} in partition {unit.partition!r} have a key that is there more than once, "
            "and cannot be changed while a compaction of it is pending. Run the compaction (compact()) and write again"
        )


def split_deletes(
    task: WriteTask, rows: pa.Table, mask: pa.Array | None
) -> tuple[pa.Table | None, LogDeletes | None]:
    """Split rows into those to write and the deletes among them."""
    if mask is None:
        return rows, None
    gone = rows.filter(mask)
    if gone.num_rows == 0:
        return rows, None
    ordering = ordering_values(gone, task.context.config)
    return rows.filter(pc.invert(mask)), LogDeletes(gone.column(RECORD_KEY).combine_chunks(), ordering)
