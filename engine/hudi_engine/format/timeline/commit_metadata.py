"""What a commit wrote: the body of completed and inflight write instants.

Table version 6 stores JSON, versions 8 and 9 an Avro container file with the same facts. An inflight file of
a table that Hudi upgraded may still be JSON, so the bytes decide (Hudi commit metadata,
``HoodieCommitMetadata``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import SERVICE_OPERATIONS, WriteOperation
from hudi_engine.format.config.own_keys import BATCHES, CHECKPOINT
from hudi_engine.format.config.table_version import TableVersion
from hudi_engine.format.timeline.avro_file import MAGIC, decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.schemas import COMMIT_METADATA, REPLACE_COMMIT_METADATA

NO_PREVIOUS_COMMIT = "null"
NO_COMMIT = (None, "", NO_PREVIOUS_COMMIT)
"""What stats have for the commit before the first one of a file group."""
"""``prevCommit`` of a new file group: the text, not a JSON null."""


@dataclass
class WriteStat:
    """One file of a commit. Counts are rows, sizes bytes; None represents null or absent.

    The fields from ``log_version`` on belong to log files and to what Hudi 1.x adds; they are left out of
    the JSON when they are None. ``other`` keeps keys this engine does not know. ``sidecar`` and ``content`` are no part of the
    JSON: path, bytes and identity of a file that the writing task made for readers next to its log; the rows that the file adds
    to the table, and what they add to its content hash.
    """

    file_id: str | None = None
    path: str | None = None
    cdc_stats: dict[str, int] | None = None
    prev_commit: str | None = NO_PREVIOUS_COMMIT
    num_writes: int | None = 0
    num_deletes: int | None = 0
    num_update_writes: int | None = 0
    num_inserts: int | None = 0
    total_write_bytes: int | None = 0
    total_write_errors: int | None = 0
    temp_path: str | None = None
    partition_path: str | None = None
    total_log_records: int | None = 0
    total_log_files_compacted: int | None = 0
    total_log_size_compacted: int | None = 0
    total_updated_records_compacted: int | None = 0
    total_log_blocks: int | None = 0
    total_corrupt_log_block: int | None = 0
    total_rollback_blocks: int | None = 0
    file_size_in_bytes: int | None = 0
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: dict[str, int | None] | None = None
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: list[str] | None = None
    prev_base_file: str | None = None
    num_updates: int | None = None
    total_log_files: int | None = None
    total_log_read_time_ms: int | None = None
    other: dict[str, Any] = field(default_factory=dict)
    sidecar: Sequence[Any] | None = field(default=None, compare=False)
    content: Sequence[int] | None = field(default=None, compare=False)

    @property
    def is_log_file(self) -> bool:
        """Whether the stat describes a log file rather than a base file."""
        return self.log_version is not None or ".log." in (self.path or "").rpartition("/")[2]

    @property
    def has_content(self) -> bool:
        """Whether the stat reports a file with something in it: rows of a base file, bytes of a log."""
        if self.is_log_file:
            return bool(self.path and (self.total_write_bytes or self.file_size_in_bytes))
        return bool(self.path and self.num_writes)

    @property
    def file_name(self) -> str:
        """Name of the file without its partition; ``""`` in inflight metadata."""
        return (self.path or "").rpartition("/")[2]

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> WriteStat:
        """Build from the JSON or Avro form; keys that are absent become None."""
        known = {attribute: raw.get(key) for key, attribute in _STAT_KEYS.items()}
        # A null under a key that is normally left out is kept: a parsed stat formats to the same JSON.
        return cls(
            **known,
            other={
                key: value
                for key, value in raw.items()
                if key not in _STAT_KEYS or (key in _WHEN_SET and value is None)
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form with Hudi's keys in Hudi's order."""
        found = {key: getattr(self, attribute) for key, attribute in _ALWAYS.items()}
        for key, attribute in _WHEN_SET.items():
            value = getattr(self, attribute)
            if value is not None:
                found[key] = value
        return found | {key: value for key, value in self.other.items() if key not in found}


@dataclass(frozen=True)
class Content:
    """What a commit does to the rows of a table and to the sum of their hashes, modulo 2^64.

    Args:
        whole: It replaces all rows.
        counted_at: They are those of the table as of this commit, counted; None for a change.
    """

    rows: int
    hash: int
    whole: bool = False
    counted_at: str | None = None


@dataclass
class CommitMetadata:
    """Body of a ``commit``, ``deltacommit`` or ``replacecommit``.

    Args:
        extra_metadata: Texts that travel with the commit; ``schema`` is the Avro schema without meta columns.
        partition_to_replace_file_ids: File groups that a ``replacecommit`` takes out; None for other actions.
        content: What it does to the table's rows, no part of the body; None where that is not known.
    """

    partition_to_write_stats: dict[str, list[WriteStat]] = field(default_factory=dict)
    extra_metadata: dict[str, str] = field(default_factory=dict)
    operation_type: str = WriteOperation.UNKNOWN.value
    compacted: bool = False
    partition_to_replace_file_ids: dict[str, list[str]] | None = None
    content: Content | None = field(default=None, compare=False)

    @property
    def schema_json(self) -> str | None:
        """Avro schema of the table as of this commit, None when the commit carries none."""
        return self.extra_metadata.get("schema") or None

    @property
    def is_of_service(self) -> bool:
        """Whether a table service wrote it, which moves rows and changes neither them nor the columns."""
        return self.compacted or self.operation_type.upper() in SERVICE_OPERATIONS

    @property
    def partitions(self) -> set[str]:
        """Partitions whose files change."""
        return {*self.partition_to_write_stats, *(self.partition_to_replace_file_ids or ())}

    @property
    def replaced(self) -> list[tuple[str, str]]:
        """Partition and file id of the file groups that it takes out."""
        by_partition = self.partition_to_replace_file_ids or {}
        return [(partition, each) for partition, file_ids in by_partition.items() for each in file_ids]

    def write_stats(self) -> Iterator[tuple[str, WriteStat]]:
        """Yield (partition path, stat) of every file."""
        for partition, stats in self.partition_to_write_stats.items():
            for stat in stats:
                yield partition, stat

    def file_paths(self) -> set[str]:
        """Return the paths of the files that the write brought, change data files among them."""
        stats = [stat for _, stat in self.write_stats()]
        return {str(stat.path) for stat in stats} | {path for stat in stats for path in stat.cdc_stats or ()}

    def carrying(self, before: CommitMetadata | None) -> CommitMetadata:
        """Return these facts with checkpoint and batches of the commit before, unless they have some of their own."""
        noted = {} if before is None else before.extra_metadata
        kept = {key: noted[key] for key in (CHECKPOINT, BATCHES) if key in noted}
        return replace(self, extra_metadata={**kept, **self.extra_metadata}) if kept else self

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "commit metadata") -> CommitMetadata:
        """Parse JSON or Avro."""
        if data.startswith(MAGIC):
            return cls.from_dict(decode_avro_file(data, source), source)
        try:
            raw = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CorruptTableError(
                f"{source} is no readable commit metadata of {len(data)} bytes: {error}. It was cut short "
                "or overwritten; roll the instant back or restore the file"
            ) from error
        return cls.from_dict(raw, source)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], source: str = "commit metadata") -> CommitMetadata:
        """Build from the decoded JSON or Avro form."""
        try:
            stats = raw.get("partitionToWriteStats") or {}
            replaced = raw.get("partitionToReplaceFileIds")
            return cls(
                {
                    partition: [WriteStat.from_dict(stat) for stat in found]
                    for partition, found in stats.items()
                },
                {key: value for key, value in (raw.get("extraMetadata") or {}).items() if value is not None},
                raw.get("operationType") or WriteOperation.UNKNOWN.value,
                bool(raw.get("compacted")),
                None if replaced is None else {partition: list(ids) for partition, ids in replaced.items()},
            )
        except (AttributeError, TypeError) as error:
            raise CorruptTableError(
                f"{source} does not have the shape of commit metadata: {error}"
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the form with Hudi's keys that JSON and Avro share."""
        raw: dict[str, Any] = {
            "partitionToWriteStats": {
                partition: [stat.to_dict() for stat in stats]
                for partition, stats in self.partition_to_write_stats.items()
            },
            "compacted": self.compacted,
            "extraMetadata": self.extra_metadata,
            "operationType": self.operation_type,
        }
        if self.partition_to_replace_file_ids is not None:
            raw["partitionToReplaceFileIds"] = self.partition_to_replace_file_ids
        return raw

    def to_bytes(self, version: TableVersion) -> bytes:
        """Format as tables of a version store it: as JSON, or as an Avro file."""
        if not version.stores_avro_commits:
            return self.to_json()
        is_replacing = self.partition_to_replace_file_ids is not None
        schema = REPLACE_COMMIT_METADATA if is_replacing else COMMIT_METADATA
        texts = {key: str(value) for key, value in self.extra_metadata.items()}
        return encode_avro_file(schema, {**self.to_dict(), "extraMetadata": texts, "version": None})

    def to_json(self) -> bytes:
        """Format as tables of version 6 store it."""
        return json.dumps(self.to_dict(), indent=2, separators=(",", " : "), ensure_ascii=False).encode()


_ALWAYS = {
    "fileId": "file_id",
    "path": "path",
    "cdcStats": "cdc_stats",
    "prevCommit": "prev_commit",
    "numWrites": "num_writes",
    "numDeletes": "num_deletes",
    "numUpdateWrites": "num_update_writes",
    "numInserts": "num_inserts",
    "totalWriteBytes": "total_write_bytes",
    "totalWriteErrors": "total_write_errors",
    "tempPath": "temp_path",
    "partitionPath": "partition_path",
    "totalLogRecords": "total_log_records",
    "totalLogFilesCompacted": "total_log_files_compacted",
    "totalLogSizeCompacted": "total_log_size_compacted",
    "totalUpdatedRecordsCompacted": "total_updated_records_compacted",
    "totalLogBlocks": "total_log_blocks",
    "totalCorruptLogBlock": "total_corrupt_log_block",
    "totalRollbackBlocks": "total_rollback_blocks",
    "fileSizeInBytes": "file_size_in_bytes",
    "minEventTime": "min_event_time",
    "maxEventTime": "max_event_time",
    "runtimeStats": "runtime_stats",
}
_WHEN_SET = {
    "logVersion": "log_version",
    "logOffset": "log_offset",
    "baseFile": "base_file",
    "logFiles": "log_files",
    "prevBaseFile": "prev_base_file",
    "numUpdates": "num_updates",
    "totalLogFiles": "total_log_files",
    "totalLogReadTimeMs": "total_log_read_time_ms",
}
_STAT_KEYS = {**_ALWAYS, **_WHEN_SET}
