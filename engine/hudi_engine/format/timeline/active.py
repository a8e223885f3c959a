"""The active timeline: an immutable snapshot of what happened to a table, and what is under way.

Layout 1 (table version 6) keeps its files in ``.hoodie``, layout 2 (versions 8 and 9) in
``.hoodie/timeline``. In layout 1 no completion time is stored; the requested time is used for it, which is right
as long as one goes by the names of log files, as this engine does (Hudi timeline specification).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.timeline.archived import ArchivedTimeline, archived_completion_times
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.format.timeline.clock import InstantClock, format_instant, time_shown
from hudi_engine.format.timeline.commit_metadata import NO_COMMIT, CommitMetadata
from hudi_engine.format.timeline.instant import (
    COMPLETED_ACTION,
    WRITE_ACTIONS,
    Instant,
    State,
    newest_states,
    parse_instant,
    timeline_file_name,
)
from hudi_engine.format.timeline.writer import TimelineWriter, check_inflight

_MAX_BYTES = 4 * 1024 * 1024
"""Of files; in memory they take about ten times as much."""

_Name = tuple[str, str, int, int]


_COMPARED = 3
"""Instants whose digits are compared with the modification times of their files."""
_QUARTER, _EXACT, _FARTHEST = timedelta(minutes=15), timedelta(seconds=15), timedelta(hours=26)


def _lateness(instant: Instant, status: FileStatus, zone: tzinfo | None) -> timedelta | None:
    """Return how much later a timeline file was modified than its name states, on clocks of one zone; None for no date."""
    modified = datetime.fromtimestamp(status.modified_ms / 1000, timezone.utc)
    try:
        return time_shown(format_instant(modified, zone)) - time_shown(instant.order)
    except (ValueError, OverflowError):
        return None


class KeptMetadata:
    """The commits that were read last, as a write looks at the timeline several times; safe to use by several threads."""

    def __init__(self, most: int = _MAX_BYTES) -> None:
        self._most, self._bytes = most, 0
        self._held: OrderedDict[_Name, CommitMetadata] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, base: str, status: FileStatus) -> CommitMetadata | None:
        """Return what a completed write wrote, None where it is not kept."""
        name = _name(base, status)
        with self._lock:
            if name in self._held:
                self._held.move_to_end(name)
            return self._held.get(name)

    def keep(self, base: str, status: FileStatus, metadata: CommitMetadata) -> None:
        """Keep what a completed write wrote; the least recently used ones are dropped."""
        name = _name(base, status)
        with self._lock:
            if name in self._held or status.size > self._most:
                return
            self._held[name] = metadata
            self._bytes += status.size
            while self._bytes > self._most:
                (_, _, size, _), _ = self._held.popitem(last=False)
                self._bytes -= size


def _name(base: str, status: FileStatus) -> _Name:
    return base, status.path, status.size, status.modified_ms


KEPT_METADATA = KeptMetadata()
"""Of this process."""


@dataclass(frozen=True)
class CommittedInstants:
    """Small picklable answer to "is this instant committed?", for readers on executors.

    An instant older than the first completed write of the active timeline was archived, and only completed
    writes are archived, unless it is still pending on the active timeline. Savepointed writes do not count
    as the first, since archiving leaves them behind while it takes younger ones (Hudi timeline
    specification).

    Args:
        completed: Requested times of completed writes on the active timeline.
        first: Requested time of the first completed write that is not savepointed; None for an empty timeline.
    """

    completed: frozenset[str]
    pending: frozenset[str]
    first: str | None
    as_of: str | None = None

    def __call__(self, requested_time: str) -> bool:
        """Return whether files and log blocks of this instant belong to the table."""
        if self.as_of is not None and requested_time > self.as_of:
            return False
        if requested_time in self.completed:
            return True
        return self.first is not None and requested_time < self.first and requested_time not in self.pending


__all__ = ["FileGroupKey", "Timeline", "TimelineWriter", "check_inflight"]

FileGroupKey = tuple[str, str]
"""(partition path, file id)."""


class CleanBound(NamedTuple):
    """How far back a clean leaves the table whole.

    Args:
        oldest: Oldest point in time whose files are all there; ``""`` when the clean took nothing.
    """

    oldest: str
    clean: str


class Timeline:
    """Snapshot of the active timeline, taken by one listing; bodies are read on first use, and once."""

    def __init__(self, storage: Storage, config: TableConfig, instants: Iterable[Instant]) -> None:
        self._storage = storage
        self._config = config
        self._metadata: dict[str, CommitMetadata] = {}
        self._undone: dict[str, frozenset[str]] = {}
        self._listed: dict[str, FileStatus] = {}
        self.instants: tuple[Instant, ...] = newest_states(instants)

    @classmethod
    def load(cls, storage: Storage, config: TableConfig) -> Timeline:
        """List the timeline folder and parse its names; files with other names are ignored."""
        listed = {each.name: each for each in storage.list(config.timeline_path) if not each.is_dir}
        found = (parse_instant(name, config.layout_version) for name in listed)
        timeline = cls(storage, config, [instant for instant in found if instant is not None])
        timeline._listed = listed
        return timeline

    def as_if_completed(
        self, requested_time: str, action: str, metadata: CommitMetadata, completion_time: str | None = None
    ) -> Timeline:
        """Return the timeline as it will be when a write completes, to look at what it leaves.

        Args:
            completion_time: When it completed; None where it has not yet, which counts as later than all of the timeline.
        """
        if completion_time is None and self._config.table_version.has_completion_times:
            completion_time = InstantClock().next(max(requested_time, self.latest_time or ""), self.zone)
        name = timeline_file_name(requested_time, action, State.COMPLETED, completion_time)
        mine = Instant(requested_time, action, State.COMPLETED, completion_time, name)
        others = [each for each in self.instants if each.requested_time != requested_time]
        future = Timeline(self._storage, self._config, [*others, mine])
        future._metadata = {**self._metadata, name: metadata}
        return future

    @property
    def config(self) -> TableConfig:
        """The table's settings with which it was read."""
        return self._config

    @property
    def zone(self) -> tzinfo | None:
        """Zone of the digits of instants; None for the zone of this machine."""
        return self._config.timeline_zone

    def zone_difference(self) -> timedelta | None:
        """Return by how much the clock of other writers differs from one in the timeline's zone; None when that is not known.

        The newest completed instants are compared with the modification times of their files. Only a whole number of quarter
        hours that they share is the difference of two zones; files of a copied table were modified at other times.
        """
        completed = {
            (each.requested_time, each.action) for each in self.completed if each.action != "savepoint"
        }
        named = (
            (parse_instant(each.name, self._config.layout_version), each) for each in self._listed.values()
        )
        files = [
            (instant, status) for instant, status in named if instant and instant.state is not State.INFLIGHT
        ]
        made: dict[str, tuple[int, timedelta]] = {}
        # Requested files last: in layout 1 the completed one is younger than its name by as long as the write took.
        for instant, status in sorted(files, key=lambda each: -each[0].state.rank):
            done_as = COMPLETED_ACTION.get(instant.action, instant.action)
            late = _lateness(instant, status, self.zone)
            if late is not None and (instant.requested_time, done_as) in completed:
                made[instant.requested_time] = (status.modified_ms, late)
        newest = [late for _, late in sorted(made.values(), reverse=True)[:_COMPARED]]
        quarters = {round(late / _QUARTER) for late in newest}
        if len(quarters) != 1:
            return None
        difference = quarters.pop() * _QUARTER
        is_exact = all(abs(late - difference) <= _EXACT for late in newest)
        return -difference if is_exact and abs(difference) <= _FARTHEST else None

    @cached_property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants of every action."""
        return tuple(instant for instant in self.instants if instant.is_completed)

    @cached_property
    def pending(self) -> tuple[Instant, ...]:
        """Instants that are requested or in flight."""
        return tuple(instant for instant in self.instants if not instant.is_completed)

    @cached_property
    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed commits, deltacommits and replacecommits."""
        return tuple(instant for instant in self.completed if instant.action in WRITE_ACTIONS)

    @cached_property
    def savepoints(self) -> tuple[Instant, ...]:
        """Completed savepoints; their requested time is the saved write's."""
        return tuple(instant for instant in self.completed if instant.action == "savepoint")

    @cached_property
    def first_write_time(self) -> str | None:
        """Requested time of the first completed write that no savepoint holds back from archiving."""
        saved = {instant.requested_time for instant in self.savepoints}
        times = [instant.requested_time for instant in self.completed_writes]
        return next((time for time in times if time not in saved), times[0] if times else None)

    @cached_property
    def latest_time(self) -> str | None:
        """Greatest time of any instant, requested or completed, pending ones included; the next instant must exceed it."""
        return max((max(each.requested_time, each.order) for each in self.instants), default=None)

    def committed(self, as_of: str | None = None) -> CommittedInstants:
        """Return the picklable test for visible instants."""
        return CommittedInstants(
            frozenset(instant.requested_time for instant in self.completed_writes),
            frozenset(instant.requested_time for instant in self.pending),
            self.first_write_time,
            as_of,
        )

    @cached_property
    def _committed_now(self) -> CommittedInstants:
        return self.committed()

    def is_committed(self, requested_time: str) -> bool:
        """Return whether data files of this instant belong to the table now."""
        return self._committed_now(requested_time)

    @cached_property
    def archived(self) -> ArchivedTimeline:
        """The archived timeline, read on first use."""
        return ArchivedTimeline.load(self._storage, self._config)

    @cached_property
    def _completion_times(self) -> dict[str, str]:
        return {instant.requested_time: instant.order for instant in self.completed_writes}

    @cached_property
    def _archived_completion_times(self) -> dict[str, str]:
        return archived_completion_times(self._storage, self._config)

    def completion_time(self, requested_time: str) -> str | None:
        """Return when a write completed; None when it is not committed.

        In layout 1 it is the requested time. In layout 2 archived instants are looked up in the archived
        timeline; one that is not there counts as completed at its own time.
        """
        found = self._completion_times.get(requested_time)
        if found is not None:
            return found
        if not self.is_committed(requested_time):
            return None
        if self._config.layout_version == 1:
            return requested_time
        return self._archived_completion_times.get(requested_time, requested_time)

    def find(self, requested_time: str, action: str | None = None) -> Instant:
        """Return an instant by time, and by action when several share the time."""
        for instant in self.instants:
            if instant.requested_time == requested_time and action in (None, instant.action):
                return instant
        times = dict.fromkeys(instant.requested_time for instant in self.instants)
        newest = ", ".join(list(times)[-5:]) or "none"
        raise TimelineError(
            f"there is no {action or 'instant'} {requested_time!r} on the active timeline of "
            f"{self._storage.base!r}; the newest instants are: {newest}"
        )

    def read_file(self, file_name: str) -> bytes:
        """Return the body of a timeline file. Raises FileNotFoundError when missing."""
        return self._storage.read(f"{self._config.timeline_path}/{file_name}")

    def record(self, instant: Instant) -> dict[str, Any]:
        """Return the Avro record of a completed clean, rollback or restore; empty for an empty file."""
        body = self.read_file(instant.file_name)
        return decode_avro_file(body, self._describe(instant.file_name)) if body else {}

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return what a completed write wrote."""
        if not instant.is_completed:
            raise TimelineError(
                f"{instant.file_name!r} is not completed; ask planned_metadata() for the plan of a pending "
                "write"
            )
        if instant.file_name not in self._metadata:
            self._metadata[instant.file_name] = self._read_metadata(instant)
        return self._metadata[instant.file_name]

    def known_metadata(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield the completed writes whose files this snapshot has read already, with what they wrote."""
        for instant in self.completed_writes:
            if instant.file_name in self._metadata:
                yield instant, self._metadata[instant.file_name]

    def without(self, requested_times: Collection[str]) -> Timeline:
        """Return the timeline without some instants, to look at what the others say."""
        return Timeline(
            self._storage,
            self._config,
            [each for each in self.instants if each.requested_time not in requested_times],
        )

    def _read_metadata(self, instant: Instant) -> CommitMetadata:
        listed = self._listed.get(instant.file_name)
        kept = None if listed is None else KEPT_METADATA.find(self._storage.base, listed)
        if kept is not None:
            return kept
        try:
            body = self.read_file(instant.file_name)
        except FileNotFoundError as error:
            archived = self.archived
            if any(each.requested_time == instant.requested_time for each in archived.instants):
                return archived.commit_metadata(instant)
            raise TimelineError(
                f"{instant.file_name!r} left the timeline of {self._storage.base!r} after it was "
                "listed: it was rolled back. Load the timeline again"
            ) from error
        metadata = CommitMetadata.from_bytes(body, self._describe(instant.file_name))
        if listed is not None and listed.size == len(body):
            KEPT_METADATA.keep(self._storage.base, listed, metadata)
        return metadata

    def newest_metadata(self, before: str | None = None) -> CommitMetadata | None:
        """Return what the newest completed write wrote, None when there is none; raises as commit_metadata does."""
        writes = [each for each in self.completed_writes if before is None or each.requested_time < before]
        return self.commit_metadata(writes[-1]) if writes else None

    def planned_metadata(self, instant: Instant) -> CommitMetadata | None:
        """Return the workload a write stored when it went in flight; None when it stored none."""
        name = timeline_file_name(instant.requested_time, instant.action, State.INFLIGHT)
        try:
            body = self.read_file(name)
        except FileNotFoundError:
            return None
        return CommitMetadata.from_bytes(body, self._describe(name)) if body else None

    def plan(self, instant: Instant) -> dict[str, Any] | None:
        """Return the Avro plan in the requested file of an action; None when the file is missing or empty.

        Raises:
            CorruptTableError: when the file is truncated, naming it.
        """
        action = instant.action
        if instant.is_completed and action == "replacecommit":
            planned = self._config.table_version.clustering_action
            name = timeline_file_name(instant.requested_time, planned, State.REQUESTED)
            action = planned if name in self._listed else action
        name = timeline_file_name(instant.requested_time, action, State.REQUESTED)
        try:
            body = self.read_file(name)
        except FileNotFoundError:
            return None
        return decode_avro_file(body, self._describe(name)) if body else None

    def replaced_file_groups(self, as_of: str | None = None) -> dict[FileGroupKey, str]:
        """Return the file groups taken out by completed replacecommits, with the instant that did it."""
        found: dict[FileGroupKey, str] = {}
        for instant in self.completed_writes:
            if instant.action != "replacecommit" or (as_of is not None and instant.requested_time > as_of):
                continue
            for key in self.replaced_by(instant):
                found.setdefault(key, instant.requested_time)
        return found

    def replaced_by(self, instant: Instant) -> list[FileGroupKey]:
        """Return the file groups that a completed replacecommit took out; raises as commit_metadata does."""
        return self.commit_metadata(instant).replaced

    def table_schema_json(self, as_of: str | None = None) -> str | None:
        """Return the Avro schema (JSON, without meta columns) of the newest write that carries one.

        A service may have begun before a write of new columns completed, and carries those from before it. So its schema
        counts only where no other write, archived ones included, carries any. Without a write it is the schema the table
        was created with, None when there is none either.
        """
        of_service: str | None = None
        writes = newest_first(self, attrgetter("requested_time"), as_of) if self.completed_writes else ()
        for _, metadata in writes:
            if metadata.schema_json is not None and not metadata.is_of_service:
                return metadata.schema_json
            of_service = of_service or metadata.schema_json
        return of_service or self._config.create_schema

    def pending_compaction_plans(self) -> dict[str, dict[str, Any]]:
        """Return the plans of compactions that have not completed, by instant."""
        return self._plans("compaction")

    def pending_log_compaction_plans(self) -> dict[str, dict[str, Any]]:
        """Return the plans of log compactions that have not completed, by instant."""
        return self._plans("logcompaction")

    def pending_compaction_file_groups(self) -> dict[FileGroupKey, str]:
        """Return the file groups of pending compactions, with the newest such instant."""
        found: dict[FileGroupKey, str] = {}
        for time, plan in sorted(self.pending_compaction_plans().items()):
            for operation in plan.get("operations") or ():
                found[operation.get("partitionPath") or "", operation["fileId"]] = time
        return found

    def pending_clustering_file_groups(self) -> dict[FileGroupKey, str]:
        """Return the input file groups of pending clustering plans, with the instant; they must not be updated."""
        found: dict[FileGroupKey, str] = {}
        for instant in self.pending:
            if instant.action not in ("replacecommit", "clustering"):
                continue
            plan = (self.plan(instant) or {}).get("clusteringPlan") or {}
            for group in plan.get("inputGroups") or ():
                for entry in group.get("slices") or ():
                    found[entry.get("partitionPath") or "", entry["fileId"]] = instant.requested_time
        return found

    @cached_property
    def cleaned_up_to(self) -> CleanBound | None:
        """The oldest point in time whose files all cleans, done and planned, keep whole; None without one."""
        bounds = (self.clean_bound(instant) for instant in self.instants if instant.action == "clean")
        return max((bound for bound in bounds if bound.oldest), default=None)

    def check_readable(self, as_of: str | None, *, asked: str = "as_of") -> None:
        """Refuse a point in time whose files a clean may have deleted; a savepoint's are kept, and those of the newest write.

        Before its first commit a table had none.
        """
        whole = (*self.savepoints, *self.completed_writes[-1:])
        if as_of is None or any(each.requested_time == as_of for each in whole):
            return
        bound = self.cleaned_up_to
        if self.first_write_time is not None and as_of < self.first_write_time:
            archived = CleanBound(self.archived.cleaned_up_to, "of the archive")
            bound = max(bound or archived, archived)
        if bound is not None and as_of < bound.oldest and not is_before_beginning(self, as_of):
            raise TimelineError(
                f"{asked} is {as_of}, but the table at {self._storage.base!r} has been cleaned up to {bound.oldest}; read "
                f"as of that instant or a later one, and retain more commits if older ones are to stay readable (clean "
                f"{bound.clean})"
            )

    def undone_since(self, before: Timeline | None = None) -> frozenset[str]:
        """Return the instants that rollbacks and restores have taken back."""
        known = frozenset() if before is None else {instant.file_name for instant in before.completed}
        undoing = (each for each in self.completed if each.action in ("rollback", "restore"))
        taken = (self.rolled_back_with(each) for each in undoing if each.file_name not in known)
        return frozenset[str]().union(*taken)

    def rolled_back_with(self, instant: Instant) -> frozenset[str]:
        """Return the instants that a completed rollback or restore took back."""
        if instant.file_name not in self._undone:
            record = self.listed_record(instant)
            taken = (*(record.get("commitsRollback") or ()), *(record.get("instantsToRollback") or ()))
            self._undone[instant.file_name] = frozenset(taken)
        return self._undone[instant.file_name]

    def listed_record(self, instant: Instant) -> dict[str, Any]:
        """As `record`; TimelineError where the file has been archived since it was listed."""
        try:
            return self.record(instant)
        except FileNotFoundError as error:
            raise TimelineError(
                f"{instant.action} {instant.requested_time} left the timeline of {self._storage.base!r} after it was "
                "listed. Load the timeline again"
            ) from error

    def clean_bound(self, clean: Instant) -> CleanBound:
        """Return how far back one clean leaves the table whole.

        A policy by commits or hours names its oldest retained commit. One by file versions keeps the newest
        slices alone, those of the newest write it knew: its record names it, or it is the newest before it.
        """
        if clean.is_completed:
            record = self.listed_record(clean)
            retained = record.get("earliestCommitToRetain")
        else:
            plan = self.begun_plan(clean)
            if plan is None:
                return CleanBound("", clean.requested_time)
            record = plan
            retained = (record.get("earliestInstantToRetain") or {}).get("timestamp")
        known = retained or record.get("lastCompletedCommitTimestamp")
        return CleanBound(str(known or self._newest_write_before(clean)), clean.requested_time)

    def begun_plan(self, instant: Instant) -> dict[str, Any] | None:
        """Return the plan of a pending clean, rollback or restore, None for one that was cut short before it began."""
        try:
            return self.plan(instant)
        except CorruptTableError:
            if instant.state is State.REQUESTED:
                return None
            raise

    def _newest_write_before(self, clean: Instant) -> str:
        times = [write.requested_time for write in self.completed_writes]
        return max((time for time in times if time < clean.requested_time), default=clean.requested_time)

    def _plans(self, action: str) -> dict[str, dict[str, Any]]:
        found = {}
        for instant in self.pending:
            plan = self.plan(instant) if instant.action == action else None
            if plan is not None:
                found[instant.requested_time] = plan
        return found

    def _describe(self, file_name: str) -> str:
        return f"{self._storage.base}/{self._config.timeline_path}/{file_name}"


def first_write(timeline: Timeline) -> Instant | None:
    """Return the oldest completed write that the timelines know, None without one; the archive is read for it."""
    known = (*timeline.archived.completed_writes, *timeline.completed_writes)
    return min(known, key=lambda each: each.requested_time, default=None)


def is_before_beginning(timeline: Timeline, as_of: str) -> bool:
    """Return whether a point in time lies before the first commit a table ever had, when it had no rows.

    Where the archive is lost the oldest commit that is known may not be that: one that changed or replaced files of an earlier
    commit is none to go by, nor one that does not say it.
    """
    first = first_write(timeline)
    if first is None or as_of >= first.requested_time:
        return False
    source = timeline if first in timeline.completed_writes else timeline.archived
    with suppress(TimelineError):
        metadata = source.commit_metadata(first)
        return not metadata.replaced and all(
            stat.prev_commit in NO_COMMIT for _, stat in metadata.write_stats()
        )
    return False


def newest_first(
    timeline: Timeline, place: Callable[[Instant], str], as_of: str | None = None
) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield writes with their metadata; those that savepoints keep from archiving come among the archived ones.

    Each is read when its turn comes, and the archive when the active ones are through.
    """
    first = timeline.first_write_time or ""
    writes = [each for each in timeline.completed_writes if as_of is None or each.requested_time <= as_of]
    held = [each for each in writes if each.requested_time < first]
    recent = [each for each in writes if each.requested_time >= first]
    for instant in sorted(recent, key=place, reverse=True):
        yield instant, timeline.commit_metadata(instant)
    archived = [
        each for each in timeline.archived.completed_writes if as_of is None or each.requested_time <= as_of
    ]
    for instant in sorted([*held, *archived], key=place, reverse=True):
        # another writer may have archived it without its metadata
        with suppress(TimelineError):
            yield instant, (timeline if instant in held else timeline.archived).commit_metadata(instant)


def since_all_was_replaced(timeline: Timeline) -> Iterator[CommitMetadata]:
    """Yield what the newest writes did, up to and with the one that replaced all rows."""
    for _, metadata in newest_first(timeline, attrgetter("requested_time")):
        yield metadata
        if metadata.operation_type == WriteOperation.INSERT_OVERWRITE_TABLE:
            return
