"""Files of attempts that failed or were overtaken: announced by a marker, not part of what is committed."""

from __future__ import annotations

import logging

from hudi_engine.filegroup.base_file import parse_base_file
from hudi_engine.filegroup.log_file import parse_log_file
from hudi_engine.filegroup.markers import list_markers
from hudi_engine.storage.base import Storage
from hudi_engine.timeline.commit_metadata import CommitMetadata
from hudi_engine.txn.rollback_plan import holds_blocks_of

logger = logging.getLogger(__name__)


def delete_unwanted_files(storage: Storage, instant: str, metadata: CommitMetadata) -> list[str]:
    """Delete the data files that a write has announced and does not commit; return their paths.

    Without this, the files of a task that was tried twice would both become visible (Hudi marker mechanism).

    Args:
        instant: Instant of the write.
        metadata: What it is about to commit.
    """
    wanted = {stat.path for _, stat in metadata.write_stats()}
    gone = []
    for path, _ in list_markers(storage, instant):
        if path not in wanted and _is_only_of(storage, path, instant) and storage.delete(path):
            logger.info("deleted %s: the attempt that wrote it is not part of %s", path, instant)
            gone.append(path)
    return gone


def _is_only_of(storage: Storage, path: str, instant: str) -> bool:
    """Return whether a marked file holds nothing but this write.

    The name of a base file tells. That of a log file may have been taken by another writer between the marker
    and the create, so its blocks are looked at.
    """
    partition, _, name = path.rpartition("/")
    base = parse_base_file(name, partition)
    if base is not None:
        return base.instant == instant
    if parse_log_file(name, partition) is None:
        return False
    try:
        return holds_blocks_of(storage.read(path), instant, only=True)
    except FileNotFoundError:
        return False
