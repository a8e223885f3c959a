"""Columns that changed within a window so that its rows cannot be compared any more: the window is a gap.

Files know a column by its name. While a dropped column is away, a rewritten file loses its values, and any other file shows them
again once the column is back. A table that was rebuilt in one commit keeps older files, whose values may not be readable in the
current types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import pyarrow as pa

from hudi_engine.errors import HistoryGapError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.format.timeline.active import newest_first
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.format.timeline.moments import Moment, digits_of
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.table.changes.gaps import gap_of_column
from hudi_engine.table.changes.group import Comparison
from hudi_engine.table.changes.window import ALL, Point, window_of
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class _Columns:
    """The table's columns as of a write; ``is_whole`` if it replaced the whole table, so that no older file is left."""

    instant: Instant
    names: frozenset[str]
    is_whole: bool


def check_returned(state: TableState, start: Moment, end: Moment | None, mode: str) -> None:
    """Refuse a window in which a dropped column came back, unless the whole table was replaced since it was dropped.

    Args:
        end: Included; None for now.
        mode: ``all`` compares for each commit, otherwise the states at both ends are compared.

    Raises:
        HistoryGapError: Naming the column, and the commit that brought it back.
    """
    window = window_of(state, start, end)
    if not (window.start and window.writes):
        return
    inside = {each.requested_time for each in window.writes}
    counts = mode == ALL  # else all rows are inserts where nothing is before the start
    last: frozenset[str] = frozenset()
    absent: dict[
        str, str
    ] = {}  # columns of the end that an older write lacks, with the commit that brought them
    found: tuple[str, str] | None = None
    newer, reached = "", False
    # The columns of the table are those of the greatest requested time, whatever completed when.
    for each in _newest_first(state, max(inside)):
        is_before = each.instant.requested_time not in inside
        if is_before and each.instant.order > window.start:
            continue
        last = last or each.names
        found = found or next(((name, absent[name]) for name in sorted(absent.keys() & each.names)), None)
        if not reached:
            for name in last - each.names:
                absent.setdefault(name, newer)
        newer, reached = each.instant.requested_time, reached or is_before
        counts = counts or reached
        if each.is_whole and (reached or mode != ALL):
            counts = True  # rows that were written anew within the window are compared
            break
        if reached and (found or not absent):
            break
    # where columns are found by ids, one of the same name is another column
    if found and counts and load_schema_history(state.storage, state.timeline) is None:
        column, since = found
        lost = (
            f"column {column!r} had been dropped and is back since commit {since}, by which rows that nobody wrote have lost or "
            "regained its values"
        )
        raise gap_of_column(state, digits_of(start, state.config), lost, since)


def _newest_first(state: TableState, last: str) -> Iterator[_Columns]:
    """Yield the columns of writes; a table service may have those from before a write that completed meanwhile."""
    meta = frozenset(meta_fields(operation=True))
    known: dict[str, frozenset[str]] = {}  # most commits have the columns of the one before
    for instant, metadata in newest_first(state.timeline, attrgetter("requested_time"), last):
        text = metadata.schema_json
        if text and not metadata.is_of_service:
            if text not in known:
                known[text] = frozenset(avro_to_arrow(text).names) - meta
            is_whole = metadata.operation_type == WriteOperation.INSERT_OVERWRITE_TABLE
            yield _Columns(instant, known[text], is_whole)


def check_types(
    state: TableState,
    read: ReadContext,
    points: Sequence[tuple[Point, Point, object]],
    units: Sequence[Comparison],
    start: str,
) -> None:
    """Refuse slices of a time when a column had a type that cannot be read as its current one; raises HistoryGapError.

    Args:
        points: State before and state after each step, and its writes.
    """
    if read.schema_history is not None:
        return  # columns are found by their ids, and such a table is never built anew where it is
    needed = {
        point.newest
        for unit in units
        for point, file_slice in zip(points[unit.step][:2], (unit.before, unit.after), strict=True)
        if file_slice is not None and point.newest is not None
    }
    known: set[str | None] = set()
    for newest in sorted(needed):
        text = state.schema_json(newest)
        then = None if text in known else state.data_schema(newest)
        known.add(text)
        for field in then or ():
            place = read.schema.get_field_index(field.name)
            if place >= 0 and not can_change(field.type, read.schema.field(place).type):
                raise _gap(state, read, field, newest, start)


def _gap(state: TableState, read: ReadContext, field: pa.Field, newest: str, start: str) -> HistoryGapError:
    """Return what is said of a column, with the first commit that has its type of now."""
    now = read.schema.field(field.name).type
    later = [each.requested_time for each in state.timeline.completed_writes if each.requested_time > newest]
    since = next((each for each in later if _type_at(state, field.name, each) == now), None)
    by = "" if since is None else f" since commit {since}, which built the table anew"
    lost = f"column {field.name!r} was {field.type} and is {now}{by}, and the rows of before cannot be read as that"
    return gap_of_column(state, start, lost, since)


def _type_at(state: TableState, name: str, instant: str) -> pa.DataType | None:
    schema = state.data_schema(instant)
    place = -1 if schema is None else schema.get_field_index(name)
    return None if schema is None or place < 0 else schema.field(place).type
