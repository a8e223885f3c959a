"""Hudi's procedures about commits and files: what was written, file slices, sizes, logs, the history of a file group."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from math import ceil

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, parse_log_file
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.logformat.format import HeaderKey, LogBlock
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.inspect.files import check_partition
from hudi_engine.table.operations.operation import Call, Row, procedure
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.savepoint import completed_write

TOTALS = (
    "total_bytes_written long, total_files_added long, total_files_updated long, total_partitions_written long, "
    "total_records_written long, total_update_records_written long, total_errors long"
)
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
_EVER = "99999999999999999"


@procedure(f"commit_time string, state_transition_time string, action string, {TOTALS}")
def show_commits(call: Call, limit: int = 10) -> list[Row]:
    """Return the completed writes of the active timeline, newest first."""
    writes = call.state.timeline.completed_writes[::-1][:limit]
    return [(*_head(call, each), *_totals(call.state.timeline.commit_metadata(each))) for each in writes]


@procedure(f"commit_time string, state_transition_time string, {TOTALS}")
def show_archived_commits(call: Call, limit: int = 10, start_ts: str = "", end_ts: str = _EVER) -> list[Row]:
    """Return the archived writes within a range of times, newest first."""
    archived = call.state.timeline.archived
    return [
        (each.requested_time, archived.changed_at(each), *_totals(archived.commit_metadata(each)))
        for each in _archived(call, start_ts, end_ts)[:limit]
    ]


@procedure(COMMITS_METADATA)
def show_commits_metadata(call: Call, limit: int = 10) -> list[Row]:
    """Return the files of the completed writes, newest write first."""
    rows: list[Row] = []
    for write in reversed(call.state.timeline.completed_writes):
        if len(rows) < limit:
            rows += _files(_head(call, write), call.state.timeline.commit_metadata(write))
    return rows[:limit]


@procedure(COMMITS_METADATA)
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


@procedure(
    "action string, partition_path string, file_id string, previous_commit string, total_records_updated long, "
    "total_records_written long, total_bytes_written long, total_errors long, file_size long"
)
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


@procedure(
    "action string, partition_path string, total_files_added long, total_files_updated long, "
    "total_records_inserted long, total_records_updated long, total_bytes_written long, total_errors long"
)
def show_commit_partitions(call: Call, limit: int = 10, *, instant_time: str) -> list[Row]:
    """Return what one commit did in each partition."""
    write, metadata = _commit(call, instant_time)
    names = ("num_inserts", "num_update_writes", "total_write_bytes", "total_write_errors")
    rows: list[Row] = []
    for partition, stats in list(metadata.partition_to_write_stats.items())[:limit]:
        new = sum(map(_is_new, stats))
        rows.append((write.action, partition, new, len(stats) - new, *_sums(stats, names)))
    return rows


@procedure("action string, total_bytes_written long, total_records_written long, avg_record_size long")
def show_commit_write_stats(call: Call, limit: int = 10, *, instant_time: str) -> list[Row]:  # noqa: ARG001
    """Return bytes and rows of one commit."""
    write, metadata = _commit(call, instant_time)
    written, rows = _sums([stat for _, stat in metadata.write_stats()], ("total_write_bytes", "num_writes"))
    return [(write.action, written, rows, ceil(written / rows) if rows else 0)]


@procedure("instant_time string, action string, metadata_key string, metadata_value string")
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


@procedure("commit_time string, total_upserted long, total_written long, write_amplification_factor string")
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


@procedure("compare_detail string")
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


_SLICE = (
    "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
    "num_delta_files long, total_delta_file_size long"
)
_EVERY = "ALL_PARTITIONS"


@procedure(f"{_SLICE}, delta_files string")
def show_fsview_all(call: Call, limit: int = 10, partition_path: str = _EVERY) -> list[Row]:
    """Return every committed file slice that is still there, replaced file groups included."""
    found = islice(_view(call, partition_path).every_slice(), limit)
    return [(*_slice(call.state.storage, each), _names(call, each.log_files)) for each in found]


@procedure(
    f"{_SLICE}, delta_size_compaction_scheduled long, "
    "delta_size_compaction_unscheduled long, delta_to_base_radio_compaction_scheduled double, "
    "delta_to_base_radio_compaction_unscheduled double, delta_files_compaction_scheduled string, "
    "delta_files_compaction_unscheduled string"
)
def show_fsview_latest(call: Call, limit: int = 10, partition_path: str = _EVERY) -> list[Row]:
    """Return the newest slice of each live file group, and which logs are behind a planned compaction."""
    rows: list[Row] = []
    for piece in _view(call, partition_path).latest_slices()[:limit]:
        own = [log for log in piece.log_files if log.instant == piece.base_instant]
        later = [log for log in piece.log_files if log.instant != piece.base_instant]
        base = 0 if piece.base_file is None else piece.base_file.size
        shares = (_size(logs) / base if base else -1.0 for logs in (own, later))
        names = (_names(call, own), _names(call, later))
        rows.append((*_slice(call.state.storage, piece), _size(own), _size(later), *shares, *names))
    return rows


@procedure(
    "commit_time string, min long, `10th` double, `50th` double, avg double, `95th` double, max long, "
    "num_files int, std_dev double"
)
def stats_file_sizes(call: Call, partition_path: str = _EVERY, limit: int = 10) -> list[Row]:
    """Return how large the data files on storage are, by the commit in their names and in total."""
    view = _view(call, partition_path)
    sizes: dict[str, list[int]] = {}
    for partition in view.partitions:
        for status in view.files(partition):
            file = parse_base_file(status.name, partition) or parse_log_file(status.name, partition)
            if file is not None:
                sizes.setdefault(file.instant, []).append(status.size)
    rows = [_spread(instant, sizes[instant]) for instant in sorted(sizes, reverse=True)]
    everything = [size for each in sizes.values() for size in each]
    return [*rows[:limit], *([_spread("ALL", everything)] if everything else [])]


@procedure("path string")
def show_invalid_parquet(call: Call, limit: int = 100) -> list[Row]:
    """Return the base files on storage whose footer cannot be read."""
    view, storage = call.state.view(), call.state.storage
    paths = [
        status.path
        for partition in view.partitions
        for status in view.files(partition)
        if parse_base_file(status.name, partition) is not None
    ]
    readable = on_threads(lambda path: _is_parquet(storage, path), paths)
    return [(storage.uri(path),) for path, good in zip(paths, readable) if not good][:limit]


@procedure(
    "instant_time string, record_count int, block_type string, header_metadata string, footer_metadata string"
)
def show_logfile_metadata(call: Call, log_file_path_pattern: str, limit: int = 10) -> list[Row]:
    """Return the blocks of log files."""
    corrupt, rows = Counter[str](), list[Row]()
    for block in islice(_blocks(call, log_file_path_pattern), limit):
        count = decode_data_block(block).num_rows if block.is_data else 0
        rows.append((_instant(block, corrupt), count, f"{block.kind.name}_BLOCK", _header(block), "{}"))
    return rows


@procedure("records string")
def show_logfile_records(call: Call, log_file_path_pattern: str, limit: int = 10) -> list[Row]:
    """Return the records of log files as JSON, as they were written; deletes are left out."""
    rows = list[Row]()
    for block in _blocks(call, log_file_path_pattern):
        if len(rows) >= limit:
            break
        if block.is_data:
            found = decode_data_block(block).slice(0, limit - len(rows)).to_pylist()
            rows += [(json.dumps(record, default=str, ensure_ascii=False),) for record in found]
    return rows


@procedure(
    "instant_time string, completion_time string, action string, timeline_type string, state string, "
    "partition_path string, file_name string, operation_type string, num_writes long, num_inserts long, "
    "num_updates long, num_deletes long, file_size_bytes long, total_write_bytes long, prev_commit string, "
    "was_deleted boolean, delete_action string, delete_instant string, was_replaced boolean, replace_action string, "
    "replace_instant string, total_write_errors long, total_scan_time_ms long, total_upsert_time_ms long, "
    "total_create_time_ms long, prev_base_file string, column_stats_available boolean"
)
def show_file_group_history(
    call: Call, file_group_id: str, partition: str | None = None, limit: int = 20
) -> list[Row]:
    """Return what the commits of the active timeline wrote to a file group, newest first, and what became of its files."""
    timeline = call.state.timeline
    deleted, replaced = dict(_deleted(call)), timeline.replaced_file_groups()
    rows: list[Row] = []
    for write in reversed(timeline.completed_writes):
        head = (write.requested_time, call.completed_at(write), write.action, "ACTIVE", "COMPLETED")
        for path, stat in timeline.commit_metadata(write).write_stats():
            if stat.file_id == file_group_id and partition in (None, path):
                by = replaced.get((path, file_group_id))
                ends = deleted.get(stat.file_name, (False, None, None))
                replacement = (False, None, None) if by is None else (True, "replacecommit", by)
                rows.append((*head, path, *_written(stat), *ends, *replacement, *_times(stat)))
    return rows[:limit]


def _view(call: Call, partition_path: str) -> FileSystemView:
    if partition_path == _EVERY:
        return call.state.view()
    view = call.state.view([partition_path.strip("/")])
    if not any(view.files(partition) for partition in view.partitions):
        check_partition(partition_path.strip("/"), call.state.view().partitions, asked="partition_path")
    return view


def _slice(storage: Storage, piece: FileSlice) -> Row:
    base = piece.base_file
    file = ("", 0) if base is None else (storage.uri(base.path), base.size)
    logs = (len(piece.log_files), _size(piece.log_files))
    return (piece.partition, piece.file_id, piece.base_instant, *file, *logs)


def _size(files: Sequence[BaseFile | LogFile]) -> int:
    return sum(file.size for file in files)


def _names(call: Call, files: Sequence[LogFile]) -> str:
    return f"[{', '.join(call.state.storage.uri(file.path) for file in files)}]"


def _spread(name: str, sizes: Sequence[int]) -> Row:
    ordered = sorted(sizes)
    deviation = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    low, middle, high = _quantiles(ordered)
    mean, most = statistics.fmean(ordered), ordered[-1]
    return (name, ordered[0], low, middle, mean, high, most, len(ordered), deviation)


def _quantiles(ordered: Sequence[int]) -> Iterator[float]:
    """Yield the 10th, 50th and 95th percentile, between two sizes where it falls there, as Hudi's histogram does."""
    for share in (0.1, 0.5, 0.95):
        place = share * (len(ordered) + 1)
        below = min(max(int(place), 1), len(ordered))
        above = min(below + 1, len(ordered))
        part = min(max(place - below, 0.0), 1.0)
        yield ordered[below - 1] + part * (ordered[above - 1] - ordered[below - 1])


def _is_parquet(storage: Storage, path: str) -> bool:
    try:
        with storage.open_input(path) as source:
            pq.read_metadata(source)
    except FileNotFoundError:
        return True  # cleaned since it was listed
    except (pa.ArrowInvalid, OSError):
        return False
    return True


def _blocks(call: Call, pattern: str) -> Iterator[LogBlock]:
    for log in _logs(call, pattern):
        yield from read_blocks(call.state.storage.read(log.path))


def _logs(call: Call, pattern: str) -> list[LogFile]:
    """Return the log files of the table whose path fits the pattern, with the table's place before it or without."""
    storage, view = call.state.storage, call.state.view()
    logs = [
        log
        for partition in view.partitions
        for status in view.files(partition)
        if (log := parse_log_file(status.name, partition, status)) is not None and not log.is_cdc
    ]
    base = storage.base.rstrip("/")
    places = (pattern, f"{base}/{pattern}")
    found = [
        log
        for log in logs
        if any(
            fnmatchcase(name, place)
            for name in (log.path, storage.uri(log.path), f"{base}/{log.path}")
            for place in places
        )
    ]
    if not found:
        example = logs[0].path if logs else "none, the table has no log file"
        raise ConfigError(
            f"log_file_path_pattern is {pattern!r}, which no log file of the table fits; one of its log files is: {example}"
        )
    return sorted(found, key=lambda log: (log.partition, log.sort_key))


def _instant(block: LogBlock, corrupt: Counter[str]) -> str:
    instant = block.header.get(HeaderKey.INSTANT_TIME)
    if instant is None:
        corrupt["blocks"] += 1
        return f"corrupt_block_{corrupt['blocks']}"
    return instant


def _header(block: LogBlock) -> str:
    known = {key.value: key.name for key in HeaderKey}
    return json.dumps({known.get(key, str(key)): value for key, value in block.header.items()})


def _deleted(call: Call) -> Iterator[tuple[str, Row]]:
    """Yield the names of files that cleans and rollbacks deleted, with action and instant."""
    timeline = call.state.timeline
    for instant in timeline.completed:
        if instant.action in ("clean", "rollback"):
            for each in (timeline.record(instant).get("partitionMetadata") or {}).values():
                for path in each["successDeleteFiles"]:
                    yield path.rpartition("/")[2], (True, instant.action, instant.requested_time)


def _written(stat: WriteStat) -> Row:
    """Return name and figures of a written file; Hudi's word for updates alone is no operation of a commit."""
    inserts, updates = bool(stat.num_inserts), bool(stat.num_update_writes)
    if inserts and updates:
        kind = WriteOperation.UPSERT.value
    elif inserts:
        kind = WriteOperation.INSERT.value
    elif updates:
        kind = "UPDATE"
    else:
        kind = (WriteOperation.DELETE if stat.num_deletes else WriteOperation.UNKNOWN).value
    names = ("num_writes", "num_inserts", "num_update_writes", "num_deletes", "file_size_in_bytes")
    return (stat.file_name, kind, *counts(stat, (*names, "total_write_bytes")), stat.prev_commit)


def _times(stat: WriteStat) -> Row:
    times = stat.runtime_stats or {}
    spent = (times.get(name) or 0 for name in ("totalScanTime", "totalUpsertTime", "totalCreateTime"))
    return (stat.total_write_errors or 0, *spent, stat.prev_base_file, False)
