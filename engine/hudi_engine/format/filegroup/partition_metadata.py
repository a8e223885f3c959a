"""``.hoodie_partition_metadata``: the file that makes a folder a partition.

Hudi's own readers find partitions by it; rows of a folder without it are silently missing there (Hudi file
layout).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone

from hudi_engine.errors import DataError
from hudi_engine.format.config.properties import format_properties
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join

PARTITION_METADATA = ".hoodie_partition_metadata"
PARTITION_METADATA_NAMES = frozenset(
    {PARTITION_METADATA, f"{PARTITION_METADATA}.parquet", f"{PARTITION_METADATA}.orc"}
)
_ENCODED = "or give the table hoodie.datasource.write.partitionpath.urlencode=true when it is made"


def format_partition_metadata(partition: str, instant: str) -> bytes:
    """Return the file's content."""
    depth = len(partition.split("/")) if partition else 0
    comment = f"partition metadata\n{datetime.now(timezone.utc):%a %b %d %H:%M:%S UTC %Y}"
    return format_properties({"commitTime": instant, "partitionDepth": str(depth)}, comment)


def ensure_partition_metadata(storage: Storage, partition: str, instant: str) -> None:
    """Create the file unless the partition has it; several tasks may do so at once."""
    with suppress(FileExistsError):
        storage.create(join(partition, PARTITION_METADATA), format_partition_metadata(partition, instant))


def begin_partition(storage: Storage, config: TableConfig, partition: str, instant: str) -> None:
    """Make a folder a partition, unless its name has a colon, or another one lies around or inside of it.

    Of two such partitions other readers show one: Apache Hudi looks no further into a folder that is a partition, and hudi-rs
    takes those that have no folders inside.
    """
    path = join(partition, PARTITION_METADATA)
    if config.url_encode or not partition:
        ensure_partition_metadata(storage, partition, instant)
        return
    if storage.exists(path):
        return
    if ":" in partition:
        raise DataError(
            f"partition {partition!r} has a colon, which is no name of a folder for Hadoop: Apache Hudi could not read the table. "
            f"Write values without colons, {_ENCODED}"
        )
    _refuse_nested(storage, config, partition)
    ensure_partition_metadata(storage, partition, instant)
    try:
        _refuse_nested(storage, config, partition)  # of two tasks at once each sees the other's
    except DataError:
        storage.remove(path)
        storage.delete_empty(partition)  # hudi-rs takes no folder with one inside for a partition
        raise


def _refuse_nested(storage: Storage, config: TableConfig, partition: str) -> None:
    if (other := _nested_with(storage, config, partition)) is not None:
        inner, outer = sorted((partition, other), key=len, reverse=True)
        raise DataError(
            f"partition {inner!r} would lie inside of partition {outer!r}, and other readers of Hudi show the rows of one of them "
            f"only. Write values without slashes, {_ENCODED}"
        )


def _nested_with(storage: Storage, config: TableConfig, partition: str) -> str | None:
    """Return a partition around or inside of another, None where there is none."""
    parts = partition.split("/")
    if len(parts) > len(config.partition_fields):
        for count in range(1, len(parts)):
            around = "/".join(parts[:count])
            if any(storage.exists(join(around, name)) for name in sorted(PARTITION_METADATA_NAMES)):
                return around
    for status in storage.list(partition, recursive=True):
        folder, _, name = status.path.rpartition("/")
        if name in PARTITION_METADATA_NAMES and folder != partition:
            return folder
    return None
