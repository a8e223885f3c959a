"""Hudi's procedures about the commits of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.operations.operation import Call, Row
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.savepoint import completed_write

TOTALS = (
    "total_bytes_written long, total_files_added long, total_files_updated long, total_partitions_written long, "
    "total_records_written long, total_update_records_written long, total_errors long"
)
COMMITS = f"commit_time string, state_transition_time string, action string, {TOTALS}"
ARCHIVED = f"commit_time string, state_transition_time string, {TOTALS}"
COMMITS_METADATA = (
    "commit_time string, state_transition_time string, action string, "
    "partition string, file_id string, previous_commit string, num_writes long, num_inserts long, num_deletes long, "
    "num_update_writes long, total_errors long, total_log_blocks long, total_corrupt_log_blocks long, "
    "total_rollback_blocks long, total_log_records long, total_updated_records_compacted long, total_bytes_written long"
)
_COUNTS = (
    "num_writes num_inserts num_deletes num_update_writes total_write_errors total_log_blocks total_corrupt_log_block "
    "total_rollback_blocks total_log_records total_updated_records_compacted total_write_bytes"
).split()
"""The figures of a file in COMMITS_METADATA, as a write stat has them."""
COMMIT_FILES = (
    "action string, partition_path string, file_id string, previous_commit string, total_records_updated long, "
    "total_records_written long, total_bytes_written long, total_errors long, file_size long"
)
COMMIT_PARTITIONS = (
    "action string, partition_path string, total_files_added long, total_files_updated long, "
    "total_records_inserted long, total_records_updated long, total_bytes_written long, total_errors long"
)
WRITE_STATS = "action string, total_bytes_written long, total_records_written long, avg_record_size long"
EXTRA_METADATA = "instant_time string, action string, metadata_key string, metadata_value string"
AMPLIFICATION = (
    "commit_time string, total_upserted long, total_written long, write_amplification_factor string"
)
_EVER = "99999999999999999"


def show_commits(call: Call, limit: int = 10) -> list[Row]:
    """Return the completed writes of the active timeline, newest first."""
    writes = call.state.timeline.completed_writes[::-1][:limit]
    return [(*_head(call, each), *_totals(call.state.timeline.commit_metadata(each))) for each in writes]


def show_archived_commits(call: Call, limit: int = 10, start_ts: str = "", end_ts: str = _EVER) -> list[Row]:
    """Return the archived writes within a range of times, newest first."""
    archived = call.state.timeline.archived
    return [
        (each.requested_time, archived.changed_at(each), *_totals(archived.commit_metadata(each)))
        for each in _archived(call, start_ts, end_ts)[:limit]
    ]


def show_commits_metadata(call: Call, limit: int = 10) -> list[Row]:
    """Return the files of the completed writes, newest write first."""
    rows: list[Row] = []
    for write in reversed(call.state.timeline.completed_writes):
        if len(rows) < limit:
            rows += _files(_head(call, write), call.state.timeline.commit_metadata(write))
    return rows[:limit]


def show_archived_commits_metadata(
    call: Call, limit: int = 10, start_ts: str = "", end_ts: str = _EVER
) -> list[Row]:
    """Return the files of the archived writes within a range of times, newest write first."""
    archived = call.state.timeline.archived
    rows: list[Row] = []
    for write in _archived(call, start_ts, end_ts):
        if len(rows) < limit:
            head = (write.requested_time, archived.changed_at(write), write.action)
            rows += _files(head, archived.commit_metadata(write))
    return rows[:limit]


def show_commit_files(call: Call, limit: int = 10, *, instant_time: str) -> list[Row]:
    """Return the files of one commit."""
    write, metadata = _commit(call, instant_time)
    names = (
        "num_update_writes",
        "num_writes",
        "total_write_bytes",
        "total_write_errors",
        "file_size_in_bytes",
    )
    return [
        (write.action, partition, stat.file_id, stat.prev_commit, *counts(stat, names))
        for partition, stat in list(metadata.write_stats())[:limit]
    ]


def show_commit_partitions(call: Call, limit: int = 10, *, instant_time: str) -> list[Row]:
    """Return what one commit did in each partition."""
    write, metadata = _commit(call, instant_time)
    names = ("num_inserts", "num_update_writes", "total_write_bytes", "total_write_errors")
    rows: list[Row] = []
    for partition, stats in list(metadata.partition_to_write_stats.items())[:limit]:
        new = sum(map(_is_new, stats))
        rows.append((write.action, partition, new, len(stats) - new, *_sums(stats, names)))
    return rows


def show_commit_write_stats(call: Call, limit: int = 10, *, instant_time: str) -> list[Row]:  # noqa: ARG001
    """Return bytes and rows of one commit."""
    write, metadata = _commit(call, instant_time)
    written, rows = _sums([stat for _, stat in metadata.write_stats()], ("total_write_bytes", "num_writes"))
    return [(write.action, written, rows, ceil(written / rows) if rows else 0)]


def show_commit_extra_metadata(
    call: Call, limit: int = 100, *, instant_time: str, metadata_key: str = ""
) -> list[Row]:
    """Return the extra metadata of one commit."""
    write, metadata = _commit(call, instant_time)
    return [
        (write.requested_time, write.action, key, value)
        for key, value in metadata.extra_metadata.items()
        if metadata_key in ("", key)
    ][:limit]


def stats_wa(call: Call, limit: int = 10) -> list[Row]:
    """Return rows written for rows upserted (write amplification), by commit and in total.

    Hudi leaves deltacommits out; here they count, and what compactions and clusterings write again is written for nothing
    new, so that the total is right for merge-on-read tables too.
    """
    found = [
        (each.instant, each.rows_inserted + each.rows_updated, each.rows_written)
        for each in commit_facts(call.state)
        if each.rows_written
    ]
    total = ("Total", sum(each[1] for each in found), sum(each[2] for each in found))
    return [
        (time, upserted, written, f"{written / upserted:.2f}" if upserted else "0")
        for time, upserted, written in (*found[:limit], total)
    ]


def commits_compare(call: Call, path: str) -> list[Row]:
    """Return the commits by which the table is ahead of the one at another path, or behind it."""
    other = TableState.load(open_storage(path))
    own = [each.requested_time for each in call.state.timeline.completed_writes]
    theirs = [each.requested_time for each in other.timeline.completed_writes]
    newest, their_newest = own[-1] if own else "0", theirs[-1] if theirs else "0"
    is_behind = their_newest > newest
    longer, since = (theirs, newest) if is_behind else (own, their_newest)
    missing = [each for each in longer if each > since]
    place = (
        f"Source {call.state.config.name} is {'behind' if is_behind else 'ahead'} by {len(missing)} commits. "
    )
    return [(f"{place}Commits to catch up - [{', '.join(missing)}]",)]


def counts(stat: WriteStat, names: Iterable[str]) -> Row:
    """Return figures of a written file, 0 for those it has not."""
    return tuple(getattr(stat, name) or 0 for name in names)


def _head(call: Call, write: Instant) -> Row:
    return (write.requested_time, call.completed_at(write) or "", write.action)


def _archived(call: Call, start: str, end: str) -> list[Instant]:
    """Return archived writes, newest first."""
    writes = call.state.timeline.archived.completed_writes
    return [each for each in reversed(writes) if start <= each.requested_time <= end]


def _files(head: Row, metadata: CommitMetadata) -> list[Row]:
    return [
        (*head, partition, stat.file_id, stat.prev_commit, *counts(stat, _COUNTS))
        for partition, stat in metadata.write_stats()
    ]


def _commit(call: Call, instant: str) -> tuple[Instant, CommitMetadata]:
    write = completed_write(call.state.storage, call.state.timeline, instant)
    return write, call.state.timeline.commit_metadata(write)


def _totals(metadata: CommitMetadata) -> Row:
    stats = [stat for _, stat in metadata.write_stats()]
    updated = sum(stat.prev_commit is not None and not _is_new(stat) for stat in stats)
    written, *rest = _sums(
        stats, ("total_write_bytes", "num_writes", "num_update_writes", "total_write_errors")
    )
    new, partitions = sum(map(_is_new, stats)), len(metadata.partition_to_write_stats)
    return (written, new, updated, partitions, *rest)


def _is_new(stat: WriteStat) -> bool:
    return (stat.prev_commit or "").lower() == NO_PREVIOUS_COMMIT


def _sums(stats: Sequence[WriteStat], names: Sequence[str]) -> list[int]:
    return [sum(getattr(stat, name) or 0 for stat in stats) for name in names]
