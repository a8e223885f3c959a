"""Whether a table's timeline and its files agree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from hudi_engine.errors import CorruptTableError, HudiError, UnsupportedTableError
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, parse_log_file
from hudi_engine.format.filegroup.partition_metadata import PARTITION_METADATA_NAMES
from hudi_engine.format.filegroup.view import FileSystemView, WrittenLogs
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.logformat.blocks.delete import decode as decode_deletes
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.logformat.reader import decode_data_block
from hudi_engine.format.merge.base_reader import check_base_file
from hudi_engine.format.merge.log_scanner import load_blocks, scan_slice
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.parallel import run_in_threads
from hudi_engine.format.schema.meta_fields import FILE_NAME, RECORD_KEY
from hudi_engine.format.storage.base import FileStatus
from hudi_engine.format.timeline.active import FileGroupKey, Timeline
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.state import TableState

MARKER_FOLDER = ".hoodie/.temp"


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be.

    Args:
        problem: ``missing_file``, ``missing_older_file``, ``wrong_size``, ``orphan_file``, ``orphan_markers``,
            ``no_partition_metadata``, ``damaged_commit``, ``damaged_file`` or ``duplicate_key``.
        harms: Whether a reader of the newest state sees wrong or missing rows; the others take space, or an earlier state.
    """

    problem: str
    path: str
    message: str
    harms: bool


class _Named(NamedTuple):
    """A file that a commit on the active timeline names."""

    stat: WriteStat
    instant: str


def validate(state: TableState) -> list[Finding]:
    """Compare the timeline with the files: what commits name must be there, and what is there must have a commit.

    Files of commits that were archived cannot be compared, and are taken as they are.
    """
    damaged, whole = dict(_damaged_commits(state)), state.timeline
    if damaged:
        state = replace(state, timeline=state.timeline.without(damaged))
    view = state.view()
    named = _named_files(state)
    findings = [
        *damaged.values(),
        *_missing(view, named),
        *_missing_of_older(state, view, named),
        *_orphans(state, whole, view, named, damaged),
        *_no_metadata(state, view),
    ]
    findings += _left_markers(state)
    return sorted(findings, key=lambda each: (not each.harms, each.problem, each.path))


def duplicate_keys(state: TableState, options: Options, limit: int = 100) -> list[Finding]:
    """Read the keys of a snapshot and return those that are there more than once within a partition."""
    schema = state.data_schema()
    keyed = state.config.populate_meta_fields or state.config.record_key_fields
    if schema is None or not keyed:
        return []
    context = state.read_context(schema, options)
    found: list[Finding] = []
    damaged: list[Finding] = []
    view = state.view()
    for partition in view.partitions:
        read = []
        for each in view.latest_slices(partition):
            try:
                read.append(_keys_in(context, each, options))
            except CorruptTableError as error:
                damaged.append(_damaged(each.paths[0], error, harms=True))
        if not read:
            continue
        rows = pa.concat_tables(read)
        counted = rows.group_by(RECORD_KEY).aggregate(
            [([], "count_all"), (FILE_NAME, "min"), (FILE_NAME, "max")]
        )
        twice = counted.filter(pa.compute.greater(counted["count_all"], 1)).slice(0, limit - len(found))
        for row in twice.to_pylist():
            files = dict.fromkeys([row[f"{FILE_NAME}_min"], row[f"{FILE_NAME}_max"]])
            message = f"key {row[RECORD_KEY]!r} is there {row['count_all']} times, in {' and '.join(map(str, files))}"
            found.append(Finding("duplicate_key", partition, message, True))
        if len(found) >= limit:
            break
    return damaged + found


def damaged_files(state: TableState, options: Options) -> list[Finding]:
    """Read every base file and log of the table, older versions too, and return those that cannot be read.

    Pages of base files and of Parquet blocks are compared with their checksums, where their writer stored some.
    """
    schema = state.data_schema()
    if schema is None:
        return []
    context = state.read_context(schema, options)
    view = state.view()
    newest = {path for each in view.latest_slices() for path in each.paths}
    written = WrittenLogs(state.config, state.timeline)
    parts: list[FileSlice] = []
    for each in written.in_slices(view.every_slice()):
        if each.base_file is not None:
            parts.append(replace(each, log_files=(), cdc_files=()))
        parts += [replace(each, base_file=None, log_files=(log,), cdc_files=()) for log in each.log_files]
    found = run_in_threads(partial(_damage_of, context), parts)
    return [
        _damaged(part.paths[0], error, harms=part.paths[0] in newest)
        for part, error in zip(parts, found, strict=True)
        if error is not None
    ]


def _damage_of(context: ReadContext, part: FileSlice) -> HudiError | None:
    """Return why a file cannot be read, None for a sound one."""
    try:
        if part.base_file is not None:
            check_base_file(context, part.base_file)
        for block in load_blocks(context, scan_slice(context, part).blocks):
            if block.kind is BlockType.DELETE:
                for _ in decode_deletes(block.content):
                    pass
            else:
                decode_data_block(block)
    except (CorruptTableError, UnsupportedTableError) as error:
        return error
    return None


def _damaged(path: str, error: HudiError, *, harms: bool) -> Finding:
    return Finding("damaged_file", path, str(error), harms)


def _keys_in(context: ReadContext, file_slice: FileSlice, options: Options) -> pa.Table:
    """Return key and file of each row; a table without meta columns has its keys in the columns that make them."""
    config = context.config
    if config.populate_meta_fields:
        return read_slice(context, file_slice, columns=[RECORD_KEY, FILE_NAME])
    rows = read_slice(context, file_slice, columns=list(config.record_key_fields))
    keys = build_key_generator(config, options=options).record_keys_or_null(rows)
    file = file_slice.file_id if file_slice.base_file is None else file_slice.base_file.name
    return pa.table({RECORD_KEY: keys, FILE_NAME: pa.repeat(file, rows.num_rows)})


def _named_files(state: TableState) -> dict[str, _Named]:
    """Return every file that a completed write of the active timeline names, by path."""
    return {
        stat.path: _Named(stat, instant.requested_time)
        for instant in state.timeline.completed_writes
        for _, stat in state.timeline.commit_metadata(instant).write_stats()
        if stat.path
    }


def _missing(view: FileSystemView, named: dict[str, _Named]) -> Iterator[Finding]:
    """Yield the files of newest slices that are not there; older ones may have been cleaned."""
    listed = {status.path: status for status in _all_files(view)}
    for path in _expected(view, named):
        status, (stat, instant) = listed.get(path), named[path]
        if status is None:
            message = f"commit {instant} wrote it and no later one took it out, but it is not there: rows are missing"
            yield Finding("missing_file", path, message, True)
        elif _is_short(stat, status):
            message = f"commit {instant} wrote {stat.file_size_in_bytes} bytes, and it has {status.size}"
            yield Finding("wrong_size", path, message, True)


def _missing_of_older(state: TableState, view: FileSystemView, named: dict[str, _Named]) -> Iterator[Finding]:
    """Yield files that are not there and that a state needs which no clean has passed; the newest state is looked at elsewhere."""
    listed = {status.path for status in _all_files(view)}
    bound = state.timeline.cleaned_up_to
    oldest = max(state.timeline.first_write_time or "", "" if bound is None else bound.oldest)
    bases = _base_instants(named)
    for path in sorted(named.keys() - listed - set(_expected(view, named))):
        written = named[path].instant
        until = _superseded(view, bases, path, written)
        if until is not None and until > oldest:
            message = f"commit {written} wrote it, and it is not there: states before {until} cannot be read"
            yield Finding("missing_older_file", path, message, False)


def _base_instants(named: dict[str, _Named]) -> dict[FileGroupKey, list[str]]:
    """Return the instants of the base files of each file group, oldest first."""
    found: dict[FileGroupKey, list[str]] = {}
    for path in named:
        partition = path.rpartition("/")[0]
        base = parse_base_file(path, partition)
        if base is not None:
            found.setdefault((partition, base.file_id), []).append(base.instant)
    for instants in found.values():
        instants.sort()
    return found


def _superseded(
    view: FileSystemView, bases: Mapping[FileGroupKey, Sequence[str]], path: str, written: str
) -> str | None:
    """Return the first commit whose state needs a file no more; None for a change data file, which no state needs."""
    partition = path.rpartition("/")[0]
    file = parse_base_file(path, partition) or parse_log_file(path, partition)
    if file is None or getattr(file, "is_cdc", False):
        return None
    group = (partition, file.file_id)
    instants = bases.get(group, ())
    later = instants[bisect_right(instants, written) :][:1]
    replaced = view.replaced_groups.get(group)
    return min([*later, *([] if replaced is None else [replaced])], default=None)


def _expected(view: FileSystemView, named: dict[str, _Named]) -> Iterator[str]:
    """Yield the newest base file that the timeline names for each live file group, and the logs on top of it."""
    bases: dict[FileGroupKey, BaseFile] = {}
    logs: dict[FileGroupKey, list[tuple[LogFile, str]]] = {}
    for path, (_, instant) in named.items():
        partition = path.rpartition("/")[0]
        base, log = parse_base_file(path, partition), parse_log_file(path, partition)
        if base is not None:
            key = (partition, base.file_id)
            known = bases.get(key)
            bases[key] = base if known is None or base.instant > known.instant else known
        elif log is not None and not log.is_cdc:
            logs.setdefault((partition, log.file_id), []).append((log, instant))
    for key in {*bases, *logs} - set(view.replaced_groups):
        newest = bases.get(key)
        if newest is not None:
            yield newest.path
        for log, written in logs.get(key, ()):
            if newest is None or (written > newest.instant and log.instant >= newest.instant):
                yield log.path


def _is_short(stat: WriteStat, status: FileStatus) -> bool:
    written = stat.file_size_in_bytes or 0
    # Later commits append to a log, so only base files have one size for good.
    return bool(written) and (status.size < written if stat.is_log_file else status.size != written)


def _damaged_commits(state: TableState) -> Iterator[tuple[str, Finding]]:
    """Yield the writes whose files cannot be read, by instant; what they wrote and replaced cannot be compared."""
    for instant in state.timeline.completed_writes:
        try:
            state.timeline.commit_metadata(instant)
        except CorruptTableError as error:
            path = f"{state.config.timeline_path}/{instant.file_name}"
            yield instant.requested_time, Finding("damaged_commit", path, str(error), True)


def _orphans(
    state: TableState,
    timeline: Timeline,
    view: FileSystemView,
    named: dict[str, _Named],
    damaged: Container[str],
) -> list[Finding]:
    """Return data files that no commit explains; those of pending and archived instants are explained.

    The timeline is the whole one: archived commits may count by nothing but a commit whose file is damaged.
    """
    pending = {each.requested_time for each in timeline.pending}
    active = {each.requested_time for each in timeline.completed_writes}
    found: dict[str, list[Finding]] = {}
    for status in _all_files(view):
        base = parse_base_file(status.name, status.path.rpartition("/")[0], status)
        if base is None or status.path in named or base.instant in pending or base.instant in damaged:
            continue
        if base.instant in active:
            reason = f"commit {base.instant} does not name it: a failed attempt of its writer left it"
        elif not timeline.is_committed(base.instant):
            reason = (
                f"there is no instant {base.instant} on the timeline: its writer failed or was rolled back"
            )
        else:
            continue
        message = f"{reason}; readers do not look at it"
        found.setdefault(base.instant, []).append(Finding("orphan_file", status.path, message, False))
    begun = _begun_since(state) if found else frozenset()
    return [each for instant, files in found.items() if instant not in begun for each in files]


def _begun_since(state: TableState) -> frozenset[str]:
    """Return the instants that have come since the timeline was looked at: what was listed after that may be theirs.

    Writers of other programs continue, regardless of the table's lock, and announce an instant before its first file.
    """
    known = {each.requested_time for each in state.timeline.instants}
    now = Timeline.load(state.storage, state.config)
    return frozenset(each.requested_time for each in now.instants) - known


def _no_metadata(state: TableState, view: FileSystemView) -> Iterator[Finding]:
    """Yield folders with data files that no reader takes for a partition (Hudi file layout, partition metadata)."""
    if not state.config.is_partitioned:
        return
    known = set(view.partitions)
    folders = {
        status.path.rpartition("/")[0]
        for status in state.storage.list("", recursive=True, skip=frozenset({".hoodie"}))
        if not status.is_dir and parse_base_file(status.name, "") is not None
    }
    for folder in sorted(folders - known):
        message = f"the folder holds base files but none of {', '.join(PARTITION_METADATA_NAMES)}: readers miss its rows"
        yield Finding("no_partition_metadata", folder, message, True)


def _left_markers(state: TableState) -> Iterator[Finding]:
    pending = {each.requested_time for each in state.timeline.pending}
    left = [each for each in state.storage.list(MARKER_FOLDER) if each.is_dir and each.name not in pending]
    begun = _begun_since(state) if left else frozenset()
    for status in left:
        # a folder of nothing but another program's marks of folders is listed in a store, and is not there
        if status.name not in begun and state.storage.exists(status.path):
            message = (
                f"markers of instant {status.name}, which is not under way; the next write removes them, or the first one after an "
                "hour where files that they announce may come yet"
            )
            yield Finding("orphan_markers", status.path, message, False)


def _all_files(view: FileSystemView) -> Iterable[FileStatus]:
    return (status for partition in view.partitions for status in view.files(partition))
