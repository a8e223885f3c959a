"""Proof that the changes of a window can still be read in full.

A window needs its writes on the active timeline, a start that was never undone, and the files of every touched file group as
they were before. What is missing is an error: changes are never skipped silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pyarrow as pa

from hudi_engine.errors import HistoryGapError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.format.timeline.active import FileGroupKey, Timeline, newest_first
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.format.timeline.moments import Moment, digits_of
from hudi_engine.format.timeline.rolled_back import names_of, of_a_replaced_table, rolled_back_by
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.table.changes.group import Comparison
from hudi_engine.table.changes.touched import StatesOfGroups, Step
from hudi_engine.table.changes.window import ALL, Point, Window, point_at, window_of
from hudi_engine.table.inspect.as_of import A_MOMENT
from hudi_engine.table.services.clean.plan import planned_files
from hudi_engine.table.state import TableState

_INSTANT = re.compile(r"\d{14}|\d{17}")
_OF_NOW = re.compile(r"\d{17}")
_CHOICES = "Choose on_gap='snapshot' to take all rows as inserts, or start at a state the table still has"
_FROM_THERE = "Choose on_gap='snapshot' to take all rows as inserts, or start at that commit or a later one"
KEEPING = (
    "Retain more commits (hoodie.clean.commits.retained, hoodie.keep.min.commits), or register the reader with "
    "HudiTable.register_consumer, so that it can be away longer"
)
"""Advice where clean or archive took what a window needs; a table keeps nothing of what was taken back for longer."""


def check_timeline(state: TableState, window: Window, start: str) -> None:
    """Refuse a start before archived commits, and one before a history whose beginning is lost; raises HistoryGapError."""
    first = state.timeline.first_write_time
    if first is None or (state.config.layout_version == 1 and window.start >= first):
        return
    writes = state.timeline.archived.completed_writes
    passed = [each.order for each in writes if each.order > window.start]
    if passed:
        raise _gap(state, start, f"{len(passed)} commits up to {max(passed)} were archived since", KEEPING)
    if not writes and window.start < min(each.order for each in state.timeline.completed_writes):
        _check_begins_empty(state, window, start)


def _check_begins_empty(state: TableState, window: Window, start: str) -> None:
    """Refuse a start before the first commit that is known when there are files of earlier ones."""
    found = StatesOfGroups(state).live_slices(point_at(state.timeline, window.start))
    if found:
        raise _gap(
            state, start, f"commit {found[0].base_instant} wrote rows that are there, and no timeline has it"
        )


def check_start(state: TableState, start: Moment) -> None:
    """Refuse a start that is an instant, but none of this table's: undone, or of a table that was here before.

    A moment that is no instant is any moment. So is one in an instant's digits, unless it lies before the whole history, where
    no reader of this table could have noted it.

    Raises:
        HistoryGapError: It was undone, or lies before all that the timelines know.
        TimelineError: It is no point in time.
    """
    digits = digits_of(start, state.config)
    is_instant = isinstance(start, str) and _INSTANT.fullmatch(start.strip()) is not None
    _check_not_undone(state, digits, is_moment=not is_instant)
    if is_instant:
        _check_not_foreign(state, digits)


def _check_not_foreign(state: TableState, start: str) -> None:
    """Refuse the digits of an instant of another table, which was here before, and what a restore may have taken back."""
    active, as_moment = state.timeline.instants, f"A moment is written as {A_MOMENT}, or is a datetime"
    other = of_a_replaced_table(state.timeline, state.config, start)
    if other is not None:
        raise _gap(state, start, f"{other}. {as_moment}")
    if active and start >= active[0].requested_time:
        return
    archived = state.timeline.archived.instants
    if start in {name for each in archived for name in names_of(each)}:
        return
    known = [each.requested_time for each in (*archived, *active)]
    if not known or start < min(known):
        since = (
            f"is older than all of them, the first of which is {min(known)}" if known else "there are none"
        )
        raise _gap(
            state,
            start,
            f"no commit of its timelines is that instant, and it {since}: the table was rebuilt. {as_moment}",
        )
    restores = [each.requested_time for each in archived if each.action == "restore"]
    if state.config.layout_version == 1 and any(each > start for each in restores):
        # what a restore took back is not in the archive of this layout
        raise _gap(
            state,
            start,
            f"no commit of its timelines is that instant: restore {max(restores)} may have taken it back. {as_moment}",
        )


def check_since(state: TableState, since: Moment) -> None:
    """Refuse what a reader has noted that this table no longer has: an instant must be one of its own; raises as `check_start`."""
    if isinstance(since, str) and _OF_NOW.fullmatch(since.strip()):
        check_known(state, since.strip())
    else:
        check_start(state, since)


def check_known(state: TableState, start: str) -> None:
    """Refuse a noted instant that neither timeline knows, or that was undone; raises HistoryGapError."""
    _check_not_undone(state, start)
    known = {each for instant in state.timeline.completed_writes for each in names_of(instant)}
    if start in known:
        return
    archived = state.timeline.archived
    if start not in {each for instant in archived.instants for each in names_of(instant)}:
        raise _gap(
            state,
            start,
            "no commit of its timeline is that instant: it was rolled back, or the table was rebuilt",
        )


def _check_not_undone(state: TableState, start: str, *, is_moment: bool = False) -> None:
    """Refuse an instant that a rollback or restore took back, and one that has gone while one of them has not ended."""
    why = rolled_back_by(state.timeline, start, is_moment=is_moment)
    if why is not None:
        raise _gap(state, start, why)


class CleanedFiles:
    """What the cleans after a position deleted, and what pending ones are about to.

    Args:
        window: The window, whose start is the position.
        start: The start in the digits of the timeline, for messages.
    """

    def __init__(self, state: TableState, window: Window, start: str) -> None:
        self.start = start
        self._state, self._position = state, window.start
        self._newest: dict[FileGroupKey, list[str]] = {}
        self._known: set[Instant] = set()
        self._add(state.timeline)

    def look_again(self) -> None:
        """Add the cleans that have begun since; call it after listing the files, as a clean plans before it deletes."""
        self._add(Timeline.load(self._state.storage, self._state.config))

    def _add(self, timeline: Timeline) -> None:
        for instant in timeline.instants:
            if (
                instant.action == "clean"
                and instant.requested_time > self._position
                and instant not in self._known
            ):
                self._known.add(instant)
                for key, time in _taken_by(timeline, instant):
                    self._newest.setdefault(key, []).append(time)

    def check_before(self, step: Step, key: FileGroupKey, found: FileSlice | None) -> None:
        """Refuse a slice that is not the one the group had before the step; raises HistoryGapError.

        Args:
            key: The file group, live before the step.
            found: Its newest slice then, by the files that are left; None when there is none.
        """
        previous = step.previous.get(key)
        known = [] if previous is None or previous <= _since(found) else [previous]
        self._refuse(key, self._gone(step.before, key, found, known), "which a later commit changed")

    def check_after(self, step: Step, key: FileGroupKey, found: FileSlice | None) -> None:
        """Refuse a slice that is not the one the group had after the step, which may have ended long ago; see `check_before`."""
        self._refuse(key, self._gone(step.after, key, found), "which the end of the changes needs")

    def _gone(
        self, point: Point, key: FileGroupKey, found: FileSlice | None, known: Iterable[str] = ()
    ) -> list[str]:
        # a log that was deleted without its base file belongs to the slice in its name
        deleted = (time for time in self._newest.get(key, ()) if time >= _since(found))
        return [time for time in (*deleted, *known) if point.visible(time)]

    def _refuse(self, key: FileGroupKey, gone: list[str], needed: str) -> None:
        if gone:
            raise _gap(
                self._state,
                self.start,
                f"clean deleted the files of commit {max(gone)} in file group {key[1]} of partition {key[0]!r}, {needed}",
                KEEPING,
            )


def _since(found: FileSlice | None) -> str:
    return "" if found is None else found.base_instant


def _taken_by(timeline: Timeline, instant: Instant) -> Iterator[tuple[FileGroupKey, str]]:
    """Return the files of a clean: of one that has not ended those of its plan, some of which may be there."""
    if not instant.is_completed:
        return _planned(timeline.begun_plan(instant) or {})
    return _deleted(timeline.listed_record(instant))


def _deleted(record: Mapping[str, Any]) -> Iterator[tuple[FileGroupKey, str]]:
    """Yield the file groups that a clean took files of, each with the commit that made the file."""
    for partition, entry in (record.get("partitionMetadata") or {}).items():
        yield from _groups_of(partition, entry.get("successDeleteFiles") or ())


def _planned(plan: Mapping[str, Any]) -> Iterator[tuple[FileGroupKey, str]]:
    """Yield the same of a clean's plan."""
    for partition, paths in planned_files(plan).items():
        yield from _groups_of(partition, paths)


def _groups_of(partition: str, paths: Iterable[str]) -> Iterator[tuple[FileGroupKey, str]]:
    for path in paths:
        file = parse_base_file(path, partition) or parse_log_file(path, partition)
        if file is not None and not getattr(file, "is_cdc", False):
            yield (partition, file.file_id), file.instant


def gap_of_column(state: TableState, start: str, lost: str, since: str | None) -> HistoryGapError:
    """Return the error of a column's gap; ``since`` is the commit from which on changes can be read, None when unknown."""
    return HistoryGapError(
        f"the changes of table {state.config.name!r} after {start or 'the beginning'} cannot be read in full: {lost}",
        start,
        since,
        _FROM_THERE,
    )


def _gap(state: TableState, start: str, lost: str, keeping: str = "") -> HistoryGapError:
    oldest = _oldest_start(state)
    hint = f"The oldest start that is left is {oldest}. " if oldest is not None else ""
    return HistoryGapError(
        f"the changes of table {state.config.name!r} after {start} cannot be read in full: {lost}",
        start,
        oldest,
        f"{hint}{_CHOICES}. {keeping}" if keeping else f"{hint}{_CHOICES}",
    )


def _oldest_start(state: TableState) -> str | None:
    """Return the oldest commit whose changes since can surely be read, None for a table without commits."""
    writes = [each.requested_time for each in state.timeline.completed_writes]
    bound = state.timeline.cleaned_up_to
    since = max(state.timeline.first_write_time or "", "" if bound is None else bound.oldest)
    return next((each for each in writes if each >= since), writes[-1] if writes else None)


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
            counts = True  # all rows were replaced within the window, so all are compared
            break
        if reached and (found or not absent):
            break
    # where columns are found by ids, one of the same name is another column
    if found and counts and load_schema_history(state.storage, state.timeline) is None:
        column, since = found
        lost = (
            f"column {column!r} had been dropped and is back since commit {since}, so that rows which were not written since have "
            "lost or regained its values"
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
        return  # columns are found by their ids, and such a table is never rebuilt in its place
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
                raise _type_gap(state, read, field, newest, start)


def _type_gap(
    state: TableState, read: ReadContext, field: pa.Field, newest: str, start: str
) -> HistoryGapError:
    """Return what is said of a column, with the first commit that has its type of now."""
    now = read.schema.field(field.name).type
    later = [each.requested_time for each in state.timeline.completed_writes if each.requested_time > newest]
    since = next((each for each in later if _type_at(state, field.name, each) == now), None)
    by = "" if since is None else f" since commit {since}, which rebuilt the table"
    lost = f"column {field.name!r} was {field.type} and is {now}{by}, and the rows of before cannot be read as that"
    return gap_of_column(state, start, lost, since)


def _type_at(state: TableState, name: str, instant: str) -> pa.DataType | None:
    schema = state.data_schema(instant)
    place = -1 if schema is None else schema.get_field_index(name)
    return None if schema is None or place < 0 else schema.field(place).type
