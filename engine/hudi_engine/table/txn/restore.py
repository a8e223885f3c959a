"""Restoring a table to an earlier commit: which later instants go, and what must be left. `rollback` takes them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.missing import check_nothing_missing
from hudi_engine.format.filegroup.view import FileSystemView, list_partition_files
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.telemetry.services import Done, measured
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.format.timeline.commit_metadata import NO_COMMIT, CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.format.timeline.rolled_back import check_none_hidden
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import recovered
from hudi_engine.table.txn.rollback import (
    RestorePlan,
    RestoreResult,
    carry_out_restore,
    check_can_go,
    is_lost,
    later_instants,
    readable_metadata,
    slices_in,
)
from hudi_engine.table.txn.savepoint import (
    Savepoint,
    check_not_cleaned,
    completed_write,
    read_savepoint,
)


def _done(result: RestoreResult) -> Done | None:
    # Hudi counts a restore among the rollbacks.
    return None if result.restore_time is None else Done("rollback", {"numFilesDeleted": len(result.deleted)})


@measured(_done)
def restore(storage: Storage, options: Options, publication: Publication, instant_time: str) -> RestoreResult:
    """Take the table back to a commit, under its lock.

    Destroys data: every write after the commit goes, with its files and its place on the timeline, and so do
    planned compactions and clusterings. Writers that are under way are refused when they commit.

    Args:
        instant_time: Requested time of a completed write on the active timeline. With a savepoint its files
            are there for sure, without one only while no clean has gone past it.
    """
    with recovered(storage, options, publication, "restore") as (config, timeline):
        plan = plan_restore(storage, config, timeline, instant_time)
        if not plan.instants:
            return RestoreResult(None, plan.target)
        check_can_go(storage, config, timeline, plan)
        opened = OpenInstant.announce(storage, config, timeline, "restore", plan.to_bytes())
        return carry_out_restore(storage, config, opened, plan, publication)


def plan_restore(storage: Storage, config: TableConfig, timeline: Timeline, instant_time: str) -> RestorePlan:
    """Return what a restore takes back, nothing when the table is at that commit; nothing is written."""
    target = completed_write(storage, timeline, instant_time).requested_time
    saved = [savepoint.requested_time for savepoint in timeline.savepoints]
    blocking = [time for time in saved if time > target]
    if blocking:
        raise TimelineError(
            f"the table at {storage.base!r} cannot be restored to {target}: the later commit {blocking[0]} has a savepoint. "
            "Delete that savepoint first"
        )
    later = later_instants(timeline, target)
    if not later:
        return RestorePlan(target, ())
    if target in saved:
        _check_saved_state(storage, config, read_savepoint(storage, timeline, target))
    else:
        check_not_cleaned(timeline, target)
    left = timeline.without({instant.requested_time for instant in later})
    check_none_hidden(timeline, left, f"the table at {storage.base!r} cannot be restored to {target}")
    _check_slices_remain(storage, timeline, target, later)
    view = FileSystemView.build(storage, config, timeline, as_of=target)
    check_nothing_missing(storage, config, timeline, view, target)
    _check_logs_continue(config, timeline, view, target)
    return RestorePlan(target, tuple((instant.requested_time, instant.action) for instant in later))


def _check_logs_continue(config: TableConfig, timeline: Timeline, view: FileSystemView, target: str) -> None:
    """Refuse a state from before a downgrade whose logs have names of their own: later logs would sort before them."""
    if config.table_version.names_logs_by_write:
        return
    writes = {each.requested_time for each in timeline.completed_writes if each.action == "deltacommit"}
    for each in view.latest_slices():
        if any(log.instant != each.base_instant and log.instant in writes for log in each.log_files):
            raise TimelineError(
                f"the table cannot be restored to {target}: it had version 8 or 9 then, and logs of file group "
                f"{each.file_id!r} from then cannot be continued in version {config.version}. Upgrade the table first"
            )


def _check_saved_state(storage: Storage, config: TableConfig, savepoint: Savepoint) -> None:
    """Refuse to go back to a savepoint whose files are not all there, or past writes that were archived."""
    for partition, names in savepoint.files.items():
        there = {status.name for status in list_partition_files(storage, partition)}
        missing = sorted(set(names) - there)
        if missing:
            raise TimelineError(
                f"the table at {storage.base!r} cannot be restored to savepoint {savepoint.instant}: its file "
                f"{missing[0]!r} in partition {partition!r} is missing. Nothing was changed"
            )
    archived = [
        instant.requested_time
        for instant in ArchivedTimeline.load(storage, config).instants
        if instant.action in WRITE_ACTIONS and instant.requested_time > savepoint.instant
    ]
    if archived:
        raise TimelineError(
            f"the table at {storage.base!r} cannot be restored to savepoint {savepoint.instant}: write "
            f"{archived[0]} after it has been archived (hoodie.archive.beyond.savepoint), so it cannot be taken "
            "back. Nothing was changed; rewrite the table from its source instead"
        )


def _check_slices_remain(storage: Storage, timeline: Timeline, target: str, later: Iterable[Instant]) -> None:
    """Refuse a restore that would leave a file group without the slice it had at the target."""
    slices = cache(partial(slices_in, storage))
    writes = [each for each in later if each.is_completed and each.action in WRITE_ACTIONS]
    read = {write.requested_time: readable_metadata(timeline, write) for write in writes}
    bodies = {each: metadata for each, metadata in read.items() if metadata is not None}
    for instant_time, metadata in bodies.items():
        for partition, stat in metadata.write_stats():
            slice_ = (str(stat.file_id), str(stat.prev_commit))
            if stat.prev_commit in NO_COMMIT or slice_[1] > target:
                continue
            if is_lost(timeline, partition, slices(partition), slice_):
                raise _gone(storage, target, instant_time, partition, slice_[0])
    born = _born_later(bodies)
    for instant_time, metadata in bodies.items():
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            kept = {file_id for file_id, instant in slices(partition) if instant <= target}
            lost = [each for each in file_ids if each not in kept and (partition, each) not in born]
            if lost:
                raise _gone(storage, target, instant_time, partition, lost[0])


def _born_later(bodies: Mapping[str, CommitMetadata]) -> set[tuple[str, str]]:
    """Return file groups that writes after the target began, which are to go as a whole."""
    return {
        (partition, str(stat.file_id))
        for instant_time, metadata in bodies.items()
        for partition, stat in metadata.write_stats()
        if stat.prev_commit in (*NO_COMMIT, instant_time)
    }


def _gone(storage: Storage, target: str, time: str, partition: str, file_id: str) -> TimelineError:
    return TimelineError(
        f"the table at {storage.base!r} cannot be restored to {target}: file group {file_id!r} in partition "
        f"{partition!r}, which {time} changed, has lost the slice it had then to a clean. Nothing was changed; "
        "choose a later commit, or rewrite the table from its source"
    )
