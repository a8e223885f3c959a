"""The slices that a write was built upon: whether they are there to go back to."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.filegroup.base_file import parse_base_file
from hudi_engine.filegroup.listing import list_partition_files
from hudi_engine.filegroup.log_file import parse_log_file
from hudi_engine.storage.base import Storage
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.commit_metadata import CommitMetadata

Slice = tuple[str, str]
"""(file id, base instant)."""


def slices_in(storage: Storage, partition: str) -> dict[Slice, bool]:
    """Return the slices in a folder, committed or not, each with whether its base file is there."""
    found: dict[Slice, bool] = {}
    for status in list_partition_files(storage, partition):
        base = parse_base_file(status.name, partition, status)
        log = parse_log_file(status.name, partition, status)
        if base is not None:
            found[base.file_id, base.instant] = True
        elif log is not None:
            found.setdefault((log.file_id, log.instant), False)
    return found


def is_lost(timeline: Timeline, partition: str, slices: Mapping[Slice, bool], wanted: Slice) -> bool:
    """Return whether a slice is not there, or nothing of it but logs though its commit wrote a base file.

    Args:
        timeline: The table's timeline.
        partition: Partition path.
        slices: What is there, as `slices_in` tells.
        wanted: The slice.
    """
    if wanted not in slices:
        return True
    if slices[wanted]:
        return False
    file_id, instant = wanted
    metadata = _metadata_at(timeline, instant)
    stats = metadata.partition_to_write_stats.get(partition, ()) if metadata is not None else ()
    return any(each.file_id == file_id and not each.is_log_file and each.has_content for each in stats)


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
