"""Files of rolled back instants that appeared after their rollback.

A task of a killed writer can outlive it and publish its file late. Nobody sees the file as long as its
instant is missing on the active timeline. Before the first active write moves past such an instant, when it
would count as committed, its files are looked for and removed: the rollback on the timeline says they go.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.listing import list_partition_files
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import FileSource
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.paths import relative_path
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TakenBack:
    """An instant that a rollback or restore took back.

    Args:
        since_ms: When it was gone, in epoch milliseconds.
    """

    instant: str
    partitions: tuple[str, ...]
    since_ms: int


def remove_strays(state: TableState, first: str, later: str) -> list[str]:
    """Delete the late files of instants that were taken back; return their paths.

    Args:
        first: First active write now: older instants count as committed already.
    """
    gone = []
    for taken in _taken_back(state):
        if not first <= taken.instant < later:
            continue
        for partition in taken.partitions:
            for status in list_partition_files(state.storage, partition):
                if _belongs(state.storage, status, partition, taken):
                    logger.warning("removing %s of %s, which was rolled back", status.path, taken.instant)
                    state.storage.remove(status.path)
                    gone.append(status.path)
    return gone


def _belongs(storage: Storage, status: FileStatus, partition: str, taken: TakenBack) -> bool:
    """Return whether a file is of the instant; the name of a log file does not say whose it is."""
    base = parse_base_file(status.name, partition)
    if base is not None:
        return base.instant == taken.instant
    log = parse_log_file(status.name, partition)
    if log is None or status.modified_ms <= taken.since_ms:
        return False
    with storage.open_input(status.path) as source:
        blocks = [each for each in scan_blocks(FileSource(source)) if each.kind is not BlockType.CORRUPT]
    return bool(blocks) and all(block.header.get(HeaderKey.INSTANT_TIME) == taken.instant for block in blocks)


def _taken_back(state: TableState) -> Iterator[TakenBack]:
    """Tell which instants were rolled back whose own files are gone, and in which partitions they wrote."""
    timeline = state.timeline
    live = {instant.requested_time for instant in timeline.instants if instant.action not in _UNDOING}
    for instant in timeline.completed:
        if instant.action not in _UNDOING:
            continue
        path = f"{state.config.timeline_path}/{instant.file_name}"
        status = state.storage.stat(path)
        for rollback in _rollbacks(instant, timeline.record(instant)):
            partitions = tuple(relative_path(each) for each in rollback.get("partitionMetadata") or {})
            for time in rollback.get("commitsRollback") or ():
                if str(time) not in live:
                    yield TakenBack(str(time), partitions, status.modified_ms if status else 0)


_UNDOING = ("rollback", "restore")


def _rollbacks(instant: Instant, record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if instant.action == "rollback":
        yield record
        return
    for rollbacks in (record.get("hoodieRestoreMetadata") or {}).values():
        yield from (each for each in rollbacks or () if each)
