"""Instants that a table no longer has: those that were taken back, and those of a table whose place a clone has taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.own_keys import CLONE_REPLACED
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant


# An archived write is committed because it is older than the first active one. A savepointed write may lie before archived ones
# (hoodie.archive.beyond.savepoint), and is the first only where no other is left.
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


_UNDOING = ("rollback", "restore")


def names_of(instant: Instant) -> tuple[str, str]:
    """Return the instants by which readers may know a write: the requested one, and where it is in the order of all."""
    return (instant.requested_time, instant.order)


def rolled_back_by(
    timeline: Timeline, name: str, *, is_moment: bool = False, by_archive: bool = True
) -> str | None:
    """Return what took an instant back, or is about to, in the words of an error; None for one that nothing did.

    A compaction or clustering that ran again is a commit all the same. What an archived restore of layout 1 took back is unknown.
    """
    if any(name in names_of(each) for each in timeline.completed_writes):
        return None
    for instant in timeline.completed:
        if instant.action in _UNDOING and instant.requested_time > name:
            try:
                gone = timeline.rolled_back_with(instant)
            except CorruptTableError:
                if is_moment or _stands(timeline, name):
                    continue
                raise
            if name in gone and not _stands(timeline, name):
                return f"that commit was taken back by {instant.action} {instant.requested_time}"
    for instant in timeline.pending:
        if instant.action in _UNDOING and name in _planned_to_go(timeline.begun_plan(instant) or {}):
            return f"that commit is being taken back by {instant.action} {instant.requested_time}, which has not ended"
    first = timeline.first_write_time
    is_old = by_archive and first is not None and name < first
    undone = timeline.archived.undone if is_old else {}
    return (
        f"that commit was taken back by {undone[name]}"
        if name in undone and not _stands(timeline, name)
        else None
    )


def of_a_replaced_table(timeline: Timeline, config: TableConfig, name: str) -> str | None:
    """Return why an instant is none of this table's although its history reaches that far back, None where it may be a moment.

    A clone has the history of its original. No one who read the table whose place it took can have noted an instant of it.
    """
    until = config.properties.get(CLONE_REPLACED, "")
    if name > until or any(
        name in names_of(each) for each in (*timeline.instants, *timeline.archived.instants)
    ):
        return None
    return f"no commit of its timelines is that instant, and up to {until} another table was here, whose place a clone has taken"


def _stands(timeline: Timeline, name: str) -> bool:
    """Return whether an instant that was taken back is a commit all the same: a compaction or clustering that ran again."""
    writes = (*timeline.completed_writes, *timeline.archived.completed_writes)
    return any(name in names_of(each) for each in writes)


def _planned_to_go(plan: Mapping[str, Any]) -> set[str]:
    """Return the instants that the plan of a rollback or of a restore takes back."""
    infos = [plan.get("instantToRollback"), *(plan.get("instantsToRollback") or ())]
    return {str(info["commitTime"]) for info in infos if info}
