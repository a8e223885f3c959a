"""Which writes lie between two states of a table.

Writes are ordered by completion time where the timeline keeps it (layout 2), else by requested time (Hudi table
format, incremental queries).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple, TypeVar

import pyarrow as pa

from hudi_engine.errors import TimelineError, UnsupportedTableError
from hudi_engine.format.schema.meta_fields import OPERATION, without_meta_columns
from hudi_engine.format.timeline.active import CommittedInstants, Timeline
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.format.timeline.moments import Moment, digits_of
from hudi_engine.table.inspect.as_of import check_not_gone
from hudi_engine.table.state import TableState

_Given = TypeVar("_Given", bound=Moment)

EARLIEST = "earliest"
"""Hudi's word for the beginning, for a start (Apache Hudi, incremental queries)."""


CHANGE_TYPE, COMMITTED, STEP = "_change_type", "_commit_time", "__hudi_step"
"""Columns that follow those of the table; the last one is internal."""

INSERT, BEFORE, AFTER, DELETE = CHANGE_TYPES = ("insert", "update_before", "update_after", "delete")
NET, ALL, LATEST = MODES = ("net", "all", "latest")


class Span(NamedTuple):
    """The time between two moments: ``start`` excluded, None for the beginning; ``end`` included, None for now."""

    start: Moment | None = None
    end: Moment | None = None


def start_of(given: _Given | None) -> _Given | None:
    """Return a start as it is meant: ``earliest`` is the beginning, which is None."""
    is_word = isinstance(given, str) and given.strip().lower() == EARLIEST
    return None if is_word else given


@dataclass(frozen=True)
class Point:
    """A state of a table: the writes that are in it, and the greatest requested time of them, None without one; picklable."""

    visible: CommittedInstants
    newest: str | None


@dataclass(frozen=True)
class Window:
    """The writes after ``start`` up to ``end`` (included, None for now) in order; those of table services are among them."""

    start: str
    end: str | None
    writes: tuple[Instant, ...]


def position_of(state: TableState, moment: Moment) -> str:
    """Return the place of an instant or a moment in the order of the writes; raises TimelineError."""
    digits = digits_of(moment, state.config)
    for instant in state.timeline.completed_writes:
        if instant.requested_time == digits:
            return instant.order
    if state.config.layout_version > 1:
        # archived writes are known by their requested time too
        completed = state.timeline.completion_time(digits)
        return digits if completed is None else max(completed, digits)
    return digits


def write_before(state: TableState, start: Moment) -> str | None:
    """Return the write before a start that is included, after which its window begins; None for the beginning."""
    check_not_gone(state, start, asked="start")
    position = position_of(state, start)
    for writes in (state.timeline.completed_writes, state.timeline.archived.completed_writes):
        earlier = [each for each in writes if each.order < position]
        if earlier:
            return max(earlier, key=attrgetter("order")).requested_time
    return None


def span_of(
    state: TableState, start: Moment | None, end: Moment | None, *, include_start: bool = False
) -> Span:
    """Return the time between two moments as callers give them; raises TimelineError for an included start that is none."""
    begin = start_of(start)
    return Span(write_before(state, begin) if include_start and begin is not None else begin, end)


def check_order(state: TableState, start: Moment, end: Moment | None) -> tuple[str, str | None]:
    """Return the positions of a start and an end; raises TimelineError for invalid ones and an end before the start."""
    begin = position_of(state, start)
    last = None if end is None else position_of(state, end)
    if last is not None and last < begin:
        raise TimelineError(
            f"the changes end at {end!s}, before they start at {start!s}; the start is excluded, the end included"
        )
    return begin, last


def window_of(state: TableState, start: Moment, end: Moment | None) -> Window:
    """Return the writes after ``start`` up to ``end``; raises as `check_order`."""
    begin, last = check_order(state, start, end)
    inside = [
        instant
        for instant in state.timeline.completed_writes
        if instant.order > begin and (last is None or instant.order <= last)
    ]
    return Window(begin, last, tuple(sorted(inside, key=attrgetter("order"))))


def point_at(timeline: Timeline, position: str | None) -> Point:
    """Return the state after the writes up to a position, None for now."""
    if position is None:
        return point_without(timeline, ())
    return point_without(timeline, (each for each in timeline.completed_writes if each.order > position))


def is_before_active(state: TableState, position: str) -> bool:
    """Return whether writes after a position may be archived; savepointed writes are left behind by archiving."""
    first = state.timeline.first_write_time
    return first is None or position < first


def state_at(state: TableState, end: Moment | None) -> Point:
    """Return the state after the writes up to a moment, None for now, also one behind which writes have been archived.

    Raises:
        TimelineError: It is no point in time, or an instant that the table no longer has.
    """
    if end is None:
        return point_at(state.timeline, None)
    check_not_gone(state, end, asked="end")
    position = position_of(state, end)
    point = point_at(state.timeline, position)
    if state.config.layout_version == 1 and not is_before_active(state, position):
        return point
    archived = state.timeline.archived.completed_writes
    later = frozenset(each.requested_time for each in archived if each.order > position)
    inside = {each.requested_time for each in archived if each.order <= position}
    newest = max(inside if point.newest is None else {*inside, point.newest}, default=None)
    return Point(replace(point.visible, pending=point.visible.pending | later), newest)


def point_without(timeline: Timeline, later: Iterable[Instant]) -> Point:
    """Return the state of now as it was without some writes."""
    hidden = frozenset(instant.requested_time for instant in later)
    known = timeline.committed()
    kept = known.completed - hidden
    return Point(replace(known, completed=kept, pending=known.pending | hidden), max(kept, default=None))


def check_names(read_schema: pa.Schema) -> None:
    """Refuse a table whose own columns have the names of columns of changes; raises UnsupportedTableError."""
    own = [name for name in read_schema.names if name.lower() in (CHANGE_TYPE, COMMITTED)]
    if own:
        raise UnsupportedTableError(
            f"the changes of a table with a column {own[0]!r} cannot be read: that is the name of a column of its changes, "
            f"{CHANGE_TYPE} and {COMMITTED}. Rename the column in the table"
        )


def task_schema(read_schema: pa.Schema) -> pa.Schema:
    """Return what `compare_group` gives: meta columns, data columns, the change, and the step's number."""
    text = [pa.field(name, pa.string()) for name in (CHANGE_TYPE, COMMITTED)]
    return pa.schema([*read_schema, *text, pa.field(STEP, pa.int32())])


def change_schema(read_schema: pa.Schema) -> pa.Schema:
    """Return `change_columns` with their types."""
    types = task_schema(read_schema)
    return pa.schema([types.field(name) for name in change_columns(read_schema)])


def change_columns(read_schema: pa.Schema) -> list[str]:
    """Return the columns of changes: those of the table, then what happened and when."""
    names = [field.name for field in without_meta_columns(read_schema) if field.name != OPERATION]
    return [*names, CHANGE_TYPE, COMMITTED]
