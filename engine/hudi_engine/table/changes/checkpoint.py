"""How far a table has consumed its inputs, noted in its own commits, and what there is to consume next.

The note is part of the commit that brought the rows, so a write that dies moves nothing, and a rollback or restore resets it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from operator import attrgetter

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.own_keys import CHECKPOINT
from hudi_engine.format.spelling import shortened
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.changes.gaps import check_timeline
from hudi_engine.table.changes.new_files import check_limits
from hudi_engine.table.changes.window import Window, is_before_active, position_of
from hudi_engine.table.inspect.as_of import check_not_gone
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_conflicts import latest_checkpoint


@dataclass(frozen=True)
class NextWindow:
    """What a reader takes next from a table.

    Args:
        end: Instant up to which it reads, and which it notes; None where there is nothing to read yet (as the end of `changes` None
            means now).
        commits: Commits of the window that may have changed rows.
        hole: The first pending write, before which there is nothing to read; None without one.
    """

    end: str | None
    commits: int
    hole: str | None = None


def read_checkpoint(state: TableState) -> dict[str, str]:
    """Return the instant up to which a table has consumed each of its inputs; raises CorruptTableError for a damaged note."""
    last = latest_checkpoint(state.timeline)
    return {} if last is None else _parsed(last[1], last[0])


def format_checkpoint(checkpoint: dict[str, str]) -> str:
    """Return a checkpoint as it is noted."""
    return json.dumps(checkpoint, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class WindowLimits:
    """How much a reader takes at most at once; None is no limit. One commit is always taken.

    Args:
        max_rows: Rows that they wrote or deleted, by their metadata.
        max_bytes: Bytes of the files that they wrote.

    Raises:
        ConfigError: A limit that is no whole number of at least 1.
    """

    max_commits: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits under which nothing could be read."""
        check_limits(self.__dict__)


LIMIT_NAMES = tuple(each.name for each in fields(WindowLimits))


@dataclass
class _Taken:
    """What a window has so far."""

    end: Instant | None = None
    commits: int = 0
    rows: int = 0
    size: int = 0

    def has_room(self, limits: WindowLimits, metadata: CommitMetadata) -> bool:
        """Return whether another commit is within the limits; the first one always is."""
        rows, size = _rows_of(metadata), _bytes_of(metadata)
        wanted = ((self.commits + 1, limits.max_commits), (self.rows + rows, limits.max_rows))
        return not self.commits or all(
            most is None or found <= most for found, most in (*wanted, (self.size + size, limits.max_bytes))
        )

    def take(self, metadata: CommitMetadata) -> None:
        """Count a commit."""
        self.commits += 1
        self.rows += _rows_of(metadata)
        self.size += _bytes_of(metadata)


def next_window(
    state: TableState,
    since: Moment | None,
    *,
    end: Moment | None = None,
    limits: WindowLimits = WindowLimits(),
) -> NextWindow:
    """Return what to consume after a position: the completed writes up to the first hole.

    Where the timeline keeps no completion times, a pending write may complete behind the newest one, and a reader that had passed
    it would miss it. So the window ends before the first pending write after the position.

    Args:
        since: What was consumed before, None for nothing.
        end: Read no further than this, None for all.
        limits: How much to take at most. Without ``since`` the rows of an early state are the first part, of the earliest
            one that can still be read when that is more.

    Raises:
        TimelineError: An invalid point in time, or an end that the table no longer has.
    """
    if end is not None:
        check_not_gone(state, end, asked="end")
    begin = "" if since is None else position_of(state, since)
    last = None if end is None else position_of(state, end)
    hole = _first_hole(state, begin)
    taken = _Taken()
    for instant in sorted(state.timeline.completed_writes, key=attrgetter("order")):
        place = instant.order
        if place <= begin:
            taken.end = instant
            continue
        if (last is not None and place > last) or (hole is not None and place > hole):
            break
        metadata = state.timeline.commit_metadata(instant)
        if not metadata.is_of_service:
            if not taken.has_room(limits, metadata) and (since is not None or _can_be_first(state, taken)):
                break
            taken.take(metadata)
        taken.end = instant
    if last is not None and is_before_active(state, last):
        found = _archived_window(state, begin, last)
        # a reader that has passed the end stays where it is, as before an end on the active timeline
        return found if found.end or since is None else NextWindow(newest_until(state, since), 0)
    if since is not None and _falls_short(taken, begin) and is_before_active(state, begin):
        # archiving may have left an older saved commit behind, and no reader is to go back to that
        found = NextWindow(newest_until(state, since), 0)
    elif taken.end is not None:
        found = NextWindow(taken.end.requested_time, taken.commits)
    else:
        found = NextWindow(None, 0) if hole is None else _archived_window(state, begin, hole)
    return found if found.end is not None else replace(found, hole=hole)


def newest_until(state: TableState, moment: Moment) -> str | None:
    """Return the newest completed write up to a moment, None for none; raises TimelineError for an invalid point in time."""
    place = position_of(state, moment)
    found = [each for each in state.timeline.completed_writes if each.order <= place]
    if not found or is_before_active(state, place):
        found += [each for each in state.timeline.archived.completed_writes if each.order <= place]
    return max(found, key=attrgetter("order")).requested_time if found else None


def _falls_short(taken: _Taken, begin: str) -> bool:
    return taken.end is None or taken.end.order < begin


def _archived_window(state: TableState, begin: str, last: str) -> NextWindow:
    """Return what lies before the active timeline; reading it shows whether its changes still exist."""
    writes = (*state.timeline.archived.completed_writes, *state.timeline.completed_writes)
    inside = {each.requested_time: each.order for each in writes if begin < each.order <= last}
    return NextWindow(max(inside, key=inside.__getitem__, default=None), len(inside))


def _can_be_first(state: TableState, taken: _Taken) -> bool:
    """Return whether a state can be the first part of a table: a savepoint's rows may be there when the changes since are not."""
    assert taken.end is not None, "a commit was taken"
    name, bound = taken.end.requested_time, state.timeline.cleaned_up_to
    if bound is not None and name < bound.oldest:
        return False
    try:
        state.timeline.check_readable(name)
        check_timeline(state, Window(taken.end.order, None, ()), name)
    except TimelineError:
        return False
    return True


def _rows_of(metadata: CommitMetadata) -> int:
    return sum(
        (stat.num_inserts or 0) + (stat.num_update_writes or 0) + (stat.num_deletes or 0)
        for _, stat in metadata.write_stats()
    )


def _bytes_of(metadata: CommitMetadata) -> int:
    return sum(stat.total_write_bytes or 0 for _, stat in metadata.write_stats())


def _first_hole(state: TableState, begin: str) -> str | None:
    """Return the place of the first write after a position that may complete behind newer ones."""
    if state.config.layout_version > 1:
        return None
    clusterings = set(state.timeline.pending_clustering_file_groups().values())
    return min(
        (
            instant.requested_time
            for instant in state.timeline.pending
            if instant.action in WRITE_ACTIONS
            and instant.requested_time > begin
            and instant.requested_time not in clusterings
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
            f"{CHECKPOINT} of {instant.action} {instant.requested_time} is {shortened(text)!r}; it must be a JSON object of input "
            "relation to instant. Set it again with the operation hudi_checkpoint, or rebuild the table"
        )
    return {str(key): value for key, value in found.items()}
