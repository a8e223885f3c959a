"""Which file slices hold keys that are in their logs only.

This engine writes new rows into base files (but for the bucket index), so the keys of a base file are those of its slice.
Flink, and Hudi's bucket index, insert into logs. A log says so in the write stat of its commit (``numInserts``); Hudi's
bucket index counts such rows as updates, but names its file groups after the bucket. A log that no active commit names
(archived, or a rollback's) says nothing, so it counts as one that may hold new keys.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.timeline.active import FileGroupKey, Timeline
from hudi_engine.timeline.commit_metadata import WriteStat

_BUCKET_DIGITS = 8


def with_log_keys(timeline: Timeline, slices: Iterable[FileSlice]) -> frozenset[FileGroupKey]:
    """Return partition and file id of the slices whose logs may hold keys that their base file has not.

    Args:
        timeline: The table's timeline.
        slices: Latest slices. Those without a base file or without logs are not looked at.
    """
    logged = [each for each in slices if each.base_file is not None and each.log_files]
    found = {(each.partition, each.file_id) for each in logged if each.file_id[:_BUCKET_DIGITS].isdigit()}
    unknown = {
        (each.partition, log.name): (each.partition, each.file_id)
        for each in logged
        for log in each.log_files
        if (each.partition, each.file_id) not in found
    }
    oldest = min((each.base_instant for each in logged), default="")
    for instant in reversed(timeline.completed_writes):
        if not unknown or instant.requested_time < oldest:
            break
        if instant.action != "deltacommit":
            continue
        found |= _inserted(timeline.commit_metadata(instant).write_stats(), unknown)
    return frozenset(found | set(unknown.values()))


def _inserted(
    stats: Iterable[tuple[str, WriteStat]], unknown: dict[tuple[str, str], FileGroupKey]
) -> set[FileGroupKey]:
    """Take the logs of a commit out of ``unknown``; return the slices that it does not say to have only changed."""
    counts: dict[FileGroupKey, list[int]] = {}
    for partition, stat in stats:
        group = unknown.pop((partition, (stat.path or "").rpartition("/")[2]), None)
        if group is not None:
            count = counts.setdefault(group, [0, 0])
            count[0] += stat.num_inserts or 0
            count[1] += (stat.num_update_writes or 0) + (stat.num_deletes or 0)
    return {group for group, (inserted, changed) in counts.items() if inserted or not changed}
