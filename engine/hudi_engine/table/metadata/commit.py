"""Commits of the metadata table: a deltacommit with the instant of the action on the table, or base files of all groups.

Source: Hudi metadata table format, commit protocol. The caller holds the table's lock, which is the metadata table's too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.hfile.writer import encode_hfile
from hudi_engine.format.logformat.blocks import delete
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.metadata.record_index import index_group, index_parts
from hudi_engine.format.metadata.records import MetadataPartition, plain_schema
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.metadata.written import Changes

TOKEN, _FIRST_TOKEN = "0-1-0", "0-0-0"
DELTACOMMIT = "deltacommit"


@dataclass(frozen=True)
class _Part:
    """What one file group gets."""

    partition: str
    group: FileSlice
    keys: pa.Array
    values: pa.Array
    deleted: pa.Array


def write_deltacommit(
    table: MetadataTable, instant: str, changes: Mapping[str, Changes], schema: str
) -> None:
    """Record the changes of an action in logs.

    Args:
        instant: Instant of the action on the table.
        schema: Avro schema of the records, with the meta columns.
    """
    writer = TimelineWriter(table.storage, table.config)
    writer.create_requested(instant, DELTACOMMIT)
    inflight = CommitMetadata(operation_type=WriteOperation.UPSERT_PREPPED.value)
    writer.to_inflight(instant, DELTACOMMIT, inflight.to_bytes(table.config.table_version))
    parts = [
        part
        for name, each in changes.items()
        for of, some in each.parts()
        for part in _parts(table, name, some, of, instant)
    ]
    stats = on_threads(lambda part: _write_log(table, instant, part, schema), parts)
    metadata = commit_metadata(
        [(part.partition, stat) for part, stat in zip(parts, stats, strict=True)], schema
    )
    writer.complete(instant, DELTACOMMIT, metadata.to_bytes(table.config.table_version))


def commit_metadata(
    stats: Sequence[tuple[str, WriteStat]],
    schema: str,
    operation: WriteOperation = WriteOperation.UPSERT_PREPPED,
    *,
    compacted: bool = False,
) -> CommitMetadata:
    """Return the metadata of a commit of the metadata table; the schema in it has no meta columns."""
    by_partition: dict[str, list[WriteStat]] = {}
    for partition, stat in stats:
        by_partition.setdefault(partition, []).append(stat)
    extra = {"schema": plain_schema(schema)}
    return CommitMetadata(by_partition, extra, operation.value, compacted)


def _parts(
    table: MetadataTable, partition: str, changes: Changes, of: str | None, instant: str
) -> list[_Part]:
    """Return what each file group gets.

    Args:
        of: The partition of the table whose file groups of the index these are; None for all.
    """
    keys, values, deleted = changes.sorted()
    if not len(keys) and not len(deleted):
        return []
    groups = table.groups(partition) if of is None else _groups_of(table, of, instant)
    of_keys, of_deleted = (changes.groups_of(each, len(groups)) for each in (keys, deleted))
    numbers = sorted({*np.unique(of_keys).tolist(), *np.unique(of_deleted).tolist()})
    return [
        _Part(
            partition,
            groups[number],
            keys.filter(pa.array(of_keys == number)),
            values.filter(pa.array(of_keys == number)),
            deleted.filter(pa.array(of_deleted == number)),
        )
        for number in numbers
    ]


def _groups_of(table: MetadataTable, of: str, instant: str) -> list[FileSlice]:
    """Return the file groups that a partitioned record index has for a partition of the table; a new one gets one."""
    for groups in index_parts(table, of).values():
        return groups
    name = MetadataPartition.RECORD_INDEX.value
    begin_groups(table.storage, name, [index_group(of, 0)], instant)
    return [FileSlice(name, index_group(of, 0), instant)]


def begin_groups(storage: Storage, partition: str, file_ids: Sequence[str], instant: str) -> None:
    """Write the first log of file groups of the metadata table, which has no records: their number decides on the place of keys."""
    texts = pa.array([], pa.string())
    empty = encode_block(BlockType.DELETE, [(HeaderKey.INSTANT_TIME, instant)], delete.encode(texts, texts))
    for file_id in file_ids:
        storage.create(join(partition, log_file_name(file_id, instant, 1, _FIRST_TOKEN)), empty)


def _write_log(table: MetadataTable, instant: str, part: _Part, schema: str) -> WriteStat:
    """Write a log with the new records and the deleted keys of one file group."""
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)]
    data = b""
    if len(part.keys):
        data += encode_block(BlockType.HFILE_DATA, header, encode_hfile(part.keys, part.values, schema))
    if len(part.deleted):
        keys = part.deleted.cast(pa.string())
        partitions = pa.repeat(pa.scalar(part.partition), len(keys))
        orders = pa.array(np.zeros(len(keys), np.int32))
        data += encode_block(BlockType.DELETE, header, delete.encode(keys, partitions, [orders]))
    group, of_instant = part.group, instant
    base, known, version = "", list[str](), 1
    if not table.config.table_version.names_logs_by_write:
        of_instant = group.base_instant
        base = "" if group.base_file is None else group.base_file.name
        known = [each.name for each in group.log_files]
        version += max((each.version for each in group.log_files), default=0)
    name = log_file_name(group.file_id, of_instant, version, TOKEN)
    path = join(part.partition, name)
    table.storage.create(path, data)
    return WriteStat(
        file_id=group.file_id,
        path=path,
        prev_commit=of_instant,
        num_writes=len(part.keys),
        num_update_writes=len(part.keys),
        num_deletes=len(part.deleted),
        total_write_bytes=len(data),
        file_size_in_bytes=len(data),
        partition_path=part.partition,
        log_version=version,
        log_offset=0,
        base_file=base,
        log_files=[*known, name],
    )


def write_base_file(
    table: MetadataTable, partition: str, file_id: str, instant: str, content: bytes, records: int
) -> WriteStat:
    """Write the base file of a file group, an HFile with some records."""
    path = join(partition, base_file_name(file_id, TOKEN, instant, "hfile"))
    table.storage.create(path, content)
    return WriteStat(
        file_id=file_id,
        path=path,
        num_writes=records,
        num_inserts=records,
        total_write_bytes=len(content),
        file_size_in_bytes=len(content),
        partition_path=partition,
    )
