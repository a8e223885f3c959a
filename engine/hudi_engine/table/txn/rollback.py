"""Undoing instants in Apache Hudi's layout by rollback or restore, and finishing one that was killed.

The order makes it safe to be killed anywhere (Hudi table format, rollback and restore): the plan is stored first; completed
instants are unpublished, newest first, before any of their files goes, so readers of a table that is restored see it as of some
commit between the newest and the target; the instants' own timeline files go last but one, and the completed rollback or restore
is the last file written. Each step can be repeated; what a restore has to remove is looked up again after a crash. All functions
here expect the caller to hold the table's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

from hudi_engine.errors import CorruptTableError, TimelineError, WriteConflictError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.log_file import LogFile
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.timeline.active import FileGroupKey, Timeline, newest_first
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.commit_metadata import NO_COMMIT, CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_engine.format.timeline.rolled_back import check_none_hidden
from hudi_engine.format.timeline.schemas import RESTORE_METADATA, RESTORE_PLAN, ROLLBACK_METADATA
from hudi_engine.table.txn.conflict import is_clustering
from hudi_engine.table.txn.open_instant import OpenInstant, stored_plan
from hudi_engine.table.txn.owner import Liveness
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.removal import Removal, RollbackFinder, RollbackPlan, data_file, undo

logger = logging.getLogger(__name__)


TAKEN_BACK = WRITE_ACTIONS | {"compaction", "logcompaction", "clustering", "indexing"}
"""Actions that a restore takes back; cleans, rollbacks and savepoints stay, and so do indexes that are built.

An unfinished index goes with the metadata table that it was for. The instant of a finished one records no change of data.
"""


@dataclass(frozen=True)
class RestorePlan(StoredPlan):
    """A restore's plan.

    Args:
        instants: Requested time and action of what goes, newest first.
    """

    target: str
    instants: tuple[tuple[str, str], ...]

    def to_bytes(self) -> bytes:
        """Encode as Hudi's ``HoodieRestorePlan``."""
        infos = [{"commitTime": time_, "action": action} for time_, action in self.instants]
        record = {"instantsToRollback": infos, "version": 2, "savepointToRestoreTimestamp": self.target}
        return encode_avro_file(RESTORE_PLAN, record)

    @classmethod
    def _from_record(cls, record: Mapping[str, Any], source: str) -> RestorePlan:
        target = str(record.get("savepointToRestoreTimestamp") or "")
        found = [(str(info["commitTime"]), str(info["action"])) for info in record["instantsToRollback"]]
        for time_, action in found:
            if not time_.isdigit() or action not in TAKEN_BACK or time_ == target:
                raise CorruptTableError(
                    f"{source} wants to take back {action} {time_}, which is {target!r} itself or no write. Nothing was changed; "
                    "look at the file, and remove it from the timeline if it is not Hudi's and the restore is not in flight"
                )
        return cls(target, tuple(sorted(found, reverse=True)))


@dataclass(frozen=True)
class RestoreResult:
    """What a restore did.

    Args:
        restore_time: Instant of the restore; None when there was nothing to take back.
        taken_back: Requested times of what went, newest first.
        deleted: Data files that went, relative to the base path.
    """

    restore_time: str | None
    target: str
    taken_back: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    command_blocks: tuple[str, ...] = ()


def later_instants(timeline: Timeline, target: str) -> tuple[Instant, ...]:
    """Return what a restore to ``target`` has to take back, newest first: all that completed later, or has not completed."""
    saved = max(each.order for each in timeline.completed_writes if each.requested_time == target)
    return tuple(each for each in reversed(timeline.instants) if each.order > saved and _goes(each))


def check_can_go(storage: Storage, config: TableConfig, timeline: Timeline, plan: RestorePlan) -> None:
    """Find once what the instants of a restore have written: what cannot be found must be known before the restore begins."""
    _plans(storage, config, timeline, plan)


def carry_out_restore(
    storage: Storage, config: TableConfig, opened: OpenInstant, plan: RestorePlan, publication: Publication
) -> RestoreResult:
    """Carry out a stored plan, for the first time or again."""

    def planned() -> list[Removal]:
        """Plan the removal of what is still there, newest first."""
        found = _plans(storage, config, Timeline.load(storage, config), plan)
        return [Removal(storage, config, opened.time, each) for each in found]

    removals = undo(
        storage,
        config,
        opened,
        planned,
        publication,
        partial(_metadata, opened.time, plan),
    )
    return RestoreResult(
        opened.time,
        plan.target,
        tuple(time_ for time_, _ in plan.instants),
        tuple(path for removal in removals for path in removal.deleted),
        tuple(path for removal in removals for path in removal.command_blocks),
    )


def resume_restores(
    storage: Storage, config: TableConfig, timeline: Timeline, publication: Publication
) -> tuple[RestoreResult, ...]:
    """Finish the restores that were begun and not completed; one whose plan was cut short is dropped."""
    done = []
    for pending in timeline.pending:
        if pending.action != "restore":
            continue
        plan = stored_plan(storage, config, pending, RestorePlan.from_bytes)
        opened = OpenInstant(storage, config, pending.requested_time, "restore")
        if plan is None:
            opened.drop()
            continue
        _check_older(storage, config, timeline, pending, plan)
        logger.info("finishing restore %s to %s", opened.time, plan.target)
        done.append(carry_out_restore(storage, config, opened, plan, publication))
    return tuple(done)


def _check_older(
    storage: Storage, config: TableConfig, timeline: Timeline, pending: Instant, plan: RestorePlan
) -> None:
    """Refuse a plan that takes back a completed instant, or a compaction, from before the target.

    In layout 2 the order is that of completion, so that what began before the target and has completed later, or not yet, goes
    too. What is missing was removed already.
    """
    present = {each.requested_time: each for each in timeline.instants if each.action in TAKEN_BACK}
    older = [each for each in plan.instants if each[0] <= plan.target]
    saved = max(
        (each.order for each in timeline.completed_writes if each.requested_time == plan.target),
        default=plan.target,
    )
    for time_, action in older:
        found = present.get(time_)
        if found is not None and found.is_completed and found.order > saved:
            continue
        if found is None and (pending.state is State.INFLIGHT or time_ in timeline.undone_since()):
            continue
        compacts = action == "compaction" or (
            action == "commit" and config.table_type is TableType.MERGE_ON_READ
        )
        if found is None or compacts or found.is_completed:
            raise CorruptTableError(
                f"restore {pending.requested_time} of {storage.base!r} wants to take back {action} {time_}, which began before "
                f"the commit {plan.target} that it goes back to. Nothing was changed; let Apache Hudi finish the restore if "
                "it is one of its own"
            )


def _goes(instant: Instant) -> bool:
    return instant.action in TAKEN_BACK and not (instant.action == "indexing" and instant.is_completed)


def _plans(
    storage: Storage, config: TableConfig, timeline: Timeline, plan: RestorePlan
) -> list[RollbackPlan]:
    present = {instant.requested_time: instant for instant in timeline.instants if _goes(instant)}
    return [
        _without_doomed_slices(plan_removal(storage, config, timeline, present[time_], action), plan)
        for time_, action in plan.instants
        if time_ in present
    ]


def _without_doomed_slices(removal: RollbackPlan, plan: RestorePlan) -> RollbackPlan:
    """Leave out log blocks in slices that go as a whole, since a command block would outlive its slice."""
    gone = {time_ for time_, _ in plan.instants}
    kept = [
        request for request in removal.requests if not (request.log_files and request.base_instant in gone)
    ]
    return replace(removal, requests=tuple(kept))


def _metadata(restore_time: str, plan: RestorePlan, removals: Sequence[Removal], took_ms: int) -> bytes:
    done = {removal.plan.instant: removal for removal in removals}
    return encode_avro_file(
        RESTORE_METADATA,
        {
            "startRestoreTime": restore_time,
            "timeTakenInMillis": took_ms,
            "instantsToRollback": [time_ for time_, _ in plan.instants],
            "hoodieRestoreMetadata": {time_: [done[time_].metadata(0)] for time_ in done},
            "version": 1,
            "restoreInstantInfo": [
                {"commitTime": time_, "action": action} for time_, action in plan.instants
            ],
        },
    )


def check_not_rolled_back(
    storage: Storage, config: TableConfig, current: Timeline, opened: OpenInstant
) -> None:
    """Refuse to complete an instant that a pending rollback or restore is about to take back."""
    undoing = pending_rollback_of(storage, config, current, opened.time)
    if undoing is not None:
        raise WriteConflictError(
            f"{opened.action} {opened.time} of {storage.base!r} is no longer in flight: it is rolled back by "
            f"{undoing.action} {undoing.requested_time}, which was begun meanwhile. Nothing of it is visible"
        )


def pending_rollback_of(
    storage: Storage, config: TableConfig, timeline: Timeline, time: str
) -> Instant | None:
    """Return the pending rollback or restore that takes an instant back, None without such a one."""
    return next((each for each in timeline.pending if _takes_back(storage, config, each, time)), None)


def _takes_back(storage: Storage, config: TableConfig, pending: Instant, time: str) -> bool:
    if pending.action == "restore":
        restore = stored_plan(storage, config, pending, RestorePlan.from_bytes)
        if restore is None:
            return False
        return time > restore.target or any(time == planned for planned, _ in restore.instants)
    if pending.action == "rollback":
        rollback = stored_plan(storage, config, pending, RollbackPlan.from_bytes)
        return rollback is not None and time == rollback.instant
    return False


_SERVICES = frozenset({"compaction", "logcompaction", "clustering"})


@dataclass(frozen=True)
class RollbackResult:
    """What a rollback did.

    Args:
        deleted: Data files that went, relative to the base path.
        command_blocks: Log files written to neutralise blocks of the instant.
    """

    rollback_time: str
    instant: str
    action: str
    deleted: tuple[str, ...]
    command_blocks: tuple[str, ...]


def rollback_instant(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    instant: Instant,
    publication: Publication,
    *,
    owned_by: Options | None = None,
) -> RollbackResult:
    """Undo an instant: data files, log blocks, timeline files.

    Args:
        owned_by: Options of an owner file, of the rollback of a plan: by it others know at once when this process has died.
    """
    plan = plan_rollback(storage, config, timeline, instant)
    body = plan.to_bytes(storage)
    with OpenInstant.announce(storage, config, timeline, "rollback", body, owned_by=owned_by) as opened:
        result = _carry_out(storage, config, opened, plan, publication)
        opened.release()
    return result


def plan_rollback(
    storage: Storage, config: TableConfig, timeline: Timeline, instant: Instant
) -> RollbackPlan:
    """Find what undoing an instant would remove, and raise as `rollback_instant` does; nothing is written."""
    current = timeline.find(instant.requested_time, instant.action)
    _check_allowed(timeline, current)
    known = readable_metadata(timeline, current) if current.is_completed else None
    if known is not None:
        _check_older_files(storage, timeline, current, known)
    return plan_removal(storage, config, timeline, current, current.action)


def plan_removal(
    storage: Storage, config: TableConfig, timeline: Timeline, instant: Instant, action: str
) -> RollbackPlan:
    """Find what an instant has written."""
    metadata = _metadata_of(timeline, instant)
    finder = RollbackFinder(storage, config, instant.requested_time, metadata)
    # Nothing is written before an instant is in flight, except into slices that a planned compaction opened: others
    # write there, whose markers are not the compaction's.
    damaged = instant.is_completed and metadata is None
    unnamed = (damaged or instant.state is State.INFLIGHT) and not finder.has_markers
    everywhere = unnamed or instant.action in _SERVICES
    shares_logs = not config.table_version.names_logs_by_write
    scan_logs = shares_logs and instant.action in ("deltacommit", "logcompaction")
    requests = finder.find(everywhere=everywhere, scan_logs=scan_logs)
    return RollbackPlan(instant.requested_time, action, requests)


def resume_rollbacks(
    storage: Storage, config: TableConfig, timeline: Timeline, publication: Publication, living: Liveness
) -> tuple[RollbackResult, ...]:
    """Finish the rollbacks that were begun and not completed.

    A plan that was cut short is dropped: nothing was done under it. So is one for a completed instant that is
    no longer the newest write, since nothing was taken away yet and later commits build on it. What is rolled back of a
    compaction, or of a clustering that was in flight, is its run: the plan stays, as with Apache Hudi.

    A rollback of a write is finished even if its owner lives, as by Apache Hudi: no process may write before its end, and each
    step can be done twice. That of a run blocks no writer, and Apache Hudi runs the plan again right after it, whose files would go
    with those of the first run. So it is left alone while its owner may live, and so is that of a clustering's plan.
    """
    done = []
    for pending in timeline.pending:
        if pending.action != "rollback":
            continue
        plan = stored_plan(storage, config, pending, RollbackPlan.from_bytes)
        opened = OpenInstant(storage, config, pending.requested_time, "rollback")
        if plan is None or _is_built_upon(timeline, plan) or _has_run_since(timeline, pending, plan):
            opened.drop()
            continue
        clustering = _clustering_of(timeline, plan)
        if (plan.action == "compaction" or clustering is not None) and living.is_at_work(pending):
            continue
        of_run = _is_of_run(pending, plan, clustering)
        logger.info("finishing rollback %s of %s", opened.time, plan.instant)
        done.append(_carry_out(storage, config, opened, plan, publication, of_run=of_run))
    return tuple(done)


def _carry_out(
    storage: Storage,
    config: TableConfig,
    opened: OpenInstant,
    plan: RollbackPlan,
    publication: Publication,
    *,
    of_run: bool = False,
) -> RollbackResult:
    """Carry out a stored plan, for the first time or again."""
    (removal,) = undo(
        storage,
        config,
        opened,
        lambda: [Removal(storage, config, opened.time, plan, of_run=of_run)],
        publication,
        lambda gone, took_ms: encode_avro_file(ROLLBACK_METADATA, gone[0].metadata(took_ms)),
    )
    return RollbackResult(opened.time, plan.instant, plan.action, removal.deleted, removal.command_blocks)


def _check_allowed(timeline: Timeline, instant: Instant) -> None:
    """Refuse to undo what something else depends on: a savepoint, a later write, a plan."""
    time_, action = instant.requested_time, instant.action
    is_open_build = action == "indexing" and not instant.is_completed
    if action not in (*WRITE_ACTIONS, "clustering") and not is_open_build:
        raise TimelineError(
            f"{action} {time_} cannot be rolled back: only commit, deltacommit and replacecommit can, and a pending "
            "indexing. A planned compaction or clustering is carried out by its service"
        )
    if time_ in {savepoint.requested_time for savepoint in timeline.savepoints}:
        raise TimelineError(
            f"{action} {time_} cannot be rolled back: a savepoint keeps it. Delete the savepoint first"
        )
    if instant.is_completed:
        _check_on_top(timeline, instant)
        left = timeline.without({time_})
        check_none_hidden(timeline, left, f"{action} {time_} cannot be rolled back")


def _check_on_top(timeline: Timeline, instant: Instant) -> None:
    """Refuse to undo a completed write that a later one, or a plan, depends on, or below which a clean is at work."""
    time_, action = instant.requested_time, instant.action
    newest = timeline.completed_writes[-1]
    if newest.requested_time != time_:
        raise TimelineError(
            f"{action} {time_} cannot be rolled back: {newest.action} {newest.requested_time} was written after it. Roll back "
            "the newest write first, or restore to a savepoint"
        )
    for pending in timeline.pending:
        if pending.requested_time < time_:
            continue
        if pending.action == "clean" and timeline.clean_bound(pending).oldest >= time_:
            raise TimelineError(
                f"{action} {time_} cannot be rolled back: clean {pending.requested_time}, which is under way or was cut off, "
                "deletes what the table had before it. Wait for its end, or run clean to finish it, and try again"
            )
        if pending.action in _SERVICES:
            raise TimelineError(
                f"{action} {time_} cannot be rolled back: {pending.action} {pending.requested_time} is planned on top of it. Run "
                "it, or drop its plan, first"
            )
        if is_clustering(timeline, pending):
            # its run would bring the rows back, or could not find what it has planned
            raise TimelineError(
                f"{action} {time_} cannot be rolled back: clustering {pending.requested_time} is planned on top of it. Run "
                "it, or roll it back, first"
            )


def _check_older_files(
    storage: Storage, timeline: Timeline, instant: Instant, metadata: CommitMetadata
) -> None:
    """Refuse when a clean has taken the files that readers would need after the rollback."""
    for partition, stats in metadata.partition_to_write_stats.items():
        needed = {
            (str(stat.file_id), str(stat.prev_commit))
            for stat in stats
            if not stat.is_log_file and stat.prev_commit not in NO_COMMIT
        }
        slices = slices_in(storage, partition) if needed else {}
        missing = [each for each in needed if is_lost(timeline, partition, slices, each)]
        if missing:
            raise TimelineError(_cleaned(instant, partition, min(missing)[0]))
    replaced = metadata.partition_to_replace_file_ids or {}
    lost = lost_group(storage, timeline, instant.requested_time, replaced)
    if lost is not None:
        raise TimelineError(_cleaned(instant, *lost))


def _cleaned(instant: Instant, partition: str, file_id: str) -> str:
    return (
        f"{instant.action} {instant.requested_time} cannot be rolled back: the files of file group {file_id!r} in partition "
        f"{partition!r} from before it were cleaned. Restore the data from its source instead"
    )


def _metadata_of(timeline: Timeline, instant: Instant) -> CommitMetadata | None:
    """Return commit metadata, or the workload of a pending write; None when there is none that can be read."""
    if instant.is_completed:
        return readable_metadata(timeline, instant)
    try:
        return timeline.planned_metadata(instant)
    except CorruptTableError as error:
        logger.warning("%s cannot be read, listing all partitions: %s", instant.file_name, error)
        return None


def readable_metadata(timeline: Timeline, instant: Instant) -> CommitMetadata | None:
    """Return what a completed write wrote; None, with a warning, when its file is damaged.

    Without it what the write built upon is unknown. That is there for sure unless a clean came after the write.
    """
    try:
        return timeline.commit_metadata(instant)
    except CorruptTableError as error:
        later = [each for each in timeline.instants if each.action == "clean"]
        later = [each for each in later if each.requested_time > instant.requested_time]
        if later:
            raise TimelineError(
                f"{instant.action} {instant.requested_time} cannot be taken back: {error}. Clean {later[-1].requested_time} came "
                "after it and may have deleted what was there before; put the file back from a copy, or rewrite the "
                "table from its source"
            ) from error
        logger.warning("%s cannot be read, listing all partitions: %s", instant.file_name, error)
        return None


def _is_built_upon(timeline: Timeline, plan: RollbackPlan) -> bool:
    times = [write.requested_time for write in timeline.completed_writes]
    return plan.instant in times and times[-1] != plan.instant


def _clustering_of(timeline: Timeline, plan: RollbackPlan) -> Instant | None:
    """Return the pending clustering that a stored rollback is about, None when it is about something else."""
    pending = (each for each in timeline.pending if each.requested_time == plan.instant)
    same = (each for each in pending if each.action == plan.action)
    return next((each for each in same if is_clustering(timeline, each)), None)


def _is_of_run(pending: Instant, plan: RollbackPlan, clustering: Instant | None) -> bool:
    """Return whether a stored rollback takes back the run of a plan that is to run again.

    Apache Hudi does so when it finds a compaction or clustering in flight. Logs of later writes are named after a planned
    compaction, so that its plan must not go without them. A log compaction goes with its plan. So does a clustering that is only
    planned while its rollback is too: such a rollback is meant to remove the plan. Once the rollback is in flight it may have taken
    the inflight file of a run; then the plan stays, and can be rolled back again.
    """
    if plan.action == "compaction":
        return True
    return clustering is not None and State.INFLIGHT in (clustering.state, pending.state)


def _has_run_since(timeline: Timeline, pending: Instant, plan: RollbackPlan) -> bool:
    """Return whether a compaction completed after all under a rollback of its run that has taken nothing yet."""
    done = {write.requested_time for write in timeline.completed_writes}
    return pending.state is State.REQUESTED and plan.action == "compaction" and plan.instant in done


Slice = tuple[str, str]
"""(file id, base instant)."""


def slices_in(storage: Storage, partition: str) -> dict[Slice, bool]:
    """Return the slices in a folder, committed or not, each with whether its base file is there."""
    return _slices_of(list_partition_files(storage, partition), partition)


def _slices_of(files: Iterable[FileStatus], partition: str) -> dict[Slice, bool]:
    found: dict[Slice, bool] = {}
    for status in files:
        file = data_file(status.name, partition)
        if file is not None:
            slice_ = (file.file_id, file.instant)
            found[slice_] = found.get(slice_, False) or isinstance(file, BaseFile)
    return found


def is_lost(timeline: Timeline, partition: str, slices: Mapping[Slice, bool], wanted: Slice) -> bool:
    """Return whether a slice is not there, or nothing of it but logs though its commit wrote a base file."""
    if wanted not in slices:
        return True
    if slices[wanted]:
        return False
    file_id, instant = wanted
    metadata = _metadata_at(timeline, instant)
    stats = metadata.partition_to_write_stats.get(partition, ()) if metadata is not None else ()
    return any(each.file_id == file_id and not each.is_log_file and each.has_content for each in stats)


def lost_group(
    storage: Storage, timeline: Timeline, before: str, replaced: Mapping[str, Sequence[str]]
) -> FileGroupKey | None:
    """Return a file group that is not there as it was when a write took it out, None when all are.

    A clean takes replaced groups whole, but for what a savepoint keeps, which may be an older slice than the newest.
    """
    groups = {(partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids}
    listed = {partition: list(list_partition_files(storage, partition)) for partition in replaced}
    names = {(partition, each.name) for partition, statuses in listed.items() for each in statuses}
    there = {(each, file_id) for each, files in listed.items() for file_id, _ in _slices_of(files, each)}
    lost = groups - there
    if lost:
        return min(lost)
    try:
        newest = list(_newest_files(timeline, before, groups))
    except CorruptTableError as error:
        if any(each.action == "clean" and each.requested_time > before for each in timeline.instants):
            raise
        logger.warning("no clean came after %s, so all that it took out is there: %s", before, error)
        return None
    return min((key for key, name in newest if (key[0], name) not in names), default=None)


def _newest_files(
    timeline: Timeline, before: str, groups: set[FileGroupKey]
) -> Iterator[tuple[FileGroupKey, str]]:
    """Yield the files of the newest slices of file groups; of those that no write names any more there are none."""
    left = set(groups)
    for instant, metadata in newest_first(timeline, attrgetter("requested_time"), before) if left else ():
        if instant.requested_time == before:
            continue
        for partition, stat in metadata.write_stats():
            key = (partition, str(stat.file_id))
            if key not in groups:
                continue
            file = data_file(stat.file_name, partition)
            # a base file of which all rows were deleted has no rows, and is the newest one
            is_own = isinstance(file, BaseFile) and file.instant == instant.requested_time
            is_log = isinstance(file, LogFile) and stat.has_content and not file.is_cdc
            if key in left and (is_own or is_log):
                yield key, stat.file_name
            if is_own:
                left.discard(key)
        if not left:
            return


def _metadata_at(timeline: Timeline, instant: str) -> CommitMetadata | None:
    """Return what a write on the timeline or in the archive wrote; None when there is none that can be read."""
    is_active = any(each.requested_time == instant for each in timeline.completed_writes)
    source = timeline if is_active else timeline.archived
    try:
        for write in source.completed_writes:
            if write.requested_time == instant:
                return source.commit_metadata(write)
    except (CorruptTableError, TimelineError):
        pass
    return None
