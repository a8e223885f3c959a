"""Cleaning up after writers that died, before a new write begins.

Which instants are leftovers is decided by who owns them: an owner that is alive keeps its instant, one that
is provably gone loses it (:mod:`hudi_engine.table.txn.owner`). An instant without any heartbeat file is another
program's; it is left alone as long as a heartbeat would have counted. Then ``hoodie.cleaner.policy.failed.writes``
decides about it: ``EAGER`` rolls it back, as Apache Hudi does by default, ``LAZY`` leaves it until its
heartbeat proves it dead, ``NEVER`` leaves everything alone. Plans of compaction and clustering are no
leftovers: their service carries them out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from hudi_engine.errors import ConfigError, HudiError, TimelineError
from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.enums import ConcurrencyMode, FailedWritesPolicy
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import ZONE_PROPERTY, TableConfig, named_zone
from hudi_engine.format.storage.base import TEMP_PREFIX, Storage, storage_errors
from hudi_engine.format.storage.planned import refuse_in_plan
from hudi_engine.format.telemetry.services import Done, measured, report_service
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import InstantClock
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.table.metadata.index_build import end_dead_builds
from hudi_engine.table.txn.conflict import is_clustering
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.owner import (
    HEARTBEAT_FOLDER,
    Liveness,
    OwnerState,
    ProcessIdentity,
    heartbeat_path,
    owner_in,
)
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.removal import sweep_markers
from hudi_engine.table.txn.rollback import RollbackResult, resume_restores, resume_rollbacks, rollback_instant

logger = logging.getLogger(__name__)

TEMPORARY_KEPT_MS = 3_600_000
"""How long a temporary file may be another writer's work, counted from when it was last written to."""


@dataclass(frozen=True)
class Recovery:
    """What was cleaned up."""

    timeline: Timeline
    rolled_back: tuple[str, ...]


def table_lock(storage: Storage, options: Options) -> TableLock:
    """Return the table's lock as the options want it; raises ConfigError for writers that do not exclude each other."""
    refuse_in_plan(f"work on {storage.base!r}")
    mode = options[WriterOptions.CONCURRENCY_MODE]
    if mode is ConcurrencyMode.NON_BLOCKING_CONCURRENCY_CONTROL:
        raise ConfigError(
            f"{WriterOptions.CONCURRENCY_MODE} is {mode}: tables whose writers append to one file group at once are read here, "
            f"and not written. Legal values of a write: {ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL}, "
            f"{ConcurrencyMode.SINGLE_WRITER}; set one of them once no writer of the table uses that mode any more"
        )
    return TableLock(
        storage,
        options[WriterOptions.LOCK_WAIT],
        options[WriterOptions.LOCK_EXPIRE] * 60_000,
        single_writer=mode is ConcurrencyMode.SINGLE_WRITER,
    )


def next_instant(timeline: Timeline) -> str:
    """Return an instant greater than all of the timeline, in its zone.

    The clock is a fresh one, so that a table with instants in the future does not drag the others of this
    process along.
    """
    return InstantClock().next(timeline.latest_time, timeline.zone)


_UNDOING = ("restore", "rollback")


def recover(
    storage: Storage,
    config: TableConfig,
    options: Options,
    publication: Publication,
    *,
    sweeps: bool = True,
) -> Recovery:
    """Finish begun restores and rollbacks, roll back what dead writers left, and remove what came late or was forgotten.

    The timeline that it returns has the settings of the table as they are then: the first writer may give its time zone.

    Raises:
        ConfigError: Other writers of the table are in another time zone, and none is given.
    """
    timeline = _in_its_zone(storage, Timeline.load(storage, config), options)
    timeline = end_dead_builds(storage, timeline)
    config = timeline.config
    living = Liveness(storage, config, options)
    rolled_back: list[str] = []
    if any(each.action in _UNDOING for each in timeline.pending):
        finished = resume_restores(storage, config, timeline, publication)
        rolled_back += [time for done in finished for time in done.taken_back]
        timeline = Timeline.load(storage, config)
        resumed = resume_rollbacks(storage, config, timeline, publication, living)
        rolled_back += [result.instant for result in resumed]
        timeline = Timeline.load(storage, config)
    for instant in reversed(failed_writes(timeline, living, options)):
        logger.warning("rolling back %s %s, whose writer has ended", instant.action, instant.requested_time)
        begun = time.monotonic()
        done = rollback_instant(storage, config, timeline, instant, publication)
        report_service(storage, options, _done(done), time.monotonic() - begun)
        rolled_back.append(instant.requested_time)
        timeline = Timeline.load(storage, config)
    timeline = _without_dead_savepoints(storage, config, timeline, living)
    if sweeps:
        _sweep(storage, config, timeline, living)
    return Recovery(timeline, tuple(rolled_back))


def _in_its_zone(storage: Storage, timeline: Timeline, options: Options) -> Timeline:
    """Return the timeline in the zone of the table's writers, which the table keeps once it was given.

    Instants of another zone would lie hours before or after those of the other writers, and rows of either would be lost.
    """
    config, given = timeline.config, options[TableOptions.TIMELINE_ZONE] or ""
    if config.timeline_timezone == "UTC":
        return timeline
    if given.upper() not in ("", "LOCAL"):
        named_zone(given)
        if given != config.properties.get(ZONE_PROPERTY):
            config = config.with_properties({ZONE_PROPERTY: given})
            config.save(storage)
            logger.info("%s keeps %s as the time zone of its instants", storage.base, given)
            timeline = Timeline.load(storage, config)
        return timeline
    difference = timeline.zone_difference()
    if difference:
        here = "this machine" if timeline.zone is None else f"the zone that the table keeps, {timeline.zone},"
        hours = abs(difference) / timedelta(hours=1)
        raise ConfigError(
            f"table {config.name!r} has instants in local time, and those of its newest commits are {hours:g} hours "
            f"{'ahead of' if difference > timedelta() else 'behind'} the times at which {here} sees their files: they were "
            "written in another time zone, and what is written here would be lost between them, or they after it. Give the "
            f"zone of the other writers, such as {TableOptions.TIMELINE_ZONE}=America/New_York; the table keeps it"
        )
    return timeline


def _done(result: RollbackResult) -> Done:
    return Done("rollback", {"numFilesDeleted": len(result.deleted)})


@measured(_done)
def rollback_write(
    storage: Storage, options: Options, publication: Publication, instant_time: str | None = None
) -> RollbackResult:
    """Undo the newest committed write, or a pending one, under the table's lock.

    Args:
        instant_time: The write, so that no other one is undone by mistake; None for the newest committed one.
    """
    with recovered(storage, options, publication, "roll back", sweeps=False) as (config, timeline):
        instant = to_roll_back(storage, timeline, instant_time)
        is_plan = instant.action in ("replacecommit", "clustering") and not instant.is_completed
        owned_by = options if is_plan else None
        return rollback_instant(storage, config, timeline, instant, publication, owned_by=owned_by)


@contextmanager
def recovered(
    storage: Storage, options: Options, publication: Publication, doing: str, *, sweeps: bool = True
) -> Iterator[tuple[TableConfig, Timeline]]:
    """Hold the lock of a table that dead writers have left nothing in; give its settings and timeline."""
    with storage_errors(storage, doing), table_lock(storage, options):
        config = TableConfig.load(storage)
        config.check_writable()
        timeline = recover(storage, config, options, publication, sweeps=sweeps).timeline
        yield timeline.config, timeline


def to_roll_back(storage: Storage, timeline: Timeline, instant_time: str | None) -> Instant:
    """Return the write that a rollback is about, the newest committed one for None; raises TimelineError."""
    writes = timeline.completed_writes
    if instant_time is not None:
        found = [write for write in writes if write.requested_time == instant_time]
        gone = all(each.requested_time != instant_time for each in timeline.instants)
        if gone and instant_time in timeline.undone_since():
            raise TimelineError(
                f"{instant_time} has been taken back already: nothing is left of it to roll back"
            )
        return found[0] if found else timeline.find(instant_time)
    if not writes:
        raise TimelineError(f"the table at {storage.base!r} has no committed write to roll back")
    return writes[-1]


def failed_writes(timeline: Timeline, living: Liveness, options: Options) -> list[Instant]:
    """Return the pending writes that a new writer may roll back, oldest first."""
    policy = options[WriterOptions.FAILED_WRITES_POLICY]
    if policy == FailedWritesPolicy.NEVER:
        return []
    lost = {OwnerState.DEAD, OwnerState.UNKNOWN} if policy == FailedWritesPolicy.EAGER else {OwnerState.DEAD}
    return [instant for instant in pending_writes(timeline) if living.of(instant) in lost]


def under_way(storage: Storage, timeline: Timeline, options: Options) -> list[str]:
    """Return the pending writes of other processes that live, or may live, each with its instant and its process, oldest first."""
    living, found = Liveness(storage, timeline.config, options), []
    for each in pending_writes(timeline):
        owner = owner_in(storage, heartbeat_path(each.requested_time))
        if (owner is None or owner.process != ProcessIdentity.current()) and living.is_at_work(each):
            found.append(f"{each.action} {each.requested_time} ({owner or 'process unknown'})")
    return found


def left_by_ended(storage: Storage, timeline: Timeline) -> list[str]:
    """Return the instants of the pending writes whose process ran on this machine and has ended; nothing is written."""
    writes = [each.requested_time for each in pending_writes(timeline)]
    owners = {each: owner_in(storage, heartbeat_path(each)) for each in writes}
    return [
        time for time, owner in owners.items() if owner is not None and owner.process.is_running() is False
    ]


def pending_writes(timeline: Timeline) -> list[Instant]:
    """Return the writes that have not completed, oldest first; a planned clustering is none."""
    return [
        instant
        for instant in timeline.pending
        if instant.action in WRITE_ACTIONS and not is_clustering(timeline, instant)
    ]


def _without_dead_savepoints(
    storage: Storage, config: TableConfig, timeline: Timeline, living: Liveness
) -> Timeline:
    """Drop savepoints that were begun long ago: nothing is kept by them, and they would hold up the archive."""
    begun = [instant for instant in timeline.pending if instant.action == "savepoint"]
    dead = [instant for instant in begun if living.of(instant) is OwnerState.UNKNOWN]
    for instant in dead:
        OpenInstant(storage, config, instant.requested_time, "savepoint").drop()
    return Timeline.load(storage, config) if dead else timeline


def _sweep(storage: Storage, config: TableConfig, timeline: Timeline, living: Liveness) -> None:
    """Remove late files, markers and heartbeats of instants that are completed or gone; trouble is not fatal here."""
    pending = {instant.requested_time for instant in timeline.pending}
    try:
        sweep_markers(storage, config, timeline, living)
        for status in storage.list(HEARTBEAT_FOLDER):
            if status.is_dir or status.name in pending:
                continue
            if status.name.startswith(TEMP_PREFIX):
                gone = living.now_ms - status.modified_ms > TEMPORARY_KEPT_MS
            else:
                gone = living.of_time(status.name) is OwnerState.DEAD
            if gone:
                storage.remove(status.path)
    except (OSError, HudiError) as error:
        logger.warning(
            "could not remove leftovers below %s/.hoodie, the next write will: %s", storage.base, error
        )
