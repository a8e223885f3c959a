"""What each write did, from its commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.enums import SERVICE_OPERATIONS, WriteOperation
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.telemetry.figures import RowCounts
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.commit_metadata import NO_COMMIT, CommitMetadata, WriteStat
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class CommitFacts(RowCounts):
    """One completed write: a commit, deltacommit or replacecommit.

    Args:
        operation: Hudi's name, such as ``UPSERT``; ``COMPACT`` and ``CLUSTER`` for services.
        rows_deleted: Rows deleted by key; rows of replaced file groups are not among them.
        rows_written: Rows in the files written, those that were only copied among them.
    """

    instant: str
    committed_at: datetime | None
    action: str
    operation: str
    rows_written: int = 0
    files_added: int = 0
    files_updated: int = 0
    groups_replaced: int = 0
    partitions: tuple[str, ...] = ()
    seconds: float | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    archived: bool = False

    @property
    def is_service(self) -> bool:
        """Whether the commit only moved rows: a compaction or clustering."""
        return self.operation in SERVICE_OPERATIONS


def commit_cells(commit: CommitFacts) -> dict[str, Any]:
    """Return a commit as a row of a table."""
    counts = ("rows_inserted", "rows_updated", "rows_deleted", "files_added", "files_updated")
    cells = cells_of(commit, "instant", "committed_at", "operation", *counts, "groups_replaced")
    return {**cells, "partitions": len(commit.partitions), **cells_of(commit, "bytes_written", "seconds")}


def commit_facts(
    state: TableState, limit: int | None = None, instants: Sequence[InstantFacts] | None = None
) -> list[CommitFacts]:
    """Return what the completed writes of the active timeline did, newest first."""
    times = {(each.instant, each.action): each for each in instants or instant_facts(state)}
    found = []
    for instant in list(reversed(state.timeline.completed_writes))[:limit]:
        facts = times[instant.requested_time, instant.action]
        metadata = state.timeline.commit_metadata(instant)
        committed_at = facts.completed_at or facts.requested_at
        found.append(_facts(instant.requested_time, instant.action, metadata, committed_at, facts.seconds))
    return found


def archived_commit_facts(state: TableState, limit: int | None = None) -> list[CommitFacts]:
    """Return what the completed writes in the archive did, newest first."""
    archived = state.timeline.archived
    active = {each.requested_time for each in state.timeline.completed_writes}
    writes = [each for each in reversed(archived.completed_writes) if each.requested_time not in active]
    found = []
    for each in writes[:limit]:
        begun = moment_of(state.config, each.requested_time)
        done = moment_of(state.config, archived.changed_at(each))
        seconds = max(0.0, (done - begun).total_seconds()) if begun and done else None
        facts = _facts(
            each.requested_time, each.action, archived.commit_metadata(each), done or begun, seconds
        )
        found.append(replace(facts, archived=True))
    return found


def _facts(
    instant: str, action: str, metadata: CommitMetadata, completed_at: datetime | None, seconds: float | None
) -> CommitFacts:
    """Sum a commit's stats; a service writes rows again, which changes none."""
    stats = [stat for _, stat in metadata.write_stats()]
    added = {stat.file_id for stat in stats if _is_new(stat)}
    moved = operation_of(metadata, action) in SERVICE_OPERATIONS
    return CommitFacts(
        instant=instant,
        committed_at=completed_at,
        action=action,
        operation=operation_of(metadata, action),
        # A service writes rows that are in the table already.
        rows_inserted=0 if moved else sum(stat.num_inserts or 0 for stat in stats),
        rows_updated=0 if moved else sum(stat.num_update_writes or 0 for stat in stats),
        rows_deleted=0 if moved else sum(stat.num_deletes or 0 for stat in stats),
        rows_written=sum(stat.num_writes or 0 for stat in stats),
        files_added=len(added),
        files_updated=len({stat.file_id for stat in stats} - added),
        groups_replaced=len(metadata.replaced),
        bytes_written=sum(stat.total_write_bytes or 0 for stat in stats),
        partitions=tuple(sorted(metadata.partitions)),
        seconds=seconds,
        extra={key: value for key, value in metadata.extra_metadata.items() if key != "schema"},
    )


def operation_of(metadata: CommitMetadata, action: str) -> str:
    """Return Hudi's name of what a commit did; commits that do not say it are known from their action."""
    if metadata.operation_type != WriteOperation.UNKNOWN:
        return metadata.operation_type
    known = WriteOperation.COMPACT if metadata.compacted and action == "commit" else WriteOperation.UNKNOWN
    return known.value


def _is_new(stat: WriteStat) -> bool:
    return not stat.is_log_file and stat.prev_commit in NO_COMMIT


_CLOCKS_DIFFER_BY_S = 60


@dataclass(frozen=True)
class InstantFacts:
    """One instant of the active timeline.

    Args:
        requested_at: The moment of the requested time, None when its digits are no date.
        completed_at: When it completed; None while it is pending. Layout 1 stores no such time: the modification time of
            the completed file is used for it, unless the files are a copy with times of its own.
    """

    instant: str
    action: str
    state: str
    requested_at: datetime | None
    completed_at: datetime | None

    @property
    def seconds(self) -> float | None:
        """Seconds from begin to completion, None while it is pending or when a time is missing.

        None for a savepoint too: its requested time is that of the write which it saves.
        """
        if self.action == "savepoint" or self.requested_at is None or self.completed_at is None:
            return None
        return max(0.0, (self.completed_at - self.requested_at).total_seconds())


def cells_of(facts: object, *names: str) -> dict[str, Any]:
    """Return attributes by name, as cells of a row of a table."""
    return {name: getattr(facts, name) for name in names}


def instant_facts(state: TableState) -> list[InstantFacts]:
    """Return the instants of the active timeline, oldest first."""
    written = _written_at(state)
    return [
        InstantFacts(
            instant=each.requested_time,
            action=each.action,
            state=each.state.value,
            requested_at=moment_of(state.config, each.requested_time),
            completed_at=(
                moment_of(state.config, each.completion_time)
                if each.completion_time is not None
                else written.get(each.file_name)
            )
            if each.is_completed
            else None,
        )
        for each in state.timeline.instants
    ]


def moment_of(config: TableConfig, instant: str) -> datetime | None:
    """Return the moment of an instant in the zone of the table's timeline, in UTC; None when its digits are no date."""
    try:
        return parse_instant_time(instant, config.timeline_zone)
    except TimelineError:
        return None


def _written_at(state: TableState) -> dict[str, datetime]:
    """Return modification times of the timeline's files by name; layout 2 has completion times in its names."""
    if state.config.layout_version != 1:
        return {}
    files = [each for each in state.storage.list(state.config.timeline_path) if not each.is_dir]
    begun: dict[str, int] = {}
    for each in files:
        if each.name.endswith((".requested", ".inflight")):
            time = each.name.partition(".")[0]
            begun[time] = min(each.modified_ms, begun.get(time, each.modified_ms))
    copied = {time for time, modified in begun.items() if _is_another_time(state, time, modified)}
    return {
        each.name: datetime.fromtimestamp(each.modified_ms / 1000, timezone.utc)
        for each in files
        if each.name.partition(".")[0] not in copied
    }


def _is_another_time(state: TableState, instant: str, modified_ms: int) -> bool:
    """Return whether the file that begins an instant was written at another time than its name has, as in a copy of a table."""
    moment = moment_of(state.config, instant)
    return moment is not None and abs(modified_ms / 1000 - moment.timestamp()) > _CLOCKS_DIFFER_BY_S
