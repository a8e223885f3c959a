"""Which file slices hold keys that are in their logs only.

This engine writes new rows into base files, except with a bucket index; Flink, and Hudi's bucket index, insert into logs. The
write stat of the log's commit counts these rows (``numInserts``). Hudi's bucket index counts them as updates, but its file ids
begin with the number of the bucket. A log that no active commit names may hold new keys. On a store that appends, one log may
belong to several commits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.timeline.active import FileGroupKey, Timeline
from hudi_engine.format.timeline.commit_metadata import WriteStat

_BUCKET_DIGITS = 8


@dataclass
class _SoughtLog:
    """A log file whose commits are looked for; ``unexplained`` is how many of its bytes no commit read so far wrote."""

    group: FileGroupKey
    base_instant: str
    unexplained: int
    named: bool = False


def with_log_keys(timeline: Timeline, slices: Iterable[FileSlice]) -> frozenset[FileGroupKey]:
    """Return partition and file id of the latest slices whose logs may hold keys that their base file does not have."""
    logged = [each for each in slices if each.base_file is not None and each.log_files]
    found = {(each.partition, each.file_id) for each in logged if each.file_id[:_BUCKET_DIGITS].isdigit()}
    sought = {
        (each.partition, log.name): _SoughtLog((each.partition, each.file_id), each.base_instant, log.size)
        for each in logged
        for log in each.log_files
        if (each.partition, each.file_id) not in found
    }
    for instant in reversed(timeline.completed_writes):
        if all(instant.requested_time < each.base_instant for each in sought.values()):
            break
        if instant.action != "deltacommit":
            continue
        inserted = _inserted(timeline.commit_metadata(instant).write_stats(), sought)
        if inserted:
            found |= inserted
            sought = {name: each for name, each in sought.items() if each.group not in inserted}
    # Bytes that no active commit wrote may be those of an archived one.
    first = timeline.first_write_time or ""
    return frozenset(
        found | {each.group for each in sought.values() if not each.named or each.base_instant < first}
    )


def _inserted(
    stats: Iterable[tuple[str, WriteStat]], sought: dict[tuple[str, str], _SoughtLog]
) -> set[FileGroupKey]:
    """Take the logs that a commit explains out of ``sought``; return the slices that it does not say to have only changed."""
    counts: dict[FileGroupKey, list[int]] = {}
    for partition, stat in stats:
        name = partition, (stat.path or "").rpartition("/")[2]
        log = sought.get(name)
        if log is None:
            continue
        count = counts.setdefault(log.group, [0, 0])
        count[0] += stat.num_inserts or 0
        count[1] += (stat.num_update_writes or 0) + (stat.num_deletes or 0)
        log.named = True
        log.unexplained -= stat.total_write_bytes or 0
        if log.unexplained <= 0:
            del sought[name]
    return {group for group, (inserted, changed) in counts.items() if inserted or not changed}
