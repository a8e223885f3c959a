"""Cleaning up after writers that died, before a new write begins.

Which instants are leftovers is decided by who owns them: an owner that is alive keeps its instant, one that
is provably gone loses it (:mod:`hudi_engine.txn.owner`). An instant without any heartbeat file is another
program's; ``hoodie.cleaner.policy.failed.writes`` says what happens to it: ``EAGER`` rolls it back, as Apache
Hudi does by default, ``LAZY`` leaves it until its heartbeat proves it dead, ``NEVER`` leaves everything
alone. Plans of compaction and clustering are nobody's leftover: their service carries them out.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import CorruptTableError, StorageError, TimelineError
from hudi_engine.storage.base import TEMP_PREFIX, Storage
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.clock import InstantClock
from hudi_engine.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_engine.txn.lock import LOCK_PATH, TableLock
from hudi_engine.txn.owner import HEARTBEAT_FOLDER, OwnerState, owner_state, storage_now_ms
from hudi_engine.txn.restore_steps import resume_restores
from hudi_engine.txn.rollback import Republish, RollbackResult, resume_rollbacks, rollback_instant
from hudi_engine.txn.storage_errors import storage_errors

logger = logging.getLogger(__name__)

MARKER_ROOT = ".hoodie/.temp"
_TEMPORARY_KEPT_MS = 3_600_000


@dataclass(frozen=True)
class Recovery:
    """What was cleaned up.

    Args:
        timeline: The timeline afterwards.
        rolled_back: Instants that were rolled back, or whose rollback was finished.
    """

    timeline: Timeline
    rolled_back: tuple[str, ...]


def table_lock(storage: Storage, options: Options) -> TableLock:
    """Return the table's lock as the options want it."""
    return TableLock(
        storage,
        options.int("hoodie.write.lock.wait_time_ms"),
        options.int("hoodie.write.lock.filesystem.expire") * 60_000,
        single_writer=options.text("hoodie.write.concurrency.mode") == "SINGLE_WRITER",
    )


def next_instant(timeline: Timeline, clock: InstantClock | None = None) -> str:
    """Return an instant greater than all of the timeline, in its zone.

    Without ``clock`` a fresh one is taken, so that a table with instants in the future does not drag the
    others of this process along.
    """
    return (clock or InstantClock()).next(timeline.latest_instant_time, timeline.zone)


def recover(
    storage: Storage,
    config: TableConfig,
    options: Options,
    *,
    clock: InstantClock | None = None,
    republish: Republish | None = None,
) -> Recovery:
    """Finish begun restores and rollbacks, roll back what dead writers left, and remove stray markers and
    heartbeats.

    The caller holds the table's lock.

    Args:
        clock: Source of instants, for tests.
        republish: Called before data files of an unpublished instant are deleted.

    Raises:
        CorruptTableError, PathEscapeError: when a stored rollback plan cannot be trusted.
    """
    rolled_back = [
        time for done in resume_restores(storage, config, republish=republish) for time in done.taken_back
    ]
    rolled_back += [result.instant for result in resume_rollbacks(storage, config, republish=republish)]
    timeline = Timeline.load(storage, config)
    for instant in reversed(failed_writes(storage, timeline, options)):
        logger.warning("rolling back %s %s, whose writer is gone", instant.action, instant.requested_time)
        rollback_time = next_instant(timeline, clock)
        rollback_instant(storage, config, instant, rollback_time=rollback_time, republish=republish)
        rolled_back.append(instant.requested_time)
        timeline = Timeline.load(storage, config)
    _sweep(storage, timeline, options)
    return Recovery(timeline, tuple(rolled_back))


def rollback_write(
    storage: Storage,
    options: Options,
    instant_time: str | None = None,
    *,
    clock: InstantClock | None = None,
    republish: Republish | None = None,
) -> RollbackResult:
    """Undo the newest committed write, under the table's lock.

    What it wrote is gone for good.

    Args:
        instant_time: The write, so that no other one is undone by mistake; None for the newest.
        clock: Source of instants, for tests.
        republish: Called between unpublishing the write and deleting its files.

    Raises:
        TimelineError: when there is no such write, or it cannot be rolled back.
        WriteConflictError: when the table's lock is not free in time.
        StorageError: when the storage failed; the next write finishes the rollback.
    """
    with storage_errors(storage, "roll back"), table_lock(storage, options):
        config = TableConfig.load(storage)
        config.check_writable()
        timeline = recover(storage, config, options, clock=clock, republish=republish).timeline
        if instant_time is not None:
            instant = next(
                (write for write in timeline.completed_writes if write.requested_time == instant_time),
                None,
            ) or timeline.find(instant_time)
        elif timeline.completed_writes:
            instant = timeline.completed_writes[-1]
        else:
            raise TimelineError(f"the table at {storage.base!r} has no committed write to roll back")
        time = next_instant(timeline, clock)
        return rollback_instant(storage, config, instant, rollback_time=time, republish=republish)


def failed_writes(storage: Storage, timeline: Timeline, options: Options) -> list[Instant]:
    """Return the pending writes that a new writer may roll back, oldest first.

    Args:
        options: ``hoodie.cleaner.policy.failed.writes`` and the heartbeat's interval and misses.
    """
    policy = options.text("hoodie.cleaner.policy.failed.writes") or "EAGER"
    pending = [instant for instant in timeline.pending if instant.action in WRITE_ACTIONS]
    if policy == "NEVER" or not pending:
        return []
    now_ms = _now_ms(storage)
    failed = []
    for instant in pending:
        if instant.action == "replacecommit" and is_clustering(timeline, instant):
            continue
        state = _owner_state(storage, instant.requested_time, options, now_ms)
        if state is OwnerState.DEAD or (state is OwnerState.UNKNOWN and policy == "EAGER"):
            failed.append(instant)
    return failed


def is_clustering(timeline: Timeline, instant: Instant) -> bool:
    """Return whether a pending replacecommit is a clustering plan rather than an overwrite that is under
    way.
    """
    try:
        plan = timeline.plan(instant)
    except CorruptTableError:
        plan = None
    if plan is not None:
        return plan.get("operationType") == "CLUSTER" or bool(plan.get("clusteringPlan"))
    if instant.state is State.REQUESTED:
        return False
    try:
        return timeline.planned_metadata(instant) is None
    except CorruptTableError:
        return False


def _sweep(storage: Storage, timeline: Timeline, options: Options) -> None:
    """Remove marker folders and heartbeats of instants that are completed or gone; trouble is not fatal
    here.
    """
    pending = {instant.requested_time for instant in timeline.pending}
    try:
        for status in storage.list(MARKER_ROOT):
            if status.is_dir and status.name.isdigit() and status.name not in pending:
                storage.delete_tree(status.path)
        now_ms: int | None = None
        for status in storage.list(HEARTBEAT_FOLDER):
            if status.is_dir or status.name in pending:
                continue
            now_ms = _now_ms(storage) if now_ms is None else now_ms
            if status.name.startswith(TEMP_PREFIX):
                gone = now_ms - status.modified_ms > _TEMPORARY_KEPT_MS
            else:
                gone = _owner_state(storage, status.name, options, now_ms) is OwnerState.DEAD
            if gone:
                storage.delete(status.path)
    except (OSError, StorageError) as error:
        logger.warning(
            "could not remove leftovers below %s/.hoodie, the next write will: %s", storage.base, error
        )


def _owner_state(storage: Storage, instant: str, options: Options, now_ms: int) -> OwnerState:
    return owner_state(
        storage,
        instant,
        interval_ms=options.int("hoodie.client.heartbeat.interval_in_ms"),
        tolerable_misses=options.int("hoodie.client.heartbeat.tolerable.misses"),
        now_ms=now_ms,
    )


def _now_ms(storage: Storage) -> int:
    """Return the storage's time: the lock was just made by it."""
    lock = storage.stat(LOCK_PATH)
    return lock.modified_ms if lock is not None else storage_now_ms(storage)
