"""Archived writes that count by a younger one alone, and stop counting when that leaves the active timeline.

A reader takes an archived write for committed because it is older than the first active one. A savepointed write may stand before
archived ones (``hoodie.archive.beyond.savepoint``), and is the first only where no other is left.
"""

from __future__ import annotations

from hudi_engine.errors import TimelineError
from hudi_engine.format.timeline.active import Timeline


def hidden_writes(whole: Timeline, left: Timeline) -> list[str]:
    """Return the archived writes that count on one timeline and not on another, oldest first.

    The archive is looked at only where the first write that counts is another.
    """
    if whole.first_write_time == left.first_write_time:
        return []
    active = {each.requested_time for each in whole.instants}
    archived = [each.requested_time for each in whole.archived.completed_writes]
    return [
        time
        for time in archived
        if time not in active and whole.is_committed(time) and not left.is_committed(time)
    ]


def check_none_hidden(whole: Timeline, left: Timeline, refused: str) -> None:
    """Refuse to take instants away by which archived writes count."""
    hidden = hidden_writes(whole, left)
    if not hidden:
        return
    newest = hidden[-1]
    saved = [each.requested_time for each in left.savepoints if each.requested_time < newest]
    if left.completed_writes and left.completed_writes[-1].requested_time > newest:
        step = f"Delete the savepoints of commits before it first: {', '.join(saved)}"
    else:
        step = "Take its rows back with a write instead"
    raise TimelineError(
        f"{refused}: rows of archived commits, {newest} the newest of them, would be seen no more, as they count by a "
        f"younger commit on the active timeline. {step}"
    )


def check_saving(whole: Timeline, saved: str) -> None:
    """Refuse to save the last write by which archived ones count: a reader goes by the first that is not saved."""
    held = {each.requested_time for each in whole.savepoints} | {saved}
    active = [each.requested_time for each in whole.completed_writes]
    if any(time not in held for time in active):
        return
    archived = [each.requested_time for each in whole.archived.completed_writes]
    hidden = [
        time for time in archived if time > active[0] and time not in active and whole.is_committed(time)
    ]
    if hidden:
        older = ", ".join(time for time in active if time < hidden[-1])
        raise TimelineError(
            f"{saved} cannot be saved: rows of archived commits, {hidden[-1]} the newest of them, would be seen no more, as no "
            f"other commit without a savepoint is on the active timeline. Write once first, or delete the savepoints of {older}"
        )
