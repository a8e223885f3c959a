"""``.hoodie_partition_metadata``: the file that makes a folder a partition.

Hudi's own readers find partitions by it; rows of a folder without it are silently missing there (Hudi file
layout).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone

from hudi_engine.config.properties import format_properties
from hudi_engine.storage.base import Storage
from hudi_engine.storage.paths import join

PARTITION_METADATA = ".hoodie_partition_metadata"
PARTITION_METADATA_NAMES = frozenset(
    {PARTITION_METADATA, f"{PARTITION_METADATA}.parquet", f"{PARTITION_METADATA}.orc"}
)


def format_partition_metadata(partition: str, instant: str) -> bytes:
    """Return the file's content.

    Args:
        partition: Partition path, ``""`` for a non-partitioned table.
        instant: Instant that creates the partition.
    """
    depth = len(partition.split("/")) if partition else 0
    comment = f"partition metadata\n{datetime.now(timezone.utc):%a %b %d %H:%M:%S UTC %Y}"
    return format_properties({"commitTime": instant, "partitionDepth": str(depth)}, comment)


def ensure_partition_metadata(storage: Storage, partition: str, instant: str) -> None:
    """Create the file unless the partition has it; several tasks may do so at once.

    Args:
        storage: The table's storage.
        partition: Partition path, ``""`` for a non-partitioned table.
        instant: Instant that writes into the partition.
    """
    with suppress(FileExistsError):
        storage.create(join(partition, PARTITION_METADATA), format_partition_metadata(partition, instant))
