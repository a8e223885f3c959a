"""Whether the files of the table as of a restore's target are all there: looked at before anything goes.

Cleans on the timeline are one witness (:func:`~hudi_engine.table.txn.savepoint.check_not_cleaned`). They can be archived,
and files can be lost in other ways, so the writes that a restore takes back are asked too: each says which slice
it built upon, and the oldest of them names the slice that the table had at the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.listing import list_partition_files
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.format.timeline.commit_metadata import NO_COMMIT, CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.table.txn.older_slices import is_lost, slices_in
from hudi_engine.table.txn.rollback import readable_metadata
from hudi_engine.table.txn.savepoint import Savepoint


def check_saved_state(storage: Storage, config: TableConfig, savepoint: Savepoint) -> None:
    """Refuse to go back to a savepoint whose files are not all there, or past writes that were archived.

    Raises:
        TimelineError: a saved file is missing, or a write after the savepoint is archived, so that a restore
            could not take it back and its rows would come back later.
    """
    for partition, names in savepoint.files.items():
        there = {status.name for status in list_partition_files(storage, partition)}
        missing = sorted(set(names) - there)
        if missing:
            raise TimelineError(
                f"the table at {storage.base!r} cannot be restored to savepoint {savepoint.instant}: its file "
                f"{missing[0]!r} in partition {partition!r} is gone. Nothing was changed"
            )
    archived = [
        instant.requested_time
        for instant in ArchivedTimeline.load(storage, config).instants
        if instant.action in WRITE_ACTIONS and instant.requested_time > savepoint.instant
    ]
    if archived:
        raise TimelineError(
            f"the table at {storage.base!r} cannot be restored to savepoint {savepoint.instant}: write "
            f"{archived[0]} after it has been archived (hoodie.archive.beyond.savepoint), so it cannot be taken "
            "back. Nothing was changed; rewrite the table from its source instead"
        )


def check_slices_remain(storage: Storage, timeline: Timeline, target: str, later: Iterable[Instant]) -> None:
    """Refuse a restore that would leave a file group without the slice it had at the target.

    Raises:
        TimelineError: naming the first file group whose slice is gone.
    """
    slices = cache(partial(slices_in, storage))
    writes = [each for each in later if each.is_completed and each.action in WRITE_ACTIONS]
    read = {write.requested_time: readable_metadata(timeline, write) for write in writes}
    bodies = {time: metadata for time, metadata in read.items() if metadata is not None}
    for time, metadata in bodies.items():
        for partition, stat in metadata.write_stats():
            slice_ = (str(stat.file_id), str(stat.prev_commit))
            if stat.prev_commit in NO_COMMIT or slice_[1] > target:
                continue
            if is_lost(timeline, partition, slices(partition), slice_):
                raise _gone(storage, target, time, partition, slice_[0])
    born = _born_later(bodies)
    for time, metadata in bodies.items():
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            kept = {file_id for file_id, instant in slices(partition) if instant <= target}
            lost = [each for each in file_ids if each not in kept and (partition, each) not in born]
            if lost:
                raise _gone(storage, target, time, partition, lost[0])


def _born_later(bodies: Mapping[str, CommitMetadata]) -> set[tuple[str, str]]:
    """Return file groups that writes after the target began, which are to go as a whole."""
    return {
        (partition, str(stat.file_id))
        for time, metadata in bodies.items()
        for partition, stat in metadata.write_stats()
        if stat.prev_commit in (*NO_COMMIT, time)
    }


def _gone(storage: Storage, target: str, time: str, partition: str, file_id: str) -> TimelineError:
    return TimelineError(
        f"the table at {storage.base!r} cannot be restored to {target}: file group {file_id!r} in partition "
        f"{partition!r}, which {time} changed, has lost the slice it had then to a clean. Nothing was changed; "
        "choose a later commit, or rewrite the table from its source"
    )
