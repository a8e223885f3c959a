"""How far a table has consumed its inputs, noted in its own commits, and what there is to consume next.

Since the note is part of the commit that brought the rows, a write that dies moves nothing, and a rollback or restore of
the table takes it back to what it had consumed then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_engine.changes.window import Moment, moves_rows, order_of, position_of
from hudi_engine.config.other_keys import CHECKPOINT
from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.table_state import TableState
from hudi_engine.timeline.archived import ArchivedTimeline
from hudi_engine.timeline.instant import WRITE_ACTIONS, Instant


@dataclass(frozen=True)
class NextWindow:
    """What a reader takes next from a table.

    Args:
        end: Instant up to which it reads, and which it notes; None for a table without commits.
        commits: Commits of the window that may have changed rows.
    """

    end: str | None
    commits: int


def read_checkpoint(state: TableState) -> dict[str, str]:
    """Return the instant up to which a table has consumed each of its inputs.

    It is in the newest completed write that has one; other writers do not carry it on.

    Raises:
        CorruptTableError: The note is no JSON object of texts.
    """
    for instant in sorted(state.timeline.completed_writes, key=order_of, reverse=True):
        text = state.timeline.commit_metadata(instant).extra_metadata.get(CHECKPOINT)
        if text is not None:
            return _parsed(text, instant)
    archived = ArchivedTimeline.load(state.storage, state.config)
    for instant in reversed(archived.instants):
        if instant.action in WRITE_ACTIONS and instant.is_completed:
            try:
                text = archived.commit_metadata(instant).extra_metadata.get(CHECKPOINT)
            except TimelineError:
                continue
            if text is not None:
                return _parsed(text, instant)
    return {}


def format_checkpoint(checkpoint: dict[str, str]) -> str:
    """Return a checkpoint as it is noted."""
    return json.dumps(checkpoint, sort_keys=True, separators=(",", ":"))


def next_window(
    state: TableState, since: Moment | None, *, end: Moment | None = None, max_commits: int | None = None
) -> NextWindow:
    """Return what to consume after a position: the completed writes up to the first hole.

    Where the timeline keeps no completion times, a write that is under way may complete behind the newest one, and a reader
    that had passed it would miss it. So the window ends before the first write that is pending.

    Args:
        state: The table.
        since: What was consumed before, None for nothing.
        end: Read no further than this, None for all.
        max_commits: Take at most so many commits that may have changed rows, None for all; without ``since`` all are taken.

    Raises:
        TimelineError: A point in time that is none.
    """
    begin = "" if since is None else position_of(state, since)
    last = None if end is None else position_of(state, end)
    hole = _first_hole(state)
    taken: Instant | None = None
    count = 0
    for instant in sorted(state.timeline.completed_writes, key=order_of):
        place = order_of(instant)
        if place <= begin:
            taken = instant
            continue
        if (last is not None and place > last) or (hole is not None and place > hole):
            break
        moves = moves_rows(state.timeline.commit_metadata(instant))
        if moves and since is not None and max_commits is not None and count == max_commits:
            break
        taken, count = instant, count + moves
    return NextWindow(None if taken is None else taken.requested_time, count)


def _first_hole(state: TableState) -> str | None:
    if state.config.layout_version > 1:
        return None
    clusterings = set(state.timeline.pending_clustering_file_groups().values())
    return min(
        (
            instant.requested_time
            for instant in state.timeline.pending
            if instant.action in WRITE_ACTIONS and instant.requested_time not in clusterings
        ),
        default=None,
    )


def _parsed(text: str, instant: Instant) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise CorruptTableError(
            f"{CHECKPOINT} of {instant.action} {instant.requested_time} is {text!r}; it must be a JSON object of input relation "
            "to instant. Set it anew with the operation hudi_checkpoint, or rebuild the table"
        )
    return {str(key): value for key, value in found.items()}
