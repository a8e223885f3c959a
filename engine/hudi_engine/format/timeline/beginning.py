"""Where the history of a table begins, commits that were archived included."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hudi_engine.errors import TimelineError
from hudi_engine.format.timeline.commit_metadata import NO_COMMIT
from hudi_engine.format.timeline.instant import Instant

if TYPE_CHECKING:
    from hudi_engine.format.timeline.active import Timeline


def first_write(timeline: Timeline) -> Instant | None:
    """Return the oldest completed write that the timelines know, None without one; the archive is read for it."""
    known = (*timeline.archived.completed_writes, *timeline.completed_writes)
    return min(known, key=lambda each: each.requested_time, default=None)


def is_before_beginning(timeline: Timeline, as_of: str) -> bool:
    """Tell whether a point in time lies before the first commit a table ever had, when it had no rows.

    Where the archive is lost the oldest commit that is known may not be that: one that changed or replaced files of an earlier
    commit is none to go by, nor one that does not say it.
    """
    first = first_write(timeline)
    if first is None or as_of >= first.requested_time:
        return False
    source = timeline if first in timeline.completed_writes else timeline.archived
    with suppress(TimelineError):
        metadata = source.commit_metadata(first)
        replaced = any((metadata.partition_to_replace_file_ids or {}).values())
        return not replaced and all(stat.prev_commit in NO_COMMIT for _, stat in metadata.write_stats())
    return False
