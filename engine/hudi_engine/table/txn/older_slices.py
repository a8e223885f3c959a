"""The slices that a write was built upon: whether they are there to go back to."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.listing import list_partition_files
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.timeline.active import FileGroupKey, Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.newest_first import newest_first

logger = logging.getLogger(__name__)

Slice = tuple[str, str]
"""(file id, base instant)."""


def slices_in(storage: Storage, partition: str) -> dict[Slice, bool]:
    """Return the slices in a folder, committed or not, each with whether its base file is there."""
    return _slices_of(list_partition_files(storage, partition), partition)


def _slices_of(files: Iterable[FileStatus], partition: str) -> dict[Slice, bool]:
    found: dict[Slice, bool] = {}
    for status in files:
        base = parse_base_file(status.name, partition, status)
        log = parse_log_file(status.name, partition, status)
        if base is not None:
            found[base.file_id, base.instant] = True
        elif log is not None:
            found.setdefault((log.file_id, log.instant), False)
    return found


def is_lost(timeline: Timeline, partition: str, slices: Mapping[Slice, bool], wanted: Slice) -> bool:
    """Return whether a slice is not there, or nothing of it but logs though its commit wrote a base file."""
    if wanted not in slices:
        return True
    if slices[wanted]:
        return False
    file_id, instant = wanted
    metadata = _metadata_at(timeline, instant)
    stats = metadata.partition_to_write_stats.get(partition, ()) if metadata is not None else ()
    return any(each.file_id == file_id and not each.is_log_file and each.has_content for each in stats)


def lost_group(
    storage: Storage, timeline: Timeline, before: str, replaced: Mapping[str, Sequence[str]]
) -> FileGroupKey | None:
    """Return a file group that is not there as it was when a write took it out, None when all are.

    A clean takes replaced groups whole, but for what a savepoint keeps, which may be an older slice than the newest.

    Args:
        before: Requested time of the write that took them out.

    Raises:
        CorruptTableError: A write that may have made such a group cannot be read, and a clean came since they were taken out.
    """
    groups = {(partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids}
    listed = {partition: list(list_partition_files(storage, partition)) for partition in replaced}
    names = {(partition, each.name) for partition, statuses in listed.items() for each in statuses}
    there = {(each, file_id) for each, files in listed.items() for file_id, _ in _slices_of(files, each)}
    lost = groups - there
    if lost:
        return min(lost)
    try:
        newest = list(_newest_files(timeline, before, groups))
    except CorruptTableError as error:
        if any(each.action == "clean" and each.requested_time > before for each in timeline.instants):
            raise
        logger.warning("no clean came after %s, so all that it took out is there: %s", before, error)
        return None
    return min((key for key, name in newest if (key[0], name) not in names), default=None)


def _newest_files(
    timeline: Timeline, before: str, groups: set[FileGroupKey]
) -> Iterator[tuple[FileGroupKey, str]]:
    """Yield the files of the newest slices of file groups; of those that no write names any more there are none."""
    left = set(groups)
    for instant, metadata in newest_first(timeline, attrgetter("requested_time"), before) if left else ():
        if instant.requested_time == before:
            continue
        for partition, stat in metadata.write_stats():
            key = (partition, str(stat.file_id))
            if key not in groups:
                continue
            base = parse_base_file(stat.file_name, partition)
            log = parse_log_file(stat.file_name, partition) if stat.has_content else None
            # a base file of which all rows were deleted tells of no rows, and is the newest one
            is_own = base is not None and base.instant == instant.requested_time
            if key in left and (is_own or (log is not None and not log.is_cdc)):
                yield key, stat.file_name
            if is_own:
                left.discard(key)
        if not left:
            return


def _metadata_at(timeline: Timeline, instant: str) -> CommitMetadata | None:
    """Return what a write on the timeline or in the archive wrote; None when there is none that can be read."""
    is_active = any(each.requested_time == instant for each in timeline.completed_writes)
    source = timeline if is_active else timeline.archived
    try:
        for write in source.completed_writes:
            if write.requested_time == instant:
                return source.commit_metadata(write)
    except (CorruptTableError, TimelineError):
        pass
    return None
