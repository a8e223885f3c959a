"""What happened to a table since an earlier look at its timeline, when that can be proved.

Whoever keeps something between two looks (a published file list, the result of an incremental clean, a
checkpoint) may go on from it only when no instant can have come and gone in between. Otherwise it starts from
a full listing. :func:`writes_since` is that proof, and the only one.

It stands on three habits of a timeline (Hudi table format, archiving and rollback):

* Archiving takes completed writes away oldest first and leaves savepointed ones behind. So nothing younger than
  the oldest write without a savepoint has been archived, and the newest write never is. An archiver that keeps
  to this may take away as much as it likes: readers that lose their thread list the table.
* Only the newest completed write is ever rolled back, and a restore takes back everything after its target.
* A writer's instant is on the timeline, pending, before it can complete, and later instants have later times.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Instant

_COMPLETE_AS_WRITES = WRITE_ACTIONS | frozenset(COMPLETED_ACTION)


@dataclass(frozen=True)
class Look:
    """What a look at a timeline saw.

    Args:
        writes: Requested times of the completed writes that were on the active timeline.
        pending: Requested times of writes and services that had not completed; None when nobody wrote that
            down, and then nothing can be proved.
    """

    writes: frozenset[str]
    pending: frozenset[str] | None

    @classmethod
    def at(cls, timeline: Timeline) -> Look:
        """Return what a timeline shows."""
        return cls(
            frozenset(write.requested_time for write in timeline.completed_writes),
            frozenset(each.requested_time for each in timeline.pending if each.action in _COMPLETE_AS_WRITES),
        )


def writes_since(timeline: Timeline, earlier: Look) -> tuple[Instant, ...] | None:
    """Return the writes that completed since an earlier look, or None when that cannot be proved.

    It is proved when

    1. every write that was completed then is so now, on the active timeline or archived: nothing was taken back;
    2. the oldest write without a savepoint was completed then already, so no later one has been archived;
    3. every write that was pending then is still on the timeline, or is younger than that oldest write, so that
       it was rolled back and not completed and archived.

    Args:
        timeline: The table's timeline now.
        earlier: What was seen then.
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


def _times(timeline: Timeline) -> set[str]:
    return {instant.requested_time for instant in timeline.instants}
