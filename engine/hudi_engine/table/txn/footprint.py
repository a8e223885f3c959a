"""What a commit touched, as far as other writers can be in its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import (
    NO_COMMIT,
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    WriteStat,
)
from hudi_engine.table.txn.replaced import Replaced

FileGroup = tuple[str, str]
"""Partition path and file id."""


class Kind(Enum):
    """What a commit means to others."""

    APPEND = "append"
    UPSERT = "upsert"
    OVERWRITE_PARTITION = "overwrite of partitions"
    OVERWRITE_TABLE = "overwrite of the table"
    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    SCHEMA = "schema change"


NEW_KEYS_ONLY = "dbt_hudi.new_keys_only"
"""Key in the extra metadata of an insert that left out the rows whose key was there."""

ROWS_LEFT = "dbt_hudi.rows_left"
"""Key in the extra metadata of an upsert that left stored rows as they were, having compared them with what came."""

OVERWRITES = frozenset({Kind.OVERWRITE_PARTITION, Kind.OVERWRITE_TABLE})

_KINDS: Mapping[str, Kind] = {
    WriteOperation.INSERT: Kind.APPEND,
    WriteOperation.INSERT_PREPPED: Kind.APPEND,
    WriteOperation.BULK_INSERT: Kind.APPEND,
    WriteOperation.BULK_INSERT_PREPPED: Kind.APPEND,
    WriteOperation.BOOTSTRAP: Kind.APPEND,
    WriteOperation.UPSERT: Kind.UPSERT,
    WriteOperation.UPSERT_PREPPED: Kind.UPSERT,
    WriteOperation.DELETE: Kind.UPSERT,
    WriteOperation.DELETE_PREPPED: Kind.UPSERT,
    WriteOperation.INSERT_OVERWRITE: Kind.OVERWRITE_PARTITION,
    WriteOperation.DELETE_PARTITION: Kind.OVERWRITE_PARTITION,
    WriteOperation.INSERT_OVERWRITE_TABLE: Kind.OVERWRITE_TABLE,
    WriteOperation.COMPACT: Kind.COMPACTION,
    WriteOperation.LOG_COMPACT: Kind.COMPACTION,
    WriteOperation.CLUSTER: Kind.CLUSTERING,
    WriteOperation.ALTER_SCHEMA: Kind.SCHEMA,
}


@dataclass(frozen=True)
class ReadsOfWrite:
    """What of the table a write's rows were made from.

    Args:
        base: Timeline as of before anything was read.
        partitions: Partitions that the rows depend on; None for the whole table.
        replaced: The rows that the write replaces; None when it replaces none.
    """

    base: Timeline
    partitions: frozenset[str] | None = None
    replaced: Replaced | None = None

    def depend_on(self, theirs: Footprint) -> frozenset[str]:
        """Return the partitions of another commit in which it may have changed what was read."""
        if self.partitions is None:
            return theirs.partitions
        if self.replaced is not None and theirs.replaces is not None:
            # Each would have taken out what the other put in, in whatever partition, unless the rows are told apart.
            if not self.replaced.is_apart_from(theirs.replaces):
                return theirs.partitions
        return theirs.partitions & self.partitions


@dataclass(frozen=True)
class Footprint:
    """What a commit touched.

    Args:
        written: File groups that got a new base file or log blocks.
        base_written: Those of ``written`` that got a base file, with the instant of the slice it replaces.
        appended: Those of ``written`` that got log blocks, with the base instant of the log file.
        replaced: File groups that readers skip from this commit on.
        created: File groups that did not exist before.
        partitions: Partitions with a written or replaced file group.
        with_inserts: Partitions that got rows with new keys.
        with_deletes: Partitions that lost rows by their key.
        left_rows: Whether rows that came were left out for what was stored.
        replaces: What a commit that takes rows out and puts others in says of them.
    """

    kind: Kind
    written: frozenset[FileGroup]
    base_written: Mapping[FileGroup, str]
    appended: Mapping[FileGroup, str]
    replaced: frozenset[FileGroup]
    created: frozenset[FileGroup]
    partitions: frozenset[str]
    with_inserts: frozenset[str]
    with_deletes: frozenset[str] = frozenset()
    left_rows: bool = False
    replaces: Replaced | None = None

    @classmethod
    def of(cls, metadata: CommitMetadata) -> Footprint:
        """Read the footprint of a commit from its metadata."""
        stats = [
            (partition, stat, (partition, stat.file_id or "")) for partition, stat in metadata.write_stats()
        ]
        replaced = metadata.partition_to_replace_file_ids or {}
        base_written: dict[FileGroup, str] = {}
        appended: dict[FileGroup, str] = {}
        for partition, stat, group in stats:
            log = _log_base_instant(partition, stat)
            if log is None:
                base_written[group] = stat.prev_commit or NO_PREVIOUS_COMMIT
            else:
                appended[group] = min(log, appended.get(group, log))
        return cls(
            kind=kind_of(metadata),
            written=frozenset(group for _, _, group in stats),
            base_written=base_written,
            appended=appended,
            replaced=frozenset(
                (partition, file_id) for partition, ids in replaced.items() for file_id in ids
            ),
            created=frozenset(group for _, stat, group in stats if stat.prev_commit in NO_COMMIT),
            partitions=frozenset(partition for partition, _, _ in stats) | frozenset(replaced),
            with_inserts=frozenset(partition for partition, stat, _ in stats if stat.num_inserts),
            with_deletes=frozenset(partition for partition, stat, _ in stats if stat.num_deletes),
            left_rows=not {NEW_KEYS_ONLY, ROWS_LEFT}.isdisjoint(metadata.extra_metadata),
            replaces=Replaced.of(metadata.extra_metadata),
        )

    @property
    def touched(self) -> frozenset[FileGroup]:
        """File groups written or replaced."""
        return self.written | self.replaced


def kind_of(metadata: CommitMetadata) -> Kind:
    """Return what a commit means to others."""
    known = _KINDS.get(metadata.operation_type or "")
    if known is Kind.APPEND and NEW_KEYS_ONLY in metadata.extra_metadata:
        # it has looked its keys up, so it depends on the others' as an upsert does
        return Kind.UPSERT
    if known is not None:
        return known
    if metadata.compacted:
        return Kind.COMPACTION
    return Kind.OVERWRITE_PARTITION if metadata.partition_to_replace_file_ids else Kind.UPSERT


def _log_base_instant(partition: str, stat: WriteStat) -> str | None:
    """Return the base instant in a log file's name, None for a base file."""
    name = (stat.path or "").rpartition("/")[2]
    log = parse_log_file(name, partition)
    return None if log is None else log.instant
