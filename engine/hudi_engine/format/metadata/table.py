"""Reading a metadata table: all records of a partition, those of some keys, or those whose keys begin alike.

Source: Hudi metadata table format. It is a merge-on-read table below ``.hoodie/metadata`` whose base files are HFiles. Its logs
count by the timeline of the table that it describes too: a writer completes its part here before its commit there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import FileGroup, SliceRules, list_partition_files
from hudi_engine.format.hfile.file import HFile
from hudi_engine.format.hfile.merging import merged_content
from hudi_engine.format.hfile.writer import encode_content, encode_hfile
from hudi_engine.format.logformat.blocks import delete
from hudi_engine.format.logformat.format import BlockType, LogBlock
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.metadata.found_cells import FOUND_CELLS
from hudi_engine.format.metadata.keys import ALL_PARTITIONS, ROOT_PARTITION, groups_of
from hudi_engine.format.metadata.records import (
    MetadataPartition,
    Record,
    decode_record,
    encode_record,
    merge_records,
    record_schema,
    schema_text,
    with_meta_columns,
)
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.below import StorageBelow
from hudi_engine.format.timeline.active import Timeline

METADATA_FOLDER = ".hoodie/metadata"
INITIAL = "0" * 14
"""What the instants of initialisations begin with from version 8 on."""

_Value = tuple[bytes, str]
"""A record's bytes and the schema that they were written with."""
_Select = Callable[[HFile], Iterable[tuple[bytes, bytes]]]


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table of one table, as of a look at both timelines.

    Args:
        storage: Files below ``.hoodie/metadata``.
        config: Its own properties.
        timeline: Its own timeline.
        table_timeline: Timeline of the table that it describes, read before its own.
        partitions: Names of its partitions that are complete.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    table_timeline: Timeline
    partitions: tuple[str, ...]
    _slices: dict[str, list[FileSlice]] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable | None:
        """Open the metadata table of a table; None where the table's properties name no partition of one."""
        if MetadataPartition.FILES.value not in config.metadata_partitions:
            return None
        below = StorageBelow(storage, METADATA_FOLDER)
        own = TableConfig.load(below)
        return cls(below, own, Timeline.load(below, own), timeline, config.metadata_partitions)

    def reopened(self) -> MetadataTable:
        """Return the table as of another look at its own timeline."""
        return MetadataTable(
            self.storage,
            self.config,
            Timeline.load(self.storage, self.config),
            self.table_timeline,
            self.partitions,
        )

    def without(self, partitions: Collection[str]) -> MetadataTable:
        """Return the table without some partitions, which have been dropped."""
        return replace(self, partitions=tuple(each for each in self.partitions if each not in partitions))

    @cached_property
    def _pending(self) -> frozenset[str]:
        return frozenset(each.requested_time for each in self.table_timeline.pending)

    @cached_property
    def _completed(self) -> frozenset[str]:
        return frozenset(each.requested_time for each in self.table_timeline.completed)

    def is_valid(self, instant: str) -> bool:
        """Return whether log blocks of an instant count: those of a write that has not completed in the table do not."""
        if instant in self._completed or instant.startswith(INITIAL):
            return True
        return instant not in self._pending and self.timeline.is_committed(instant)

    def groups(self, partition: str) -> list[FileSlice]:
        """Return the newest slice of each file group of a partition, in the order that the hash of keys goes by."""
        if partition not in self._slices:
            self._slices[partition] = self._read_groups(partition)
        return self._slices[partition]

    def _read_groups(self, partition: str) -> list[FileSlice]:
        found: dict[str, FileGroup] = {}
        for status in list_partition_files(self.storage, partition):
            _add_file(found, partition, status)
        committed = self.timeline.committed()
        rules = SliceRules(
            by_completion_time=self.config.layout_version >= 2,
            is_committed=lambda instant: instant.startswith(INITIAL) or committed(instant),
            completion_time=lambda instant: self.timeline.completion_time(instant) or instant,
            as_of=None,
            choose=_longest,
        )
        slices = (rules.slices(found[file_id]) for file_id in sorted(found))
        return [
            each[0] if each else FileSlice(partition, file_id, "")
            for file_id, each in zip(sorted(found), slices, strict=True)
        ]

    def records(self, partition: str) -> Iterator[tuple[str, Record]]:
        """Yield all keys of a partition with their records, one file group after the other."""
        for each in self.groups(partition):
            yield from self._merged(partition, each, HFile.cells).result().items()

    def lookup(self, partition: str, keys: Collection[str]) -> dict[str, Record]:
        """Return the records of those keys that a partition has; each file group that can hold one is read once."""
        slices = self.groups(partition)
        found: dict[str, Record] = {}
        for number, some in _by_group(keys, len(slices)).items():
            found.update(self.lookup_in(partition, slices[number], some))
        return found

    def lookup_in(self, partition: str, group: FileSlice, keys: Iterable[str]) -> dict[str, Record]:
        """Return the records of those keys that one file group of a partition has."""
        wanted = [key.encode() for key in keys]
        return self._merged(partition, group, partial(self._cells_of, group.base_file, wanted)).result()

    def _cells_of(
        self, base: BaseFile | None, keys: list[bytes], file: HFile
    ) -> Iterable[tuple[bytes, bytes]]:
        """Return the cells of keys in the base file of a group, or in another file that is at hand."""
        if base is None or file.is_at_hand or not base.modified_ms:
            return file.get(keys).items()
        name = self.storage.base, base.path, base.size, base.modified_ms
        return FOUND_CELLS.get(name, keys, file.get).items()

    def with_prefix(
        self, partition: str, prefixes: Collection[str], *, are_hashed: bool = False
    ) -> Iterator[tuple[str, Record]]:
        """Yield the keys of a partition that begin with one of some texts, with their records.

        Args:
            are_hashed: Whether the text decides on the file group of a key, so that the others are not read.
        """
        groups = self.groups(partition)
        everywhere = dict.fromkeys(range(len(groups)), list(prefixes))
        for number, some in (_by_group(prefixes, len(groups)) if are_hashed else everywhere).items():
            select = partial(_cells_with, [prefix.encode() for prefix in some])
            yield from self._merged(partition, groups[number], select).result().items()

    def schema(self) -> str:
        """Return the Avro schema, with meta columns, that its newest records are written with.

        Some readers refuse records of one file group with schemas of several Hudi releases.
        """
        newest = self.groups(MetadataPartition.FILES.value)[0]
        for log in reversed(newest.log_files):
            for block in read_blocks(self.storage.read(log.path)):
                if block.kind is BlockType.HFILE_DATA and block.schema is not None:
                    return block.schema
        if newest.base_file is not None:
            with self.storage.open_input(newest.base_file.path) as file:
                return _opened(file).info["schema"].decode()
        return schema_text(with_meta_columns(record_schema(self.config.version)))

    def compacted(
        self, partition: str, file_slice: FileSlice, blocks: Sequence[LogBlock], schema: str
    ) -> tuple[bytes, int]:
        """Return the next base file of a slice, its records merged and written with a schema, and how many they are.

        Args:
            blocks: The `blocks` of the slice.
        """
        merged, base = _Merged(_kind(partition)), None
        if file_slice.base_file is not None:
            base = HFile.of_bytes(self.storage.read(file_slice.base_file.path))
        if base is not None and not merged.merges and _schema_of(base) == schema:
            logs = _Merged(_kind(partition))
            for block in blocks:
                logs.add_block(block, HFile.cells)
            content = merged_content(base, logs.encoded(schema), logs.deleted)
            if content is not None:
                return encode_content(content, schema, is_base_file=True), content.count
        if base is not None:
            merged.add(base, HFile.cells)
        for block in blocks:
            merged.add_block(block, HFile.cells)
        found = merged.encoded(schema)
        keys = pa.array(sorted(found), pa.binary())
        values = pa.array([found[key] for key in sorted(found)], pa.binary())
        return encode_hfile(keys, values, schema, is_base_file=True), len(keys)

    def table_partitions(self) -> list[str]:
        """Return the partitions of the table, sorted; ``[""]`` for one that is not partitioned."""
        found = self.lookup(MetadataPartition.FILES.value, [ALL_PARTITIONS]).get(ALL_PARTITIONS, {})
        names = [name for name, info in _files(found).items() if not info["isDeleted"]]
        return sorted("" if name == ROOT_PARTITION else name for name in names)

    def table_files(self, partitions: Iterable[str]) -> dict[str, list[FileStatus]]:
        """Return the files of some partitions of the table, written ones and replaced ones; their times are not known (0)."""
        wanted = {each or ROOT_PARTITION: each for each in partitions}
        found = self.lookup(MetadataPartition.FILES.value, list(wanted))
        return {
            partition: [
                FileStatus(f"{partition}/{name}" if partition else name, info["size"], 0, False)
                for name, info in sorted(_files(found.get(key, {})).items())
                if not info["isDeleted"]
            ]
            for key, partition in wanted.items()
        }

    def _merged(
        self,
        partition: str,
        file_slice: FileSlice,
        select: _Select,
    ) -> _Merged:
        """Read the records of a slice that are selected."""
        merged = _Merged(_kind(partition))
        if file_slice.base_file is not None:
            with self.storage.open_input(file_slice.base_file.path) as file:
                merged.add(_opened(file), select)
        for block in self.blocks(file_slice):
            merged.add_block(block, select)
        return merged

    def blocks(self, file_slice: FileSlice) -> list[LogBlock]:
        """Return the log blocks of a slice that count, the oldest first."""
        found: list[LogBlock] = []
        for log in file_slice.log_files:
            for block in read_blocks(self.storage.read(log.path)):
                if block.is_rollback:
                    found = [each for each in found if each.instant_time != block.target_instant_time]
                elif block.kind is not BlockType.CORRUPT and self.is_valid(block.instant_time):
                    found.append(block)
        return found


def has_records(block: LogBlock) -> bool:
    """Return whether a block of a log has a record or a deleted key; the first log of a file group has none."""
    return block.kind is not BlockType.DELETE or next(delete.decode(block.content), None) is not None


def _kind(partition: str) -> MetadataPartition:
    kind = MetadataPartition.of(partition)
    if kind is None:
        known = ", ".join(each.value for each in MetadataPartition)
        raise CorruptTableError(f"the metadata table has a partition {partition!r}; known are {known}")
    return kind


def _schema_of(file: HFile) -> str:
    return file.info.get("schema", b"").decode()


def _by_group(keys: Collection[str], groups: int) -> dict[int, list[str]]:
    """Return the keys by the number of their file group."""
    if not groups:
        return {}
    texts = list(dict.fromkeys(keys))
    found: dict[int, list[str]] = {}
    for key, number in zip(texts, groups_of(pa.array(texts, pa.string()), groups), strict=True):
        found.setdefault(int(number), []).append(key)
    return found


def _cells_with(prefixes: list[bytes], file: HFile) -> Iterable[tuple[bytes, bytes]]:
    return (cell for prefix in prefixes for cell in file.with_prefix(prefix))


def _opened(file: pa.NativeFile) -> HFile:
    return HFile(lambda start, size: file.read_at(size, start), file.size())


def _add_file(found: dict[str, FileGroup], partition: str, status: FileStatus) -> None:
    base = parse_base_file(status.path, partition, status)
    log = None if base is not None else parse_log_file(status.path, partition, status)
    if base is not None:
        found.setdefault(base.file_id, FileGroup(partition, base.file_id)).base_files.append(base)
    elif log is not None:
        found.setdefault(log.file_id, FileGroup(partition, log.file_id)).log_files.append(log)


def _longest(files: list[BaseFile]) -> BaseFile:
    """Choose among base files of one instant, of which all but one are left by attempts that failed."""
    return max(files, key=lambda each: (each.size, each.write_token))


def _files(record: Record) -> Mapping[str, Record]:
    return record.get("filesystemMetadata") or {}


class _Merged:
    """Records of one slice while its files are read, from the base file to the newest log."""

    def __init__(self, kind: MetadataPartition) -> None:
        self._kind = kind
        self._found: dict[bytes, _Value | Record] = {}
        self.deleted: set[bytes] = set()

    @property
    def merges(self) -> bool:
        """Whether two records of a key make a third one; else the newer one counts."""
        return self._kind in (MetadataPartition.FILES, MetadataPartition.PARTITION_STATS)

    def add(self, file: HFile, select: _Select) -> None:
        """Merge the cells of one file that are selected."""
        schema = _schema_of(file)
        for key, value in select(file):
            older = self._found.get(key) if self.merges else None
            if older is None:
                self._found[key] = (value, schema)
                continue
            self._found[key] = merge_records(self._kind, _record(older), decode_record(value, schema))

    def add_block(self, block: LogBlock, select: _Select) -> None:
        """Merge a block of a log."""
        if block.kind is BlockType.HFILE_DATA:
            self.add(HFile.of_bytes(block.content), select)
        elif block.kind is BlockType.DELETE:
            for each in delete.decode(block.content):
                key = each.record_key.encode()
                self._found.pop(key, None)
                self.deleted.add(key)

    def result(self) -> dict[str, Record]:
        """Return the records by key, without those that only mark something as deleted."""
        found = {key.decode("utf-8", "replace"): _record(value) for key, value in self._found.items()}
        if self._kind in (MetadataPartition.FILES, MetadataPartition.RECORD_INDEX):
            return found  # they have no marks
        return {key: record for key, record in found.items() if not _is_deleted(record)}

    def encoded(self, schema: str) -> dict[bytes, bytes]:
        """Return the bytes of the records, written with a schema; most have it already."""
        return {
            key: value[0]
            if isinstance(value, tuple) and value[1] == schema
            else encode_record(_record(value), schema)
            for key, value in self._found.items()
        }


def _record(value: _Value | Record) -> Record:
    return decode_record(*value) if isinstance(value, tuple) else value


_MEMBERS = ("BloomFilterMetadata", "ColumnStatsMetadata", "SecondaryIndexMetadata")


def _is_deleted(record: Record) -> bool:
    return any((record.get(member) or {}).get("isDeleted") for member in _MEMBERS)
