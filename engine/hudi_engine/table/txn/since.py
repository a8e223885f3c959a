"""What has completed since a timeline was read, those among them that were archived meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant


def committed_since(base: Timeline, current: Timeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield the writes that completed after ``base`` was read, with what they wrote.

    Archiving takes the oldest writes, so one that completed and was archived since then has taken with it something
    that ``base`` shows; only then the archive is read.
    """
    known = {(done.requested_time, done.action) for done in base.completed_writes}
    if _archived_meanwhile(base, current):
        oldest = min(
            (each.requested_time for each in base.instants if each.action in WRITE_ACTIONS), default=""
        )
        for done in current.archived.instants:
            if done.action in WRITE_ACTIONS and done.is_completed and done.requested_time >= oldest:
                if (done.requested_time, done.action) not in known:
                    yield done, current.archived.commit_metadata(done)
    for done in current.completed_writes:
        if (done.requested_time, done.action) not in known:
            yield done, current.commit_metadata(done)


def _archived_meanwhile(base: Timeline, current: Timeline) -> bool:
    now = {each.requested_time for each in current.instants}
    saved = {each.requested_time for each in base.savepoints}
    shown = {each.requested_time for each in base.instants if each.action in WRITE_ACTIONS} - saved
    return bool(shown - now) if shown else bool(current.completed_writes)
