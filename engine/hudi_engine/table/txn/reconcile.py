"""Files of attempts that failed or came late: announced by a marker, not part of what is committed.

A task may be tried twice, and a task may outlive its driver. Each announces a file by a marker before it writes it,
and looks for the inflight file before it gives it its name; between that look and the name anything can happen. So
what was announced is looked at before the commit, after it, and by the next writers as long as an announced file has
not come.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.markers import delete_markers, list_markers, marker_folder
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.table.txn.liveness import Liveness
from hudi_engine.table.txn.rollback_plan import holds_blocks_of

logger = logging.getLogger(__name__)

MARKER_ROOT = ".hoodie/.temp"
_AWAITED_MS = 3_600_000
"""How long a file that was announced is waited for after its instant has ended."""


def delete_unwanted_files(storage: Storage, instant: str, metadata: CommitMetadata) -> list[str]:
    """Delete the data files that a write has announced and does not commit; return their paths.

    Without this, the files of a task that was tried twice would both become visible (Hudi marker mechanism).
    """
    return delete_announced_files(storage, instant, announced_files(storage, instant), metadata.file_paths())


def announced_files(storage: Storage, instant: str) -> list[str]:
    """Return the paths of the data files that an instant has announced."""
    return [path for path, _ in list_markers(storage, instant)]


def settle_markers(
    storage: Storage,
    instant: str,
    gone: Collection[str],
    wanted: Collection[str] | None = None,
    announced: Collection[str] | None = None,
) -> None:
    """Remove the markers of an instant that has ended, unless a file that they announce may come yet.

    Args:
        announced: Its markers when the caller has listed them since the instant ended.
        gone: Paths of files that came, and were deleted.
        wanted: Paths that the instant has committed, which are there; others are deleted first. None deletes nothing.
    """
    if announced is None:
        announced = announced_files(storage, instant)
    late = [] if wanted is None else delete_announced_files(storage, instant, announced, wanted)
    settled = {*gone, *late, *(wanted or ())}
    if all(path in settled or storage.exists(path) for path in announced):
        delete_markers(storage, instant)


def delete_announced_files(
    storage: Storage, instant: str, announced: Iterable[str], wanted: Collection[str]
) -> list[str]:
    """Delete files that an instant has announced, and that hold nothing but its rows; return their paths."""
    gone = []
    for path in announced:
        if path not in wanted and _is_only_of(storage, path, instant) and storage.delete(path):
            logger.info("deleted %s: the attempt that wrote it is not part of %s", path, instant)
            gone.append(path)
    return gone


def sweep_markers(storage: Storage, config: TableConfig, timeline: Timeline, living: Liveness) -> None:
    """Delete what came late of instants that have ended, and markers that nothing is waited for by.

    Args:
        timeline: Its timeline, read under the lock after the rollbacks of dead writers.
    """
    found = [status.name for status in storage.list(MARKER_ROOT) if status.is_dir and status.name.isdigit()]
    ended = set(found) - {instant.requested_time for instant in timeline.pending}
    if not ended:
        return
    # Another program's instant may have begun since the timeline was read.
    timeline = Timeline.load(storage, config)
    for instant in sorted(ended - {each.requested_time for each in timeline.pending}):
        wanted = _wanted(timeline, instant)
        if wanted is not None:
            delete_announced_files(storage, instant, announced_files(storage, instant), wanted)
        _drop_old_markers(storage, instant, living.now_ms)


def _wanted(timeline: Timeline, instant: str) -> Collection[str] | None:
    """Return the files that belong to an instant that has ended; None when that is not known any more."""
    for write in timeline.completed_writes:
        if write.requested_time == instant:
            return timeline.commit_metadata(write).file_paths()
    if not timeline.is_committed(instant):
        return frozenset()
    if instant not in timeline.undone_since():
        return None
    # A compaction whose run was rolled back may have run again, and been archived since.
    stands = any(each.requested_time == instant for each in timeline.archived.completed_writes)
    return None if stands else frozenset()


def _drop_old_markers(storage: Storage, instant: str, now_ms: int) -> None:
    awaited = [path for path, _ in list_markers(storage, instant) if not storage.exists(path)]
    markers = storage.list(marker_folder(instant), recursive=True)
    newest_ms = max((status.modified_ms for status in markers if not status.is_dir), default=0)
    if not awaited or now_ms - newest_ms > _AWAITED_MS:
        delete_markers(storage, instant)


def _is_only_of(storage: Storage, path: str, instant: str) -> bool:
    """Return whether a marked file holds nothing but this write.

    The name of a base file tells. That of a log file may have been taken by another writer between the marker
    and the create, so its blocks are looked at.
    """
    partition, _, name = path.rpartition("/")
    base = parse_base_file(name, partition)
    if base is not None:
        return base.instant == instant
    log = parse_log_file(name, partition)
    if log is None:
        return False
    if log.instant == instant:
        return True
    try:
        return holds_blocks_of(storage.read(path), instant, only=True)
    except FileNotFoundError:
        return False
