"""Changes appended to a slice's log, and the log they go to."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.schema.meta_fields import OPERATION
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.append import LogTarget, append_log
from hudi_engine.table.handles.changelog import changes_of, given_changes
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan


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


def log_target(unit: PartitionUnit, file_slice: FileSlice) -> LogTarget:
    """Return the log of a slice; while a compaction is pending it belongs to the slice that comes after it."""
    return LogTarget(file_slice, dict(unit.log_instants).get(file_slice.file_id, file_slice.base_instant))
