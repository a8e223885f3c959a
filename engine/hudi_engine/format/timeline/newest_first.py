"""The writes of a table from the newest back, those that left the active timeline too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from hudi_engine.errors import TimelineError
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import Instant

if TYPE_CHECKING:
    from hudi_engine.format.timeline.active import Timeline


def newest_first(
    timeline: Timeline, place: Callable[[Instant], str], as_of: str | None = None
) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield writes with what they say; those that savepoints hold back from archiving have their place among the archived.

    Each is read when its turn comes, and the archive when the active ones are through.

    Args:
        as_of: Newest requested time that counts, None for now.

    Raises:
        CorruptTableError: A write on the way cannot be read.
    """
    first = timeline.first_write_time or ""
    writes = [each for each in timeline.completed_writes if as_of is None or each.requested_time <= as_of]
    held = [each for each in writes if each.requested_time < first]
    recent = [each for each in writes if each.requested_time >= first]
    for instant in sorted(recent, key=place, reverse=True):
        yield instant, timeline.commit_metadata(instant)
    archived = [
        each for each in timeline.archived.completed_writes if as_of is None or each.requested_time <= as_of
    ]
    for instant in sorted([*held, *archived], key=place, reverse=True):
        # another writer may have archived it without what it says
        with suppress(TimelineError):
            yield instant, (timeline if instant in held else timeline.archived).commit_metadata(instant)
