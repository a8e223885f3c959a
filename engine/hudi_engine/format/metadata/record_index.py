"""Where the record index has keys: partitions and file groups, read without a look at the table's own files."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.metadata.keys import groups_of
from hudi_engine.format.metadata.locations import location_of
from hudi_engine.format.metadata.records import MetadataPartition, Record
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.format.timeline.active import FileGroupKey

_GROUP = re.compile(r"record-index-(?:(?P<partition>.*)-)?(?P<number>\d{4,})-0")


def locations(metadata: MetadataTable, keys: pa.Array) -> Iterator[tuple[str, FileGroupKey]]:
    """Yield the keys that the record index has, each with its partition and file group.

    A partitioned index, which has file groups of its own for each partition of the table, may have a key in several.

    Args:
        keys: Record keys, each once.
    """
    known: dict[int, tuple[Record, FileGroupKey]] = {}
    name = MetadataPartition.RECORD_INDEX.value
    for groups in _index_parts(metadata):
        numbers = groups_of(keys, len(groups))
        for number, group in enumerate(groups):
            wanted = keys.filter(pa.array(numbers == number))
            if not len(wanted):
                continue
            for key, record in metadata.lookup_in(name, group, wanted.to_pylist()).items():
                if id(record) not in known:  # rows that came together share their record
                    known[id(record)] = record, location_of(record)
                yield key, known[id(record)][1]


def _index_parts(metadata: MetadataTable) -> list[list[FileSlice]]:
    """Return the file groups that keys are hashed over: all, or those of each partition of the table."""
    parts: dict[str | None, list[FileSlice]] = {}
    for group in metadata.groups(MetadataPartition.RECORD_INDEX.value):
        named = _GROUP.fullmatch(group.file_id)
        part = parts.setdefault(named["partition"], []) if named else []
        if named is None or int(named["number"]) != len(part):
            raise CorruptTableError(
                f"the record index has a file group {group.file_id!r} that is out of order"
            )
        part.append(group)
    return list(parts.values())
