"""What happened to a table since an earlier look at its timeline, when that can be proved.

Whoever keeps something between two looks (a published file list, the result of an incremental clean, a
checkpoint) may go on from it only when no instant can have come and been removed in between. Otherwise it starts from
a full listing. :func:`writes_since` is that proof, and the only one.

It depends on three properties of a timeline (Hudi table format, archiving and rollback):

* Archiving takes completed writes away oldest first and leaves savepointed ones behind. So nothing younger than
  the oldest write without a savepoint has been archived, and the newest write never is. An archiver that keeps
  to this may take away as much as it likes: readers that lose their thread list the table.
* Only the newest completed write is ever rolled back, and a restore takes back everything after its target.
* A writer's instant is on the timeline, pending, before it can complete, and later instants have later times.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import COMPLETE_AS_WRITES, Instant

logger = logging.getLogger(__name__)

LOOKS = 5
"""How often a reader looks at a table that changes while it lists it, before it gives up."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Look:
    """What a look at a timeline saw.

    Args:
        writes: Requested times of the completed writes that were on the active timeline.
        pending: Requested times of writes and services that had not completed; None when no one wrote that
            down, and then nothing can be proved.
    """

    writes: frozenset[str]
    pending: frozenset[str] | None

    @classmethod
    def at(cls, timeline: Timeline) -> Look:
        """Return what a timeline shows."""
        return cls(
            frozenset(write.requested_time for write in timeline.completed_writes),
            frozenset(each.requested_time for each in timeline.pending if each.action in COMPLETE_AS_WRITES),
        )


def writes_since(timeline: Timeline, earlier: Look) -> tuple[Instant, ...] | None:
    """Return the writes that completed since an earlier look, or None when that cannot be proved.

    It is proved when

    1. every write that was completed then is so now, on the active timeline or archived: nothing was taken back;
    2. the oldest write without a savepoint was completed then already, so no later one has been archived;
    3. every write that was pending then is still on the timeline, or is younger than that oldest write, so that
       it was rolled back and not completed and archived.
    """
    now = {write.requested_time for write in timeline.completed_writes}
    if earlier.pending is None or not all(timeline.is_committed(time) for time in earlier.writes - now):
        return None
    saved = {savepoint.requested_time for savepoint in timeline.savepoints}
    oldest = min(now - saved, default=None)
    if oldest is None:
        # Archiving may have taken all but savepointed writes, though never the newest: nothing new, or no proof.
        proved = now <= earlier.writes and not earlier.pending - _times(timeline)
    else:
        gone = earlier.pending - _times(timeline)
        proved = oldest in earlier.writes and all(time > oldest for time in gone)
    if not proved:
        return None
    return tuple(write for write in timeline.completed_writes if write.requested_time not in earlier.writes)


def look_until_still(
    storage: Storage, look: Callable[[], tuple[TableConfig, Timeline, Result]], as_of: str | None = None
) -> Result:
    """Return what a reader found that lists a table's files after its timeline; it looks again when files may have been removed."""
    for _ in range(LOOKS):
        config, timeline, found = look()
        if still_shows(storage, config, timeline, as_of):
            return found
        logger.debug("files of %s went while they were listed, looking again", storage.base)
    raise TimelineError(
        f"the table at {storage.base!r} was cleaned, restored or replaced each of the {LOOKS} times that its files were "
        "listed, faster than they can be listed. Read again, and retain more commits or clean less often"
    )


def still_shows(storage: Storage, config: TableConfig, then: Timeline, as_of: str | None = None) -> bool:
    """Return whether no file of the state that a timeline showed can have been deleted since it was loaded.

    It is called after a listing and costs one listing of the timeline, and the body of each clean since.
    """
    return lasts(then, Timeline.load(storage, config), as_of)


def lasts(then: Timeline, now: Timeline, as_of: str | None = None) -> bool:
    """Return what :func:`still_shows` does, by a timeline that was loaded after the reader's listing."""
    known = _times(then)
    fresh = [instant for instant in now.instants if instant.requested_time not in known]
    if any(instant.action == "restore" for instant in fresh):
        return False
    writes = [write.requested_time for write in then.completed_writes]
    if not all(now.is_committed(time) for time in writes):
        return False
    shown = [time for time in writes if as_of is None or time <= as_of]
    if not shown:
        return True
    if now.first_write_time is not None and shown[-1] < now.first_write_time and fresh:
        return False  # archiving went past it, and may have taken the cleans along
    cleans = [instant for instant in fresh if instant.action == "clean"]
    # A clean keeps what stood before its bound, by what had completed then: not what a write below the reader's newest hides.
    completed_late = {each.requested_time for each in then.pending if each.requested_time < max(shown)} & {
        write.requested_time for write in now.completed_writes
    }
    return not cleans or (
        not completed_late and all(now.clean_bound(clean).oldest <= shown[-1] for clean in cleans)
    )


def unseen_log_writers(then: Timeline, now: Timeline) -> list[str]:
    """Return the instants whose log blocks a listing may have met though they do not count for its reader.

    A log is listed whether or not its block's instant is complete. It may have begun, and even be complete, after the reader
    had loaded its timeline; what a rollback took back meanwhile has no other trace than the rollback.
    """
    known = _times(then)
    pending = [each.requested_time for each in then.pending if each.action == "deltacommit"]
    fresh = [
        each.requested_time
        for each in now.instants
        if each.requested_time not in known and each.action in ("deltacommit", "rollback")
    ]
    return [*pending, *fresh]


def _times(timeline: Timeline) -> set[str]:
    return {instant.requested_time for instant in timeline.instants}
