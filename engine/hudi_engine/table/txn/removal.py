"""What an instant has written, and taking it out of a table: shared by rollback, restore and the end of a write.

A rollback's plan is found by markers and listing and kept in ``R.rollback.requested``. In table version 6 a failed instant's base
files are deleted and its log blocks are neutralised by a command block in a new log file of the slice (Hudi table format,
rollback). Log files whose own base instant is the failed one are deleted: no other process can have written into a slice that
never was. Plans are read from the table, so they are not trusted: a path counts only if it lies in the partition it is listed
under and its file name belongs to the instant being rolled back. Every step can be repeated, in the order of `take_out`:
unpublish, remove data, remove the instant's own timeline files.

A task may be tried twice, and may outlive its driver. It announces each file by a marker before it writes it, and checks that the
inflight file is there before it gives it its name; between the two anything can happen. So announced files are checked before the
commit, after it, and by the next writers as long as an announced file has not come.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hudi_engine.errors import CorruptTableError, PathEscapeError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.log_file import LogFile, log_file_name, parse_log_file
from hudi_engine.format.filegroup.markers import delete_markers, list_markers, marker_folder
from hudi_engine.format.filegroup.view import list_partition_files, list_partitions
from hudi_engine.format.logformat.format import HeaderKey
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.logformat.writer import encode_rollback_block
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.paths import join, relative_path
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, State
from hudi_engine.format.timeline.schema_commits import drop_history
from hudi_engine.format.timeline.schemas import ROLLBACK_PLAN
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.metadata.build import rebuild_metadata_table
from hudi_engine.table.metadata.writer import (
    has_metadata_table,
    roll_back_metadata_table,
)
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.owner import Liveness, heartbeat_path
from hudi_engine.table.txn.publication import Publication

logger = logging.getLogger(__name__)

MARKER_ROOT = ".hoodie/.temp"
_AWAITED_MS = 3_600_000
"""How long a file that was announced is waited for after its instant has ended."""
ROLLBACK_TOKEN = "1-0-1"
"""Write token of log files that no task wrote."""


@dataclass(frozen=True)
class RollbackRequest:
    """One unit of a rollback: files to delete, or log files of one slice to neutralise.

    Args:
        log_files: Log files with blocks of the failed instant, relative to the base path, with their sizes.
    """

    partition: str
    file_id: str = ""
    base_instant: str = ""
    delete: tuple[str, ...] = ()
    log_files: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RollbackPlan(StoredPlan):
    """A rollback's plan."""

    instant: str
    action: str
    requests: tuple[RollbackRequest, ...]

    @property
    def deleted_paths(self) -> tuple[str, ...]:
        """All files to delete."""
        return tuple(path for request in self.requests for path in request.delete)

    @property
    def voided_paths(self) -> tuple[str, ...]:
        """All log files with blocks that a command block makes void."""
        return tuple(path for request in self.requests for path in request.log_files)

    def to_bytes(self, storage: Storage) -> bytes:
        """Encode as Hudi's ``HoodieRollbackPlan``, with the absolute paths Apache Hudi expects there."""
        return encode_avro_file(
            ROLLBACK_PLAN,
            {
                "instantToRollback": {"commitTime": self.instant, "action": self.action},
                "RollbackRequests": [
                    {
                        "partitionPath": request.partition,
                        "fileId": request.file_id,
                        "latestBaseInstant": request.base_instant,
                        "filesToBeDeleted": [absolute_path(storage, path) for path in request.delete],
                        "logBlocksToBeDeleted": {
                            storage.uri(path): size for path, size in request.log_files.items()
                        },
                    }
                    for request in self.requests
                ],
                "version": 1,
            },
        )

    @classmethod
    def _from_record(cls, record: Mapping[str, Any], source: str) -> RollbackPlan:
        target = record.get("instantToRollback")
        if not target:
            raise CorruptTableError(f"{source} names no instant to roll back")
        instant = str(target["commitTime"])
        requests = [_checked(raw, instant, source) for raw in record.get("RollbackRequests") or ()]
        return cls(instant, str(target["action"]), tuple(requests))


def absolute_path(storage: Storage, path: str) -> str:
    """Return the absolute path as Hudi writes it into plans: without scheme on a local file system."""
    uri = storage.uri(path)
    return uri[len("file:") :] if uri.startswith("file:") else uri


def _checked(raw: Mapping[str, Any], instant: str, source: str) -> RollbackRequest:
    """Take a stored request over; a file that the instant did not write is never deleted."""
    partition = relative_path(str(raw["partitionPath"]), source)
    deletes = tuple(_path_in(partition, str(text), source) for text in raw["filesToBeDeleted"])
    for path in deletes:
        if not belongs_to(path, partition, instant):
            raise CorruptTableError(
                f"{source} wants to delete {path!r}, which instant {instant} did not write. Nothing was deleted; look at the "
                "file and remove it from the timeline if it is not Hudi's"
            )
    entries: Mapping[Any, Any] = raw.get("logBlocksToBeDeleted") or {}
    logs = {_path_in(partition, str(text), source): int(size) for text, size in entries.items()}
    base_instant = str(raw.get("latestBaseInstant") or "")
    file_id = str(raw.get("fileId") or "")
    for path in logs:
        log = parse_log_file(path.rpartition("/")[2], partition)
        if log is None or log.file_id != file_id or log.instant != base_instant:
            raise CorruptTableError(
                f"{source} wants to roll back blocks of {path!r}, which is no log file of slice {base_instant} of file group "
                f"{file_id!r}. Nothing was written; look at the file"
            )
    return RollbackRequest(partition, file_id, base_instant, deletes, logs)


def _path_in(partition: str, text: str, source: str) -> str:
    """Return the path relative to the base path of a file that a plan names.

    Plans hold the absolute path of the machine that wrote them, or just the file name, and the table may have
    been moved since, so only partition and name count.
    """
    name = text.rpartition("/")[2]
    path = join(partition, name)
    if not name or (text != name and not f"/{text}".endswith(f"/{path}")):
        raise PathEscapeError(text, f"partition {partition!r}, in which {source} lists it")
    return relative_path(path, source)


def data_file(path: str, partition: str, status: FileStatus | None = None) -> BaseFile | LogFile | None:
    """Return a log or base file by its name, None for another file."""
    name = path.rpartition("/")[2]
    return parse_log_file(name, partition, status) or parse_base_file(name, partition, status)


def belongs_to(path: str, partition: str, instant: str) -> bool:
    """Return whether a data file was made by ``instant``, by the instant in its name."""
    found = data_file(path, partition)
    return found is not None and found.instant == instant


class RollbackFinder:
    """Finds what an instant has written.

    Args:
        metadata: Its commit metadata, or its inflight body, None when there is neither.
    """

    def __init__(
        self, storage: Storage, config: TableConfig, instant: str, metadata: CommitMetadata | None
    ) -> None:
        self._storage = storage
        self._config = config
        self._instant = instant
        self._stats = dict(metadata.partition_to_write_stats) if metadata is not None else {}
        self._marked = frozenset(announced_files(storage, instant))

    @property
    def has_markers(self) -> bool:
        """Whether markers say what the instant has written."""
        return bool(self._marked)

    def find(self, *, everywhere: bool, scan_logs: bool) -> tuple[RollbackRequest, ...]:
        """Return the requests of the plan, sorted by partition.

        Args:
            everywhere: Whether files of the instant may be in partitions that neither its markers nor its metadata name, so
                that all have to be listed.
            scan_logs: Whether it may then have written blocks into log files of others; markers would name those.
        """
        partitions = set(self._stats) | {path.rpartition("/")[0] for path in self._marked}
        if everywhere:
            partitions.update(list_partitions(self._storage, self._config))
        scan_logs = everywhere and scan_logs and not self._marked
        return tuple(
            found for partition in sorted(partitions) for found in self._in_partition(partition, scan_logs)
        )

    def _in_partition(self, partition: str, scan_logs: bool) -> list[RollbackRequest]:
        """Find what an instant left in a partition: its own files, and its blocks in logs of other instants."""
        deletes: list[RollbackRequest] = []
        slices: dict[tuple[str, str], dict[str, int]] = {}
        suspects = self._suspect_slices(partition)
        for status in list_partition_files(self._storage, partition):
            found = data_file(status.name, partition, status)
            if found is None:
                continue
            key = (found.file_id, found.instant)
            if found.instant == self._instant:
                deletes.append(RollbackRequest(partition, *key, delete=(status.path,)))
            elif isinstance(found, LogFile) and (
                status.path in self._marked or ((scan_logs or key in suspects) and self._has_blocks(found))
            ):
                slices.setdefault(key, {})[status.path] = status.size
        return deletes + [
            RollbackRequest(partition, *key, log_files=paths) for key, paths in sorted(slices.items())
        ]

    def _suspect_slices(self, partition: str) -> set[tuple[str, str]]:
        """Return the slices that were appended to according to commit metadata, or to a marker named after their base file."""
        suspects = {(stat.file_id or "", stat.prev_commit or "") for stat in self._stats.get(partition, ())}
        for stat in self._stats.get(partition, ()):
            log = data_file(stat.path or "", partition)
            if isinstance(log, LogFile):
                suspects.add((log.file_id, log.instant))
        for path in self._marked:
            base = data_file(path, partition) if path.rpartition("/")[0] == partition else None
            if isinstance(base, BaseFile) and base.instant != self._instant:
                suspects.add((base.file_id, base.instant))
        return suspects

    def _has_blocks(self, log: LogFile) -> bool:
        try:
            return holds_blocks_of(self._storage.read(log.path), self._instant)
        except FileNotFoundError:
            return False


def holds_blocks_of(data: bytes, instant: str, *, only: bool = False) -> bool:
    """Return whether a log file has blocks of an instant."""
    found = {block.header.get(HeaderKey.INSTANT_TIME) for block in read_blocks(data)} - {None}
    return found <= {instant} if only else instant in found


def slice_log_files(storage: Storage, partition: str, file_id: str, base_instant: str) -> Sequence[LogFile]:
    """Return the log files of one slice, oldest version first."""
    found = (data_file(each.name, partition, each) for each in list_partition_files(storage, partition))
    logs = [each for each in found if isinstance(each, LogFile) and not each.is_cdc]
    same = [each for each in logs if (each.file_id, each.instant) == (file_id, base_instant)]
    return sorted(same, key=lambda log: log.version)


def delete_unwanted_files(storage: Storage, instant: str, metadata: CommitMetadata) -> list[str]:
    """Delete the data files that a write has announced and does not commit; return their paths.

    Without this, the files of a task that was tried twice would both become visible (Hudi marker mechanism).
    """
    return delete_announced_files(storage, instant, announced_files(storage, instant), metadata.file_paths())


def announced_files(storage: Storage, instant: str) -> list[str]:
    """Return the paths of the data files that an instant has announced."""
    return [path for path, _ in list_markers(storage, instant)]


def settle_markers(
    storage: Storage,
    instant: str,
    gone: Collection[str],
    wanted: Collection[str] | None = None,
    announced: Collection[str] | None = None,
) -> None:
    """Remove the markers of an instant that has ended, unless a file that they announce may come yet.

    Args:
        announced: Its markers when the caller has listed them since the instant ended.
        wanted: Paths that the instant has committed, which are there; others are deleted first. None deletes nothing.
    """
    if announced is None:
        announced = announced_files(storage, instant)
    late = [] if wanted is None else delete_announced_files(storage, instant, announced, wanted)
    settled = {*gone, *late, *(wanted or ())}
    if all(path in settled or storage.exists(path) for path in announced):
        delete_markers(storage, instant)


def delete_announced_files(
    storage: Storage, instant: str, announced: Iterable[str], wanted: Collection[str]
) -> list[str]:
    """Delete files that an instant has announced, and that hold nothing but its rows; return their paths."""
    gone = []
    for path in announced:
        if path not in wanted and _is_only_of(storage, path, instant) and storage.delete(path):
            logger.info("deleted %s: the attempt that wrote it is not part of %s", path, instant)
            gone.append(path)
    return gone


def sweep_markers(storage: Storage, config: TableConfig, timeline: Timeline, living: Liveness) -> None:
    """Delete what came late of instants that have ended, and markers that nothing is waited for by."""
    found = [status.name for status in storage.list(MARKER_ROOT) if status.is_dir and status.name.isdigit()]
    ended = set(found) - {instant.requested_time for instant in timeline.pending}
    if not ended:
        return
    # Another program's instant may have begun since the timeline was read.
    timeline = Timeline.load(storage, config)
    for instant in sorted(ended - {each.requested_time for each in timeline.pending}):
        wanted = _wanted(timeline, instant)
        if wanted is not None:
            delete_announced_files(storage, instant, announced_files(storage, instant), wanted)
        _drop_old_markers(storage, instant, living.now_ms)


def _wanted(timeline: Timeline, instant: str) -> Collection[str] | None:
    """Return the files that belong to an instant that has ended; None when that is not known any more."""
    for write in timeline.completed_writes:
        if write.requested_time == instant:
            return timeline.commit_metadata(write).file_paths()
    if not timeline.is_committed(instant):
        return frozenset()
    if instant not in timeline.undone_since():
        return None
    # A compaction whose run was rolled back may have run again, and been archived since.
    is_archived = any(each.requested_time == instant for each in timeline.archived.completed_writes)
    return None if is_archived else frozenset()


def _drop_old_markers(storage: Storage, instant: str, now_ms: int) -> None:
    awaited = [path for path, _ in list_markers(storage, instant) if not storage.exists(path)]
    markers = storage.list(marker_folder(instant), recursive=True)
    newest_ms = max((status.modified_ms for status in markers if not status.is_dir), default=0)
    if not awaited or now_ms - newest_ms > _AWAITED_MS:
        delete_markers(storage, instant)


def _is_only_of(storage: Storage, path: str, instant: str) -> bool:
    """Return whether a marked file holds nothing but this write.

    For a base file its name is enough. That of a log file may have been taken by another writer between the marker and the create,
    so its blocks are read.
    """
    found = data_file(path, path.rpartition("/")[0])
    if not isinstance(found, LogFile) or found.instant == instant:
        return found is not None and found.instant == instant
    try:
        return holds_blocks_of(storage.read(path), instant, only=True)
    except FileNotFoundError:
        return False


def unpublish(removals: Sequence[Removal], config: TableConfig, publication: Publication) -> None:
    """Hide instants from readers before any of their files goes: from the timeline, and from the list of files they use.

    The list is rebuilt also when the instants had left the timeline before, by a run that was killed in between.
    """
    hidden = [removal.unpublish() for removal in removals]
    if any(hidden) or publication.shows({removal.plan.instant for removal in removals}):
        publication.renew(config)


def take_out(removals: Sequence[Removal], config: TableConfig, publication: Publication) -> None:
    """Take instants out of the table, hidden from readers first."""
    unpublish(removals, config, publication)
    late = []
    for removal in removals:
        removal.remove_data()
        late.append(removal.remove_instant())
    if any(late):
        publication.renew(config)


def undo(
    storage: Storage,
    config: TableConfig,
    opened: OpenInstant,
    removals: Callable[[], Sequence[Removal]],
    publication: Publication,
    body: Callable[[Sequence[Removal], int], bytes],
) -> Sequence[Removal]:
    """Carry out a rollback or restore, for the first time or again; return what went."""
    started = time.monotonic()
    opened.start()
    gone = removals()
    if config.table_version.keeps_metadata_table or any(removal.plan.requests for removal in gone):
        config = _without_metadata(storage, config, opened, gone, publication)
    take_out(gone, config, publication)
    rebuild_metadata_table(storage, config)
    opened.complete(body(gone, int((time.monotonic() - started) * 1000)))
    return gone


def _without_metadata(
    storage: Storage,
    config: TableConfig,
    opened: OpenInstant,
    gone: Sequence[Removal],
    publication: Publication,
) -> TableConfig:
    """Take what goes out of the metadata table, before its files go. Return the settings."""
    if not has_metadata_table(storage, config):
        return config
    unpublish(gone, config, publication)
    written = {each.plan.instant: each.plan.deleted_paths for each in gone}
    return roll_back_metadata_table(storage, written, opened.time, opened.action)


@dataclass
class PartitionOutcome:
    """What was done in one partition: paths relative to the base path, log files with their sizes."""

    deleted: list[str] = field(default_factory=list)
    command_blocks: dict[str, int] = field(default_factory=dict)
    failed_logs: dict[str, int] = field(default_factory=dict)


class Removal:
    """Carries out the plan for one instant.

    Args:
        of_run: Whether the instant is a plan that is to run again: its request stays, and so do logs named after it, which
            are of others.
    """

    def __init__(
        self, storage: Storage, config: TableConfig, time: str, plan: RollbackPlan, *, of_run: bool = False
    ) -> None:
        self.plan = plan
        self._of_run = of_run
        self.outcomes: dict[str, PartitionOutcome] = {}
        self._was_completed = False
        self._storage = storage
        self._config = config
        self._time = time
        self._writer = TimelineWriter(storage, config)

    def unpublish(self) -> bool:
        """Remove the completed file, so that no reader sees the instant while its files go; False if none."""
        if COMPLETED_ACTION.get(self.plan.action, self.plan.action) not in WRITE_ACTIONS:
            return False
        gone = self._writer.delete_completed(self.plan.instant, self.plan.action)
        self._was_completed = self._was_completed or gone
        return gone

    def remove_data(self) -> None:
        """Delete the data files, many at a time, and neutralise the log blocks of the plan."""
        going = [path for request in self.plan.requests for path in request.delete if self._goes(path)]
        on_threads(self._storage.delete, going)
        for request in self.plan.requests:
            outcome = self.outcomes.setdefault(request.partition, PartitionOutcome())
            outcome.deleted += filter(self._goes, request.delete)
            if self._is_all_there_is(request):
                on_threads(self._storage.delete, list(request.log_files))
                outcome.deleted += request.log_files
            elif request.log_files:
                path, size = self._neutralise(request)
                outcome.command_blocks[path] = size
                outcome.failed_logs.update(request.log_files)

    def remove_instant(self) -> bool:
        """Remove the pending files of the instant, its markers and heartbeat; return whether it was completed meanwhile.

        A writer that lost the lock while it completed the instant may have done so after it was hidden. From the end of the
        inflight file on such a writer notices that by itself.

        Tasks of a killed writer may outlive it. They look for the inflight file before they give a file its
        name, so what they have finished since the plan was made is looked for after its removal. One that had
        looked just before may come still later: its marker stays for the next writers to look.
        """
        self._remove_pending(State.INFLIGHT)
        late = self.unpublish()
        announced = announced_files(self._storage, self.plan.instant)
        if announced or not self._was_completed:
            self._delete_strays(announced)
        if not self._of_run:
            drop_history(self._storage, self.plan.instant)
            self._remove_pending(State.REQUESTED)
        if announced or not self._was_completed:
            settle_markers(self._storage, self.plan.instant, frozenset(self.deleted), announced=announced)
        self._storage.remove(heartbeat_path(self.plan.instant))
        return late

    @property
    def deleted(self) -> tuple[str, ...]:
        """Data files that went."""
        return tuple(path for outcome in self.outcomes.values() for path in outcome.deleted)

    @property
    def command_blocks(self) -> tuple[str, ...]:
        """Log files written to neutralise blocks."""
        return tuple(path for outcome in self.outcomes.values() for path in outcome.command_blocks)

    def metadata(self, took_ms: int) -> dict[str, Any]:
        """Return the record ``HoodieRollbackMetadata``."""
        return {
            "startRollbackTime": self._time,
            "timeTakenInMillis": took_ms,
            "totalFilesDeleted": len(self.deleted),
            "commitsRollback": [self.plan.instant],
            "partitionMetadata": {
                partition: {
                    "partitionPath": partition,
                    "successDeleteFiles": [absolute_path(self._storage, path) for path in outcome.deleted],
                    "failedDeleteFiles": [],
                    "rollbackLogFiles": self._with_uris(outcome.command_blocks),
                    "logFilesFromFailedCommit": self._with_uris(outcome.failed_logs),
                }
                for partition, outcome in self.outcomes.items()
            },
            "version": 1,
            "instantsRollback": [{"commitTime": self.plan.instant, "action": self.plan.action}],
        }

    def _neutralise(self, request: RollbackRequest) -> tuple[str, int]:
        """Write the command block of a slice unless an earlier run did; return its file and size."""
        logs = slice_log_files(self._storage, request.partition, request.file_id, request.base_instant)
        block = encode_rollback_block(self._time, self.plan.instant)
        for log in reversed(logs):
            if log.size == len(block) and self._is_command(self._storage.read(log.path)):
                return log.path, log.size
        version = max((log.version for log in logs), default=0) + 1
        while True:
            name = log_file_name(request.file_id, request.base_instant, version, ROLLBACK_TOKEN)
            path = join(request.partition, name)
            try:
                self._storage.create(path, block)
                return path, len(block)
            except FileExistsError:
                version += 1

    def _is_all_there_is(self, request: RollbackRequest) -> bool:
        """Return whether a slice has nothing but the instant's own logs.

        The write that had made the slice was rolled back meanwhile. Once that instant is older than the active timeline a
        slice of it counts as committed, and would hide the one before: its logs go.
        """
        if not request.log_files:
            return False
        for status in list_partition_files(self._storage, request.partition):
            found = data_file(status.name, request.partition)
            if found is None or (found.file_id, found.instant) != (request.file_id, request.base_instant):
                continue
            if isinstance(found, BaseFile) or status.path not in request.log_files:
                return False
        return all(
            holds_blocks_of(self._storage.read(path), self.plan.instant, only=True)
            for path in request.log_files
            if self._storage.exists(path)
        )

    def _is_command(self, data: bytes) -> bool:
        return any(
            block.is_rollback
            and block.header.get(HeaderKey.INSTANT_TIME) == self._time
            and block.target_instant_time == self.plan.instant
            for block in read_blocks(data)
        )

    def _remove_pending(self, state: State) -> None:
        planned = [action for action, done in COMPLETED_ACTION.items() if done == self.plan.action]
        if self._config.table_type is TableType.COPY_ON_WRITE:
            planned = [action for action in planned if action == "clustering"]
        for action in (self.plan.action, *planned):
            self._writer.delete(self.plan.instant, action, state)

    def _delete_strays(self, announced: Sequence[str]) -> None:
        """Delete what the instant's tasks have finished since the plan was made, in the partitions of markers too."""
        storage, instant = self._storage, self.plan.instant
        marked = {path.rpartition("/")[0] for path in announced}
        partitions = sorted({*self.outcomes, *marked})
        listed = on_threads(partial(list_partition_files, storage), partitions)
        for partition, statuses in zip(partitions, listed, strict=True):
            for status in statuses:
                if belongs_to(status.path, partition, instant) and self._goes(status.path):
                    storage.remove(status.path)
                    self._note_deleted(partition, status.path)
        neutralised = {path for request in self.plan.requests for path in request.log_files}
        for path in delete_announced_files(storage, instant, announced, neutralised):
            self._note_deleted(path.rpartition("/")[0], path)

    def _goes(self, path: str) -> bool:
        """Return whether a file that is named after the instant goes with it."""
        return not (self._of_run and parse_log_file(path, path.rpartition("/")[0]))

    def _note_deleted(self, partition: str, path: str) -> None:
        self.outcomes.setdefault(partition, PartitionOutcome()).deleted.append(path)

    def _with_uris(self, sizes: dict[str, int]) -> dict[str, int]:
        return {self._storage.uri(path): size for path, size in sizes.items()}
