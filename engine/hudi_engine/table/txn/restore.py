"""Taking a table back to an earlier commit: all later writes go for good."""

from __future__ import annotations

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.missing import check_nothing_missing
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.telemetry.services import Done, measured
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.gaps import check_none_hidden
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import recovered
from hudi_engine.table.txn.restore_check import check_saved_state, check_slices_remain
from hudi_engine.table.txn.restore_steps import (
    RestorePlan,
    RestoreResult,
    carry_out_restore,
    check_can_go,
    later_instants,
)
from hudi_engine.table.txn.savepoint import check_not_cleaned, completed_write, read_savepoint


def _told(result: RestoreResult) -> Done | None:
    # Hudi counts a restore among the rollbacks.
    return None if result.restore_time is None else Done("rollback", {"numFilesDeleted": len(result.deleted)})


@measured(_told)
def restore(storage: Storage, options: Options, publication: Publication, instant_time: str) -> RestoreResult:
    """Take the table back to a commit, under its lock.

    Destroys data: every write after the commit goes, with its files and its place on the timeline, and so do
    planned compactions and clusterings. Writers that are under way are refused when they commit.

    Args:
        options: Lock, heartbeat and what happens to failed writes.
        publication: Published file lists, brought back to the commit before any later file goes.
        instant_time: Requested time of a completed write on the active timeline. With a savepoint its files
            are there for sure, without one only while no clean has gone past it.

    Raises:
        TimelineError: when there is no such write, a later one has a savepoint, or a clean has removed what
            the table needs, a file group would be left without the slice it had, or archived writes would
            count no more.
        WriteConflictError: when the table's lock is not free in time.
        StorageError: when the storage failed; the next write finishes the restore.
    """
    with recovered(storage, options, publication, "restore") as (config, timeline):
        plan = plan_restore(storage, config, timeline, instant_time)
        if not plan.instants:
            return RestoreResult(None, plan.target)
        check_can_go(storage, config, timeline, plan)
        opened = OpenInstant.announce(storage, config, timeline, "restore", plan.to_bytes())
        return carry_out_restore(storage, config, opened, plan, publication)


def plan_restore(storage: Storage, config: TableConfig, timeline: Timeline, instant_time: str) -> RestorePlan:
    """Return what a restore takes back, nothing when the table is at that commit; nothing is written.

    Raises:
        TimelineError: As restore does.
    """
    target = completed_write(storage, timeline, instant_time).requested_time
    saved = [savepoint.requested_time for savepoint in timeline.savepoints]
    blocking = [time for time in saved if time > target]
    if blocking:
        raise TimelineError(
            f"the table at {storage.base!r} cannot be restored to {target}: the later commit "
            f"{blocking[0]} has "
            "a savepoint. Delete that savepoint first"
        )
    later = later_instants(timeline, target)
    if not later:
        return RestorePlan(target, ())
    if target in saved:
        check_saved_state(storage, config, read_savepoint(storage, timeline, target))
    else:
        check_not_cleaned(timeline, target)
    left = timeline.without({instant.requested_time for instant in later})
    check_none_hidden(timeline, left, f"the table at {storage.base!r} cannot be restored to {target}")
    check_slices_remain(storage, timeline, target, later)
    view = FileSystemView.build(storage, config, timeline, as_of=target)
    check_nothing_missing(storage, config, timeline, view, target)
    return RestorePlan(target, tuple((instant.requested_time, instant.action) for instant in later))
