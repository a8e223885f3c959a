"""A write as the metadata table sees it, and what changes in one of its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.view import FileSystemView, PartitionFiles, list_files_of
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.keys import Groups, groups_of
from hudi_engine.format.metadata.records import Record, encode_record
from hudi_engine.format.metadata.secondary_index import hashed_parts
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import FileGroupKey, Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.metadata.data_files import LogContents, joined, read_log, slice_keys

_BINARY = pa.binary()


@dataclass
class Changes:
    """New records and deleted keys of one partition of the metadata table.

    Args:
        schema: Avro schema that records are written with.
        by_value: Whether the value in a key of a secondary index decides on its file group, instead of all of the key.
        is_partitioned: Whether each partition of the table has file groups of its own, which its part of the changes goes to.
    """

    schema: str
    by_value: bool = False
    is_partitioned: bool = False
    by_partition: dict[str, Changes] = field(default_factory=dict)
    _keys: list[pa.Array] = field(default_factory=list)
    _values: list[pa.Array] = field(default_factory=list)
    _deleted: list[pa.Array] = field(default_factory=list)

    def scope(self, partition: str) -> str:
        """Return what a key is once in: a partition of the table, or "" for the whole table."""
        return partition if self.is_partitioned else ""

    def part(self, partition: str) -> Changes:
        """Return the part of the changes for rows of a partition of the table, which may be given as its `scope`."""
        if not self.is_partitioned:
            return self
        return self.by_partition.setdefault(partition, Changes(self.schema))

    def parts(self) -> list[tuple[str | None, Changes]]:
        """Return the changes by the partition of the table that they are for; None where all have the same file groups."""
        return [*self.by_partition.items()] if self.is_partitioned else [(None, self)]

    @property
    def records(self) -> int:
        """Number of records that were added."""
        return sum(map(len, self._keys))

    def put(self, records: Mapping[str, Record]) -> None:
        """Add records."""
        values = [encode_record(each, self.schema) for each in records.values()]
        self._keys.append(pa.array([key.encode() for key in records], _BINARY))
        self._values.append(pa.array(values, _BINARY))

    def put_all(self, keys: pa.Array, record: Record) -> None:
        """Add one record under many keys."""
        self._keys.append(keys.cast(_BINARY))
        self._values.append(pa.repeat(pa.scalar(encode_record(record, self.schema), _BINARY), len(keys)))

    def delete(self, keys: Iterable[str] | pa.Array) -> None:
        """Delete keys; one that a record is added for stays."""
        given = keys.cast(_BINARY) if isinstance(keys, pa.Array) else [each.encode() for each in keys]
        self._deleted.append(given if isinstance(given, pa.Array) else pa.array(given, _BINARY))

    def groups_of(self, keys: pa.Array, groups: int) -> Groups:
        """Return the number of the file group of each key."""
        texts = keys.cast(pa.string())
        return groups_of(hashed_parts(texts) if self.by_value and groups > 1 else texts, groups)

    def sorted(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return keys, ascending and each once, their values, and the deleted keys; of two records the later counts."""
        keys, values = joined(self._keys), joined(self._values)
        order = pc.array_sort_indices(keys)
        keys, values = keys.take(order), values.take(order)
        if len(keys) > 1:
            last = np.append(np.asarray(pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))), True)
            keys, values = keys.filter(pa.array(last)), values.filter(pa.array(last))
        deleted = joined(self._deleted).unique()
        return keys, values, deleted.filter(pc.invert(pc.is_in(deleted, keys)))


@dataclass(frozen=True)
class Written:
    """A completed, or nearly completed, write and what it is recorded with.

    Args:
        timeline: Timeline of the table before the write completes.
        schema: Avro schema of the table as of the write, without meta columns.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    table: MetadataTable
    definitions: IndexDefinitions
    instant: str
    action: str
    metadata: CommitMetadata
    schema: Mapping[str, Any]

    @cached_property
    def stats(self) -> list[tuple[str, WriteStat]]:
        """Partition and stat of each file."""
        return [
            (partition, stat)
            for partition, stat in self.metadata.write_stats()
            if stat.path and stat.file_size_in_bytes
        ]

    @cached_property
    def logs(self) -> dict[str, LogContents]:
        """What the write put into each of its logs, by path."""
        paths = [str(stat.path) for _, stat in self.stats if stat.is_log_file]
        found = on_threads(lambda path: read_log(self.storage, self.config, path, self.instant), paths)
        return dict(zip(paths, found, strict=True))

    @cached_property
    def partitions(self) -> list[str]:
        """Partitions whose files change."""
        replaced = self.metadata.partition_to_replace_file_ids or ()
        return sorted({partition for partition, _ in self.stats}.union(replaced))

    @cached_property
    def done(self) -> Timeline:
        """Timeline of the table after the write."""
        return self.timeline.as_if_completed(self.instant, self.action, self.metadata)

    @cached_property
    def _files(self) -> PartitionFiles:
        return list_files_of(self.storage, self.partitions)

    @cached_property
    def before(self) -> FileSystemView:
        """The slices of these partitions before the write."""
        return FileSystemView.build(self.storage, self.config, self.timeline, files=self._files)

    @cached_property
    def after(self) -> FileSystemView:
        """The slices of these partitions after the write."""
        return FileSystemView.build(self.storage, self.config, self.done, files=self._files)

    def keys_before(self, group: FileGroupKey) -> pa.Array:
        """Return the keys of a file group before the write."""
        return slice_keys(self.storage, self.timeline, self.before.newest(group))

    def keys_after(self, group: FileGroupKey) -> pa.Array:
        """Return the keys of a file group after the write."""
        return slice_keys(self.storage, self.done, self.after.newest(group))
