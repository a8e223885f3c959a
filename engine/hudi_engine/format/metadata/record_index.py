"""Where the record index has keys: partitions and file groups, read without a look at the table's own files."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.keygen.partition_path import escape_partition_value
from hudi_engine.format.metadata.keys import groups_of
from hudi_engine.format.metadata.locations import location_of
from hudi_engine.format.metadata.records import MetadataPartition, Record
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.parallel import run_in_threads
from hudi_engine.format.timeline.active import FileGroupKey

_GROUP = re.compile(r"record-index-(?:(?P<partition>.*)-)?(?P<number>\d{4,})-0")


def index_group(partition: str | None, number: int) -> str:
    """Return the id of a file group of the record index.

    Args:
        partition: The partition of the table that it is of, in a partitioned index; None in a global one.
    """
    part = "" if partition is None else f"{escape_partition_value(partition)}-"
    return f"record-index-{part}{number:04d}-0"


def locations(
    metadata: MetadataTable, keys: pa.Array, partition: str | None = None
) -> Iterator[tuple[str, FileGroupKey]]:
    """Yield the keys that the record index has, each with its partition and file group.

    A partitioned index, which has file groups of its own for each partition of the table, may have a key in several.

    Args:
        keys: Record keys, each once.
        partition: A partition of the table, whose part of a partitioned index alone is asked; None for all of them.
    """
    known: dict[int, tuple[Record, FileGroupKey]] = {}
    name = MetadataPartition.RECORD_INDEX.value
    asked: list[tuple[FileSlice, pa.Array]] = []
    for groups in index_parts(metadata, partition).values():
        numbers = groups_of(keys, len(groups))
        wanted = (keys.filter(pa.array(numbers == number)) for number in range(len(groups)))
        asked += [(group, some) for group, some in zip(groups, wanted, strict=True) if len(some)]
    # most of the time blocks are unzipped, beside which another thread can run
    for found in run_in_threads(lambda each: metadata.lookup_in(name, each[0], each[1].to_pylist()), asked):
        for key, record in found.items():
            if id(record) not in known:  # rows that came together share their record
                known[id(record)] = record, location_of(record)
            yield key, known[id(record)][1]


def index_parts(metadata: MetadataTable, partition: str | None = None) -> dict[str | None, list[FileSlice]]:
    """Return the file groups that keys are hashed over: all, or those of each partition of the table by its escaped path.

    Args:
        partition: A partition of the table, whose part of a partitioned index alone is wanted.
    """
    parts: dict[str | None, list[FileSlice]] = {}
    for group in metadata.groups(MetadataPartition.RECORD_INDEX.value):
        named = _GROUP.fullmatch(group.file_id)
        part = parts.setdefault(named["partition"], []) if named else []
        if named is None or int(named["number"]) != len(part):
            raise CorruptTableError(
                f"the record index has a file group {group.file_id!r} that is out of order"
            )
        part.append(group)
    if partition is None or None in parts:
        return parts
    wanted = escape_partition_value(partition)
    return {wanted: parts[wanted]} if wanted in parts else {}
