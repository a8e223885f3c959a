"""What a rollback removes: found by markers and listing, kept as the plan in ``R.rollback.requested``.

Serves table version 6, where a failed instant's base files are deleted and its log blocks are neutralised by
a command block in a new log file of the slice (Hudi table format, rollback). Log files whose own base instant
is the failed one are deleted: no other process can have written into a slice that never was.

Plans are read from the table, so they are not trusted: a path counts only if it lies in the partition it is
listed under and its file name belongs to the instant being rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_engine.errors import CorruptTableError, PathEscapeError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import LogFile, parse_log_file
from hudi_engine.format.filegroup.markers import list_markers
from hudi_engine.format.filegroup.view import list_partition_files, list_partitions
from hudi_engine.format.logformat.format import HeaderKey
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join, relative_path
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.schemas import ROLLBACK_PLAN


@dataclass(frozen=True)
class RollbackRequest:
    """One unit of a rollback: files to delete, or log files of one slice to neutralise.

    Args:
        delete: Files to delete, relative to the base path.
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
    """Take a stored request over; a file that the instant did not write is never deleted, whoever made the plan."""
    partition = relative_path(str(raw["partitionPath"]), source)
    deletes = tuple(_path_in(partition, str(text), source) for text in raw["filesToBeDeleted"])
    for path in deletes:
        if not belongs_to(path, partition, instant):
            raise CorruptTableError(
                f"{source} wants to delete {path!r}, which instant {instant} did not write. Nothing was "
                "deleted; "
                "look at the file and remove it from the timeline if it is not Hudi's"
            )
    logs = {_path_in(partition, str(text), source): int(size) for text, size in _log_entries(raw)}
    base_instant = str(raw.get("latestBaseInstant") or "")
    file_id = str(raw.get("fileId") or "")
    for path in logs:
        log = parse_log_file(path.rpartition("/")[2], partition)
        if log is None or log.file_id != file_id or log.instant != base_instant:
            raise CorruptTableError(
                f"{source} wants to roll back blocks of {path!r}, which is no log file of slice "
                f"{base_instant} of "
                f"file group {file_id!r}. Nothing was written; look at the file"
            )
    return RollbackRequest(partition, file_id, base_instant, deletes, logs)


def _log_entries(raw: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    return (raw.get("logBlocksToBeDeleted") or {}).items()


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


def belongs_to(path: str, partition: str, instant: str) -> bool:
    """Return whether a data file's name says that it exists only because of ``instant``."""
    name = path.rpartition("/")[2]
    log = parse_log_file(name, partition)
    if log is not None:
        return log.instant == instant
    base = parse_base_file(name, partition)
    return base is not None and base.instant == instant


class RollbackFinder:
    """Finds what an instant has written.

    Args:
        metadata: Its commit metadata, or its inflight body, None when there is neither.
        keep_logs: Keep log files that are based on the instant: for a compaction whose slice has rows of
            later commits.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        instant: str,
        metadata: CommitMetadata | None,
        *,
        keep_logs: bool = False,
    ) -> None:
        self._storage = storage
        self._config = config
        self._instant = instant
        self._keep_logs = keep_logs
        self._stats = dict(metadata.partition_to_write_stats) if metadata is not None else {}
        self._marked = _marked_paths(storage, instant)

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
        found: list[RollbackRequest] = []
        for partition in sorted(partitions):
            found.extend(self._in_partition(partition, everywhere and scan_logs and not self._marked))
        return tuple(found)

    def _in_partition(self, partition: str, scan_logs: bool) -> list[RollbackRequest]:
        """Find what an instant left in a partition: its own files, and its blocks in logs of other instants."""
        deletes: list[RollbackRequest] = []
        slices: dict[tuple[str, str], dict[str, int]] = {}
        suspects = self._suspect_slices(partition)
        for status in list_partition_files(self._storage, partition):
            log = parse_log_file(status.name, partition, status)
            if log is None:
                base = parse_base_file(status.name, partition, status)
                if base is not None and base.instant == self._instant:
                    deletes.append(
                        RollbackRequest(partition, base.file_id, base.instant, delete=(status.path,))
                    )
            elif log.instant == self._instant:
                if not self._keep_logs:
                    deletes.append(
                        RollbackRequest(partition, log.file_id, log.instant, delete=(status.path,))
                    )
            elif status.path in self._marked or (
                (scan_logs or (log.file_id, log.instant) in suspects) and self._has_blocks(log)
            ):
                slices.setdefault((log.file_id, log.instant), {})[status.path] = status.size
        return deletes + [
            RollbackRequest(partition, file_id, base_instant, log_files=paths)
            for (file_id, base_instant), paths in sorted(slices.items())
        ]

    def _suspect_slices(self, partition: str) -> set[tuple[str, str]]:
        """Return the slices that metadata, or a marker named after a base file, says were appended to."""
        suspects = {(stat.file_id or "", stat.prev_commit or "") for stat in self._stats.get(partition, ())}
        for stat in self._stats.get(partition, ()):
            log = parse_log_file((stat.path or "").rpartition("/")[2], partition)
            if log is not None:
                suspects.add((log.file_id, log.instant))
        for path in self._marked:
            folder, _, name = path.rpartition("/")
            base = parse_base_file(name, partition) if folder == partition else None
            if base is not None and base.instant != self._instant:
                suspects.add((base.file_id, base.instant))
        return suspects

    def _has_blocks(self, log: LogFile) -> bool:
        try:
            data = self._storage.read(log.path)
        except FileNotFoundError:
            return False
        return holds_blocks_of(data, self._instant)


def holds_blocks_of(data: bytes, instant: str, *, only: bool = False) -> bool:
    """Return whether a log file has blocks of an instant.

    Args:
        only: Ask instead whether no block is of another instant.
    """
    found = {block.header.get(HeaderKey.INSTANT_TIME) for block in read_blocks(data)} - {None}
    return found <= {instant} if only else instant in found


def _marked_paths(storage: Storage, instant: str) -> frozenset[str]:
    return frozenset(path for path, _ in list_markers(storage, instant))


def slice_log_files(storage: Storage, partition: str, file_id: str, base_instant: str) -> Sequence[LogFile]:
    """Return the log files of one slice, oldest version first."""
    found = []
    for status in list_partition_files(storage, partition):
        log = parse_log_file(status.name, partition, status)
        if log is not None and log.file_id == file_id and log.instant == base_instant and not log.is_cdc:
            found.append(log)
    return sorted(found, key=lambda log: log.version)
