"""Archiving: entries are written to ``archived/``, then the files leave the active timeline.

The archive has no instant of its own; it works under the table's lock. A killed one is finished by the next:
what is in the archive already is not written again, and what is still on the active timeline goes. Files of
pending states go before completed ones, and completed ones from the oldest on, so that nobody takes a done
instant for a pending one or finds a hole (as Apache Hudi does).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.declared.service_options import ArchiveOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import FileSource
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import FileStatus, Storage, storage_errors
from hudi_engine.format.storage.paths import join, relative_path
from hudi_engine.format.telemetry.services import Done, measured
from hudi_engine.format.timeline.archive_files import (
    ArchiveFile,
    EntryKey,
    archive_file_path,
    archived_since,
    create_archive_file,
    list_archive_files,
)
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.history import History
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.format.timeline.schemas import MERGE_ARCHIVE_PLAN
from hudi_engine.table.services.archive.entries import TimelineFile, encode_entries, files_of, history_rows
from hudi_engine.table.services.archive.select import Selection, archive_due, select_instants
from hudi_engine.table.services.opening import open_locked
from hudi_engine.table.services.result import ArchiveResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.owner import HEARTBEAT_FOLDER
from hudi_engine.table.txn.publication import Publication, drop_foreign_metadata_table
from hudi_engine.table.txn.recovery import next_instant, table_lock

logger = logging.getLogger(__name__)


def _done(result: ArchiveResult) -> Done | None:
    return None if result.file is None else Done("archive", {"numInstantsArchived": len(result.instants)})


@measured(_done)
def archive(
    storage: Storage,
    options: Options,
    *,
    publish: Publication | None = None,
    dry_run: bool = False,
    state: TableState | None = None,
) -> ArchiveResult:
    """Move the oldest instants to the archive when there are too many on the active timeline.

    Args:
        options: ``hoodie.keep.*``, ``hoodie.archive.*``, and those of clean and compaction, which have a say.
        publish: Published file lists; None for those there are, rebuilt without Spark.
        state: The table as the caller has just read it, to tell whether archiving is due; None to read it.

    Returns:
        What was done, or the reason why there was nothing to do.

    Raises:
        ConfigError: when the options contradict each other.
        CorruptTableError: when the file of an instant that is to go cannot be read; it stays where it is.
    """
    state = state or TableState.load(storage)
    now = next_instant(state.timeline)
    reason = archive_due(state.timeline, options, now)
    if reason:
        return ArchiveResult(reason=reason)
    if dry_run:
        state.config.check_writable()
        return _planned_result(select_instants(state, options, now))
    publication = publish if publish is not None else publication_of(storage)
    with storage_errors(storage, "archive"), table_lock(storage, options):
        state = open_locked(storage, options, publication)
        if not state.config.table_version.keeps_history:
            finish_merge(storage, state.config.archive_folder)
        chosen = select_instants(state, options, next_instant(state.timeline))
        if not chosen.instants:
            return _planned_result(chosen)
        drop_foreign_metadata_table(storage, state.config)
        path = archive_instants(state, chosen.instants, options)
        if state.config.table_version.keeps_history:
            merged = History(storage, state.config.archive_folder).merge_full_levels()
        else:
            merged = merge_small_files(storage, state.config.archive_folder, options)
    logger.info("archived %d instants of %s", len(chosen.instants), storage.base)
    return ArchiveResult(_names(chosen.instants), path, merged)


def finish_archive(storage: Storage, options: Options, publication: Publication) -> None:
    """Take the instants off the active timeline that a killed archiving has written to the archive already."""
    with storage_errors(storage, "finish what an archiving has begun"), table_lock(storage, options):
        state = open_locked(storage, options, publication)
        done = state.timeline.completed
        known = _archived_keys(state) if done else set()
        if not known:
            return
        left = {
            file.instant.requested_time
            for file in files_of(storage, state.config, done)
            if file.key not in known and _is_archived_alone(state, file)
        }
        going = [each for each in done if each.requested_time not in left]
        if going:
            archive_instants(state, going, options, known)


def archive_instants(
    state: TableState, instants: Sequence[Instant], options: Options, known: Set[EntryKey] | None = None
) -> str | None:
    """Write the entries of instants and remove their files; the caller holds the lock and has chosen well.

    Args:
        options: ``hoodie.commits.archival.batch``.
        known: What is in the archive already; None to look for it in the newest files.

    Returns:
        The new file of the archive, None when the entries were there already.
    """
    storage, folder = state.storage, state.config.archive_folder
    going = {(each.requested_time, each.action) for each in instants}
    left = [each for each in state.timeline.completed if (each.requested_time, each.action) not in going]
    _remove_strays(state, left)
    files = files_of(storage, state.config, instants)
    if known is None:
        known = _archived_keys(state, instants[0].requested_time)
    missing = [file for file in files if file.key not in known and _is_archived_alone(state, file)]
    path = None
    if missing and state.config.table_version.keeps_history:
        path = History(storage, folder).add(list(history_rows(storage, missing, files)))
    elif missing:
        archived = list_archive_files(storage, folder)
        number = archived[-1].number + 1 if archived else 1
        batch = options[ArchiveOptions.BATCH]
        body = encode_entries(storage, missing, batch, state.timeline.zone)
        path = create_archive_file(storage, folder, number, body)
    _remove_traces(storage, instants)
    _remove(storage, [file for file in files if not file.instant.is_completed])
    for file in files:
        if file.instant.is_completed:
            storage.remove(file.path)
    return path


def _archived_keys(state: TableState, oldest: str = "") -> Set[EntryKey]:
    """Return what of the timeline is in the archive already; without a time all of the archive is looked at."""
    folder = state.config.archive_folder
    if state.config.table_version.keeps_history:
        known = History(state.storage, folder).instants_since(oldest)
        return {(time, action, State.COMPLETED.value) for time, action in known}
    return archived_since(state.storage, list_archive_files(state.storage, folder), oldest)


def _is_archived_alone(state: TableState, file: TimelineFile) -> bool:
    """Return whether a file has an entry of its own; in a history the files of an instant are one row."""
    return file.instant.is_completed or not state.config.table_version.keeps_history


def _remove_strays(state: TableState, left: Sequence[Instant]) -> None:
    first = state.timeline.first_write_time
    later = type(state.timeline)(state.storage, state.config, left).first_write_time
    if first is not None and later is not None and first < later:
        remove_strays(state, first, later)


def _remove(storage: Storage, files: Sequence[TimelineFile]) -> None:
    on_threads(lambda file: storage.remove(file.path), files)


def _remove_traces(storage: Storage, instants: Sequence[Instant]) -> None:
    """Remove owner files of instants that are long done; their marker folders went when the lock was taken."""
    times = {each.requested_time for each in instants}
    for status in storage.list(HEARTBEAT_FOLDER):
        if status.name in times:
            storage.remove(status.path)


def _planned_result(chosen: Selection) -> ArchiveResult:
    return ArchiveResult(_names(chosen.instants), reason=chosen.reason)


def _names(instants: Sequence[Instant]) -> tuple[str, ...]:
    return tuple(f"{each.requested_time}.{each.action}" for each in instants)


_PLAN_NAME = "mergeArchivePlan"


def merge_small_files(storage: Storage, folder: str, options: Options) -> int:
    """Merge the newest files when enough of them are small; return how many went into one.

    Only files behind the newest large one are merged, so that their order stays.

    Args:
        folder: Archive folder, relative to the base path.
        options: ``hoodie.archive.merge.*``.
    """
    if not options[ArchiveOptions.MERGE]:
        return 0
    files = list_archive_files(storage, folder)
    small = _small(files, options[ArchiveOptions.MERGE_SMALL_FILE_LIMIT])
    if len(small) < options[ArchiveOptions.MERGE_FILES]:
        return 0
    merged = archive_file_path(folder, files[-1].number + 1)
    plan = {
        "candidate": [storage.uri(file.path) for file in small],
        "mergedArchiveFileName": merged.rpartition("/")[2],
    }
    storage.replace(join(folder, _PLAN_NAME), encode_avro_file(MERGE_ARCHIVE_PLAN, plan))
    storage.create(merged, b"".join(storage.read(file.path) for file in small))
    for file in small:
        storage.remove(file.path)
    storage.remove(join(folder, _PLAN_NAME))
    return len(small)


def finish_merge(storage: Storage, folder: str) -> None:
    """Undo or complete a merge that was killed; nothing happens when there is none.

    While all small files are there the merged one may be torn and goes; otherwise it is whole.

    Args:
        folder: Archive folder, relative to the base path.
    """
    path = join(folder, _PLAN_NAME)
    try:
        plan = decode_avro_file(storage.read(path), f"{storage.base}/{path}")
    except FileNotFoundError:
        return
    except CorruptTableError:
        logger.warning("dropping %s/%s, which was cut short", storage.base, path)
        storage.remove(path)
        return
    names = {str(each).rpartition("/")[2] for each in plan.get("candidate") or ()}
    files = {file.path.rpartition("/")[2]: file for file in list_archive_files(storage, folder)}
    merged = files.get(str(plan.get("mergedArchiveFileName")).rpartition("/")[2])
    if merged is not None:
        whole = not names <= set(files)
        going = [files[name] for name in sorted(names & set(files))] if whole else [merged]
        for file in going:
            storage.remove(file.path)
    storage.remove(path)


def _small(files: Sequence[ArchiveFile], limit: int) -> list[ArchiveFile]:
    """Return the files after the newest one that is larger than the limit, oldest first."""
    found: list[ArchiveFile] = []
    for file in reversed(files):
        if file.size > limit:
            break
        found.insert(0, file)
    return found


@dataclass(frozen=True)
class TakenBack:
    """An instant that a rollback or restore took back.

    Args:
        since_ms: When it was gone, in epoch milliseconds.
    """

    instant: str
    partitions: tuple[str, ...]
    since_ms: int


def remove_strays(state: TableState, first: str, later: str) -> list[str]:
    """Delete the late files of instants that were taken back; return their paths.

    Args:
        first: First active write now: older instants count as committed already.
    """
    gone = []
    for taken in _taken_back(state):
        if not first <= taken.instant < later:
            continue
        for partition in taken.partitions:
            for status in list_partition_files(state.storage, partition):
                if _belongs(state.storage, status, partition, taken):
                    logger.warning("removing %s of %s, which was rolled back", status.path, taken.instant)
                    state.storage.remove(status.path)
                    gone.append(status.path)
    return gone


def _belongs(storage: Storage, status: FileStatus, partition: str, taken: TakenBack) -> bool:
    """Return whether a file is of the instant; the name of a log file does not say whose it is."""
    base = parse_base_file(status.name, partition)
    if base is not None:
        return base.instant == taken.instant
    log = parse_log_file(status.name, partition)
    if log is None or status.modified_ms <= taken.since_ms:
        return False
    with storage.open_input(status.path) as source:
        blocks = [each for each in scan_blocks(FileSource(source)) if each.kind is not BlockType.CORRUPT]
    return bool(blocks) and all(block.header.get(HeaderKey.INSTANT_TIME) == taken.instant for block in blocks)


def _taken_back(state: TableState) -> Iterator[TakenBack]:
    """Return which instants were rolled back whose own files are gone, and in which partitions they wrote."""
    timeline = state.timeline
    live = {instant.requested_time for instant in timeline.instants if instant.action not in _UNDOING}
    for instant in timeline.completed:
        if instant.action not in _UNDOING:
            continue
        path = f"{state.config.timeline_path}/{instant.file_name}"
        status = state.storage.stat(path)
        for rollback in _rollbacks(instant, timeline.record(instant)):
            partitions = tuple(relative_path(each) for each in rollback.get("partitionMetadata") or {})
            for time in rollback.get("commitsRollback") or ():
                if str(time) not in live:
                    yield TakenBack(str(time), partitions, status.modified_ms if status else 0)


_UNDOING = ("rollback", "restore")


def _rollbacks(instant: Instant, record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if instant.action == "rollback":
        yield record
        return
    for rollbacks in (record.get("hoodieRestoreMetadata") or {}).values():
        yield from (each for each in rollbacks or () if each)
