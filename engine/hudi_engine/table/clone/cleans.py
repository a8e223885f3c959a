"""Cleans of the original that stay behind and yet took files of earlier states of the clone.

They are later than the moment that is cloned, or not done yet. Without a word of them a reader of such a state would find
fewer rows and no error. So the clone has one clean in their place, which is done and names no file. It says how far back the
clone is whole in the words of a clean by file versions: after one of those every reader and cleaner looks at all partitions.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import CleanPolicy
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.clean_bound import CleanBound
from hudi_engine.format.timeline.instant import Instant, State, timeline_file_name
from hudi_engine.format.timeline.schemas import CLEAN_METADATA
from hudi_engine.table.clone.content import Content
from hudi_engine.table.services.clean.plan import CleanPlan


def clean_for_others(bound: CleanBound, content: Content, clone: Storage) -> Iterator[tuple[str, bytes]]:
    """Yield paths and bodies of the timeline files of the clean that stands for those which stay behind."""
    plan = CleanPlan(CleanPolicy.KEEP_LATEST_FILE_VERSIONS.value, None, bound.oldest, {}).to_bytes(clone)
    record = {
        "startCleanTime": bound.clean,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": 0,
        "earliestCommitToRetain": "",
        "lastCompletedCommitTimestamp": bound.oldest,
        "partitionMetadata": {},
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {},
    }
    done = encode_avro_file(CLEAN_METADATA, record)
    for state, body in ((State.REQUESTED, plan), (State.INFLIGHT, plan), (State.COMPLETED, done)):
        yield f"{content.state.config.timeline_path}/{timeline_file_name(bound.clean, 'clean', state)}", body


def bound_of_others(content: Content) -> CleanBound | None:
    """Return how far back the cleans that stay behind left the clone whole, None where those that come along say as much.

    The newest write of the clone is whole whatever a later clean took, as its files are here. A clean that is only planned has
    taken nothing.

    Args:
        content: What is cloned, just listed: cleans that it lists may be archived any time.

    Raises:
        CorruptTableError: A clean that stays behind cannot be read.
        TimelineError: A clean has left the original's timeline since it was listed.
    """
    along = {each.requested_time for each in content.instants if each.action == "clean"}
    begun = [
        each
        for each in content.later.instants
        if each.action == "clean" and each.state is not State.REQUESTED
    ]
    behind = [content.later.clean_bound(each) for each in begun if each.requested_time not in along]
    if not behind:
        return None
    others = max(behind)
    oldest = min(others.oldest, content.newest or "")
    known = (_told(content, each) for each in begun if each.requested_time in along)
    return None if oldest <= max(known, default="") else CleanBound(oldest, others.clean)


def _told(content: Content, clean: Instant) -> str:
    """Return how far back a clean that comes along leaves the clone whole; one that is damaged does not say it."""
    try:
        return content.later.clean_bound(clean).oldest
    except CorruptTableError:
        return ""
