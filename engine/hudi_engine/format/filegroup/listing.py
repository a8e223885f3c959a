"""Finding a table's partitions and data files by listing folders, each folder once."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.format.config.properties_file import HOODIE_FOLDER
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.partition_metadata import PARTITION_METADATA_NAMES
from hudi_engine.format.storage.base import FileStatus, Storage

_SKIPPED = frozenset({HOODIE_FOLDER})

PartitionFiles = dict[str, list[FileStatus]]


def list_table_files(storage: Storage, config: TableConfig) -> PartitionFiles:
    """Return the files of every partition, by partition path, from one walk that never enters ``.hoodie``.

    A folder is a partition when it holds partition metadata in one of its formats; a non-partitioned table
    is its base folder.
    """
    folders: PartitionFiles = {}
    partitions = set() if config.is_partitioned else {""}
    for status in storage.list("", recursive=True, skip=_SKIPPED):
        if status.is_dir:
            continue
        folder, _, name = status.path.rpartition("/")
        folders.setdefault(folder, []).append(status)
        if name in PARTITION_METADATA_NAMES:
            partitions.add(folder)
    return {partition: folders.get(partition, []) for partition in sorted(partitions)}


def list_partitions(storage: Storage, config: TableConfig) -> list[str]:
    """Return the partition paths of a table, sorted; ``[""]`` when it is not partitioned."""
    return list(list_table_files(storage, config)) if config.is_partitioned else [""]


def list_partition_files(storage: Storage, partition: str) -> list[FileStatus]:
    """Return the files directly in a partition folder; a missing folder has none."""
    return [status for status in storage.list(partition) if not status.is_dir]


def list_files_of(storage: Storage, partitions: Iterable[str]) -> PartitionFiles:
    """Return the files of the named partitions, by partition path."""
    return {partition: list_partition_files(storage, partition) for partition in sorted(set(partitions))}
