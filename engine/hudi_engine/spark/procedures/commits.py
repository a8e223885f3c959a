"""Procedures that tell what the commits of a table did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil

from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.txn.savepoint import completed_write

TOTALS = (
    "total_bytes_written long, total_files_added long, total_files_updated long, total_partitions_written long, "
    "total_records_written long, total_update_records_written long, total_errors long"
)
COMMITS = f"commit_time string, state_transition_time string, action string, {TOTALS}"
ARCHIVED = f"commit_time string, state_transition_time string, {TOTALS}"
_FILE_OF_COMMIT = (
    "partition string, file_id string, previous_commit string, num_writes long, num_inserts long, num_deletes long, "
    "num_update_writes long, total_errors long, total_log_blocks long, total_corrupt_log_blocks long, "
    "total_rollback_blocks long, total_log_records long, total_updated_records_compacted long, total_bytes_written long"
)
COMMITS_METADATA = f"commit_time string, state_transition_time string, action string, {_FILE_OF_COMMIT}"
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


def show_commits(call: Call) -> list[Row]:
    """Return the completed writes of the active timeline, newest first."""
    rows: list[Row] = []
    for write in _newest(call.state.timeline.completed_writes, call.number("limit", 10)):
        metadata = call.state.timeline.commit_metadata(write)
        rows.append((write.requested_time, call.completed_at(write) or "", write.action, *_totals(metadata)))
    return rows


def show_archived_commits(call: Call) -> list[Row]:
    """Return the archived writes within a range of times, newest first."""
    archived = call.state.timeline.archived
    start, end = call.text("start_ts"), call.text("end_ts", "99999999999999999")
    writes = [each for each in archived.completed_writes if start <= each.requested_time <= end]
    return [
        (
            each.requested_time,
            archived.changed_at(each),
            *_totals(archived.commit_metadata(each)),
        )
        for each in _newest(writes, call.number("limit", 10))
    ]


def show_commits_metadata(call: Call) -> list[Row]:
    """Return the files of the completed writes, newest write first."""
    rows: list[Row] = []
    for write in reversed(call.state.timeline.completed_writes):
        told = (write.requested_time, call.completed_at(write) or "", write.action)
        rows += _files_of(told, call.state.timeline.commit_metadata(write))
        if len(rows) >= call.number("limit", 10):
            break
    return rows[: call.number("limit", 10)]


def show_archived_commits_metadata(call: Call) -> list[Row]:
    """Return the files of the archived writes within a range of times, newest write first."""
    archived = call.state.timeline.archived
    start, end = call.text("start_ts"), call.text("end_ts", "99999999999999999")
    rows: list[Row] = []
    for write in reversed(archived.completed_writes):
        if start <= write.requested_time <= end:
            told = (write.requested_time, archived.changed_at(write), write.action)
            rows += _files_of(told, archived.commit_metadata(write))
        if len(rows) >= call.number("limit", 10):
            break
    return rows[: call.number("limit", 10)]


def _files_of(commit: Row, metadata: CommitMetadata) -> list[Row]:
    """Return a row for each file that a commit wrote, the commit's own columns first."""
    return [
        (
            *commit,
            partition,
            stat.file_id,
            stat.prev_commit,
            stat.num_writes or 0,
            stat.num_inserts or 0,
            stat.num_deletes or 0,
            stat.num_update_writes or 0,
            stat.total_write_errors or 0,
            stat.total_log_blocks or 0,
            stat.total_corrupt_log_block or 0,
            stat.total_rollback_blocks or 0,
            stat.total_log_records or 0,
            stat.total_updated_records_compacted or 0,
            stat.total_write_bytes or 0,
        )
        for partition, stat in metadata.write_stats()
    ]


def show_commit_files(call: Call) -> list[Row]:
    """Return the files of one commit."""
    write, metadata = _commit(call)
    return [
        (
            write.action,
            partition,
            stat.file_id,
            stat.prev_commit,
            stat.num_update_writes or 0,
            stat.num_writes or 0,
            stat.total_write_bytes or 0,
            stat.total_write_errors or 0,
            stat.file_size_in_bytes or 0,
        )
        for partition, stat in list(metadata.write_stats())[: call.number("limit", 10)]
    ]


def show_commit_partitions(call: Call) -> list[Row]:
    """Return what one commit did in each partition."""
    write, metadata = _commit(call)
    rows: list[Row] = []
    for partition, stats in list(metadata.partition_to_write_stats.items())[: call.number("limit", 10)]:
        rows.append(
            (
                write.action,
                partition,
                sum(map(_is_new, stats)),
                sum(not _is_new(stat) for stat in stats),
                _sum(stat.num_inserts for stat in stats),
                _sum(stat.num_update_writes for stat in stats),
                _sum(stat.total_write_bytes for stat in stats),
                _sum(stat.total_write_errors for stat in stats),
            )
        )
    return rows


def show_commit_write_stats(call: Call) -> list[Row]:
    """Return bytes and rows of one commit."""
    write, metadata = _commit(call)
    stats = [stat for _, stat in metadata.write_stats()]
    written, rows = _sum(stat.total_write_bytes for stat in stats), _sum(stat.num_writes for stat in stats)
    return [(write.action, written, rows, ceil(written / rows) if rows else 0)]


def show_commit_extra_metadata(call: Call) -> list[Row]:
    """Return the texts that travel with one commit."""
    write, metadata = _commit(call)
    wanted = call.text("metadata_key")
    return [
        (write.requested_time, write.action, key, value)
        for key, value in metadata.extra_metadata.items()
        if not wanted or key == wanted
    ][: call.number("limit", 100)]


def stats_wa(call: Call) -> list[Row]:
    """Return rows written for rows upserted, by commit and in total.

    Hudi leaves deltacommits out; here they count, and what compactions and clusterings write again is written for nothing
    new, so that the total is right for merge-on-read tables too.
    """
    found = [
        (each.instant, each.rows_inserted + each.rows_updated, each.rows_written)
        for each in commit_facts(call.state)
        if each.rows_written
    ]
    total = ("Total", sum(asked for _, asked, _ in found), sum(written for _, _, written in found))
    return [
        (time, asked, written, f"{written / asked:.2f}" if asked else "0")
        for time, asked, written in (*found[: call.number("limit", 10)], total)
    ]


def _commit(call: Call) -> tuple[Instant, CommitMetadata]:
    state = call.state
    write = completed_write(state.storage, state.timeline, call.text("instant_time"))
    return write, state.timeline.commit_metadata(write)


def _newest(instants: Iterable[Instant], limit: int) -> Iterator[Instant]:
    return iter(list(instants)[::-1][:limit])


def _totals(metadata: CommitMetadata) -> Row:
    stats = [stat for _, stat in metadata.write_stats()]
    return (
        _sum(stat.total_write_bytes for stat in stats),
        sum(map(_is_new, stats)),
        sum(stat.prev_commit is not None and not _is_new(stat) for stat in stats),
        len(metadata.partition_to_write_stats),
        _sum(stat.num_writes for stat in stats),
        _sum(stat.num_update_writes for stat in stats),
        _sum(stat.total_write_errors for stat in stats),
    )


def _is_new(stat: WriteStat) -> bool:
    return (stat.prev_commit or "").lower() == NO_PREVIOUS_COMMIT


def _sum(numbers: Iterable[int | None]) -> int:
    return sum(number or 0 for number in numbers)
