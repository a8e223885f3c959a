"""Archiving: entries are written to ``archived/``, then the files leave the active timeline.

The archive has no instant of its own; it works under the table's lock. A killed one is finished by the next:
what is in the archive already is not written again, and what is still on the active timeline goes. Files of
pending states go before completed ones, and completed ones from the oldest on, so that no reader takes a done
instant for a pending one or finds a hole (as Apache Hudi does).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timezone, tzinfo
from typing import Any

from hudi_engine.errors import CorruptTableError, ServiceError, TimelineError
from hudi_engine.format.config.declared.service_options import ArchiveOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import FileSource
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import FileStatus, Storage, storage_errors
from hudi_engine.format.storage.paths import join, relative_path
from hudi_engine.format.telemetry.services import Done, measured
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archive_files import (
    EntryKey,
    archived_since,
    create_archive_file,
    encode_archive,
    entry_key,
    list_archive_files,
    read_archive_log,
)
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.format.timeline.clock import format_instant
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.history import ArchivedInstant, History
from hudi_engine.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Instant, State, parse_instant
from hudi_engine.table.metadata.compaction import last_compaction
from hudi_engine.table.metadata.writer import archivable_instants, drop_unsupported_partitions
from hudi_engine.table.services.archive.select import ReplacedGroups, Selection, archive_due, select_instants
from hudi_engine.table.services.planned import open_locked
from hudi_engine.table.services.result import ArchiveResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.owner import HEARTBEAT_FOLDER
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import next_instant, table_lock
from hudi_engine.table.txn.savepoint import delete_savepoint

_PLANNED, _BEGUN = (State.REQUESTED, State.INFLIGHT), (State.INFLIGHT, State.COMPLETED)


def _in_states(action: str, states: Iterable[State], entry_field: str) -> dict[tuple[str, State], str]:
    return {(action, state): entry_field for state in states}


_AVRO_FIELDS: Mapping[tuple[str, State], str] = {
    **_in_states("clean", _PLANNED, "hoodieCleanerPlan"),
    ("clean", State.COMPLETED): "hoodieCleanMetadata",
    ("rollback", State.COMPLETED): "hoodieRollbackMetadata",
    **_in_states("compaction", _PLANNED, "hoodieCompactionPlan"),
    **_in_states("logcompaction", _PLANNED, "hoodieCompactionPlan"),
    ("replacecommit", State.REQUESTED): "hoodieRequestedReplaceMetadata",
}
_COMMIT_FIELDS: Mapping[tuple[str, State], str] = {
    **_in_states("commit", _BEGUN, "hoodieCommitMetadata"),
    **_in_states("deltacommit", _BEGUN, "hoodieCommitMetadata"),
    ("replacecommit", State.INFLIGHT): "HoodieInflightReplaceMetadata",
    ("replacecommit", State.COMPLETED): "hoodieReplaceCommitMetadata",
}


@dataclass(frozen=True)
class TimelineFile:
    """One file of the active timeline."""

    instant: Instant
    path: str
    modified_ms: int

    @property
    def key(self) -> EntryKey:
        """What the entry of the file is known by."""
        return self.instant.requested_time, self.instant.action, self.instant.state.value


def files_of(storage: Storage, config: TableConfig, instants: Iterable[Instant]) -> list[TimelineFile]:
    """Return the timeline files of instants in the order of the instants and their states.

    A completed compaction has its plan under the action ``compaction``, and so on.
    """
    wanted = {(each.requested_time, COMPLETED_ACTION.get(each.action, each.action)) for each in instants}
    found = []
    for status in storage.list(config.timeline_path):
        instant = None if status.is_dir else parse_instant(status.name, config.layout_version)
        if instant is None:
            continue
        done = COMPLETED_ACTION.get(instant.action, instant.action)
        if (instant.requested_time, done) in wanted:
            found.append(TimelineFile(instant, status.path, status.modified_ms))
    return sorted(found, key=lambda file: (file.instant.requested_time, file.instant.state.rank))


def history_rows(
    storage: Storage, completed: Iterable[TimelineFile], files: Iterable[TimelineFile]
) -> Iterator[ArchivedInstant]:
    """Yield the rows of completed instants, with the plans among all of their timeline files."""
    plans = {file.instant.requested_time: file for file in files if file.instant.state is State.REQUESTED}
    for file in completed:
        instant = file.instant
        body, source = storage.read(file.path), f"{storage.base}/{file.path}"
        if instant.action in WRITE_ACTIONS:
            CommitMetadata.from_bytes(body, source)
        planned = plans.get(instant.requested_time)
        plan = storage.read(planned.path) if planned is not None else b""
        completion_time = instant.completion_time or instant.requested_time
        yield ArchivedInstant(instant.requested_time, completion_time, instant.action, body, plan or None)


def encode_entries(storage: Storage, files: Iterable[TimelineFile], batch: int, zone: tzinfo | None) -> bytes:
    """Return the content of an archive file."""
    return encode_archive(list(_entries(storage, files, zone)), batch)


def _entries(
    storage: Storage, files: Iterable[TimelineFile], zone: tzinfo | None
) -> Iterator[dict[str, Any]]:
    for file in files:
        changed = format_instant(datetime.fromtimestamp(file.modified_ms / 1000, timezone.utc), zone)
        yield archive_entry(file.instant, storage.read(file.path), changed, f"{storage.base}/{file.path}")


def archive_entry(instant: Instant, body: bytes, changed: str, source: str = "the archive") -> dict[str, Any]:
    """Return the entry of one timeline file, whose instant came into its state at ``changed``."""
    return {
        "commitTime": instant.requested_time,
        "actionType": instant.action,
        "actionState": instant.state.value,
        "version": None,
        "stateTransitionTime": changed,
        **_payload(instant, body, source),
    }


def _payload(instant: Instant, body: bytes, source: str) -> dict[str, Any]:
    """Return the field that holds what the file contains; a plan that is not needed any more may be unreadable."""
    kind = instant.action, instant.state
    if not body:
        return {}
    try:
        if kind in _AVRO_FIELDS:
            return {_AVRO_FIELDS[kind]: decode_avro_file(body, source)}
        if kind in _COMMIT_FIELDS:
            return {_COMMIT_FIELDS[kind]: _commit_record(CommitMetadata.from_bytes(body, source))}
    except CorruptTableError:
        if instant.is_completed:
            raise
    return {}


def _commit_record(metadata: CommitMetadata) -> dict[str, Any]:
    record = metadata.to_dict()
    record["extraMetadata"] = {key: str(value) for key, value in metadata.extra_metadata.items()}
    return record


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
    """Move the oldest instants to the archive when there are too many on the active timeline."""
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
        has_history = state.config.table_version.keeps_history
        if not has_history:
            _check_no_merge(storage, join(state.config.archive_folder, "mergeArchivePlan"))
        chosen = select_instants(state, options, next_instant(state.timeline))
        config = drop_unsupported_partitions(storage, state.config) if chosen.instants else state.config
        metadata = MetadataTable.open(storage, config, state.timeline) if chosen.instants else None
        if metadata is not None:
            chosen = _without_unmerged(metadata, chosen)
        if not chosen.instants:
            return _planned_result(chosen)
        path = archive_instants(state, chosen.instants, options)
        merged = History(storage, state.config.archive_folder).merge_full_levels() if has_history else 0
        if metadata is not None:
            _archive_metadata(metadata, Timeline.load(storage, config), options)
    logger.info("archived %d instants of %s", len(chosen.instants), storage.base)
    return ArchiveResult(_names(chosen.instants), path, merged)


def _without_unmerged(metadata: MetadataTable, chosen: Selection) -> Selection:
    """Leave those instants on the timeline that are in logs of the metadata table, which readers sort by the timeline."""
    bound = last_compaction(metadata.timeline)
    kept = tuple(each for each in chosen.instants if each.requested_time < bound)
    reason = "the metadata table has not been compacted since the oldest instant"
    return Selection(kept, "" if kept else reason)


def _archive_metadata(metadata: MetadataTable, timeline: Timeline, options: Options) -> None:
    """Archive the metadata table too.

    Args:
        timeline: Timeline of the table after its own archiving.
    """
    metadata = replace(metadata, table_timeline=timeline)
    instants = archivable_instants(metadata)
    if instants:
        own = TableState(metadata.storage, metadata.config, metadata.timeline)
        archive_instants(own, instants, options)
        History(metadata.storage, metadata.config.archive_folder).merge_full_levels()


def _check_no_merge(storage: Storage, path: str) -> None:
    """Refuse an archive in which Apache Hudi has begun to merge files: one of them may be torn, or there twice."""
    if storage.exists(path):
        raise ServiceError(
            f"{storage.base}/{path} shows that Apache Hudi stopped while it merged files of the archive; archive the table "
            "with Apache Hudi once, which completes that"
        )


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
        known: What is in the archive already; None to look for it in the newest files.
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


@dataclass(frozen=True)
class TakenBack:
    """An instant that a rollback or restore took back."""

    instant: str
    partitions: tuple[str, ...]
    since_ms: int


def remove_strays(state: TableState, first: str, later: str) -> list[str]:
    """Delete the late files of instants that were taken back; return their paths."""
    removed = []
    for taken in _taken_back(state):
        if not first <= taken.instant < later:
            continue
        for partition in taken.partitions:
            for status in list_partition_files(state.storage, partition):
                if _belongs(state.storage, status, partition, taken):
                    logger.warning("removing %s of %s, which was rolled back", status.path, taken.instant)
                    state.storage.remove(status.path)
                    removed.append(status.path)
    return removed


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
    """Return which instants were rolled back whose own files were removed, and in which partitions they wrote."""
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


def drop_savepoint(storage: Storage, options: Options, instant_time: str) -> None:
    """Give a saved commit free to the cleaner, under the table's lock."""

    def release(config: TableConfig, timeline: Timeline) -> None:
        _archive_left_behind(TableState(storage, config, timeline), instant_time, options)

    delete_savepoint(storage, options, instant_time, release=release)


def _archive_left_behind(state: TableState, saved: str, options: Options) -> None:
    """Archive a saved commit after which others were archived, if a younger one is still active; any other stays."""
    active = state.timeline.completed_writes
    writes = [each for each in active if each.requested_time == saved]
    if not writes or writes[-1] is active[-1]:
        return
    if not _is_passed(state, saved):
        return
    replaced = ReplacedGroups(state)
    if any(replaced.may_show_again(write) for write in writes):
        raise TimelineError(
            f"the savepoint {saved} of the table at {state.storage.base!r} cannot be deleted yet: files that the saved "
            "commit replaced are still there, and younger commits are archived already. Run a clean first"
        )
    archive_instants(state, writes, options)


def _is_passed(state: TableState, saved: str) -> bool:
    """Return whether writes younger than a saved one are archived; no more of the archive is read than that takes.

    Archiving goes from the oldest on. So it has not passed where an older one without a savepoint is active, unless it was
    killed before that was removed: then what it took is in the newest file with writes. Else any file may show it, as
    another savepoint that went before may have left an older commit in the newest one.
    """
    if state.config.table_version.keeps_history:
        known = History(state.storage, state.config.archive_folder).instants_since(saved)
        return any(action in WRITE_ACTIONS and time > saved for time, action in known)
    held = {each.requested_time for each in state.timeline.savepoints}
    active = [each.requested_time for each in state.timeline.completed_writes]
    newest_tells = any(time < saved and time not in held for time in active)
    for file in reversed(list_archive_files(state.storage, state.config.archive_folder)):
        keys = map(entry_key, read_archive_log(state.storage.read(file.path), file.path))
        times = [time for time, action, at in keys if action in WRITE_ACTIONS and at == State.COMPLETED.value]
        if any(time > saved for time in times):
            return True
        if times and newest_tells:
            return False
    return False
