"""Proof that the changes of a window can still be told in full.

A window needs three things: its writes on the active timeline, a start that was never taken back, and the files of every
touched file group as they were before. What is missing is an error: changes are never skipped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hudi_engine.changes.slices import StatesOfGroups
from hudi_engine.changes.touched import Step
from hudi_engine.changes.window import Point, Window, order_of, point_at
from hudi_engine.errors import HistoryGapError
from hudi_engine.filegroup.base_file import parse_base_file
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.filegroup.log_file import parse_log_file
from hudi_engine.services.clean.plan import planned_files
from hudi_engine.table_state import TableState
from hudi_engine.timeline.active import FileGroupKey, Timeline
from hudi_engine.timeline.instant import Instant
from hudi_engine.timeline.moments import Moment, digits_of

_INSTANT = re.compile(r"\d{14}|\d{17}")
_UNDOING = ("rollback", "restore")
_CHOICES = "Choose on_gap='snapshot' to take all rows as inserts, or start at a state the table still has"
_FROM_THERE = "Choose on_gap='snapshot' to take all rows as inserts, or start at that commit or a later one"
KEEPING = (
    "Retain more commits (hoodie.clean.commits.retained, hoodie.keep.min.commits), or register the reader with "
    "HudiTable.register_consumer, so that it can be away longer"
)
"""Advice where clean or archive took what a window needs; a table keeps nothing of what was taken back for longer."""


def check_timeline(state: TableState, window: Window, start: str) -> None:
    """Refuse a start that archiving left behind, and one before a history whose beginning is lost.

    Args:
        state: The table.
        window: The window.
        start: The start in the digits of the timeline.

    Raises:
        HistoryGapError: A write after the start was archived, or left the table without a trace.
    """
    first = state.timeline.first_write_time
    if first is None or (state.config.layout_version == 1 and window.start >= first):
        return
    writes = state.timeline.archived.completed_writes
    passed = [order_of(each) for each in writes if order_of(each) > window.start]
    if passed:
        raise _gap(state, start, f"{len(passed)} commits up to {max(passed)} were archived since", KEEPING)
    if not writes and window.start < min(order_of(each) for each in state.timeline.completed_writes):
        _check_begins_empty(state, window, start)


def _check_begins_empty(state: TableState, window: Window, start: str) -> None:
    """Refuse a start before the first commit that is known when there are files of earlier ones."""
    found = StatesOfGroups(state).live_slices(point_at(state.timeline, window.start))
    if found:
        raise _gap(
            state, start, f"commit {found[0].base_instant} wrote rows that are there, and no timeline has it"
        )


def check_start(state: TableState, start: Moment) -> None:
    """Refuse a start that is an instant, but none of this table's: taken back, or of what was here before it was built anew.

    A moment that is no instant is any moment. So is one in an instant's digits, unless it lies before the whole history, where
    nobody who has read this table could have noted it.

    Args:
        state: The table.
        start: Instant or moment that a reader starts from.

    Raises:
        HistoryGapError: It was taken back, or lies before all that the timelines know.
        TimelineError: It is no point in time.
    """
    digits = digits_of(start, state.config)
    _check_not_undone(state, digits)
    first = state.timeline.first_write_time
    if first is not None and digits < first:
        undone = state.timeline.archived.undone
        if digits in undone and not _stands(state, digits):
            raise _gap(state, digits, f"that commit was taken back by {undone[digits]}")
    if isinstance(start, str) and _INSTANT.fullmatch(start.strip()):
        _check_not_foreign(state, digits)


def _check_not_foreign(state: TableState, start: str) -> None:
    """Refuse the digits of an instant that lie before the history, and those that an archived restore may have taken back."""
    active = state.timeline.instants
    if active and start >= active[0].requested_time:
        return
    archived = state.timeline.archived.instants
    if start in {name for each in archived for name in _names(each)}:
        return
    known = [each.requested_time for each in (*archived, *active)]
    as_moment = "A moment is written as '2026-11-01 09:30:00', or is a datetime"
    if not known or start < min(known):
        since = (
            f"is older than all of them, the first of which is {min(known)}" if known else "there are none"
        )
        raise _gap(
            state,
            start,
            f"no commit of its timelines is that instant, and it {since}: it was built anew. {as_moment}",
        )
    restores = [each.requested_time for each in archived if each.action == "restore"]
    if state.config.layout_version == 1 and any(each > start for each in restores):
        # what a restore took back is not in the archive of this layout
        raise _gap(
            state,
            start,
            f"no commit of its timelines is that instant: restore {max(restores)} may have taken it back. {as_moment}",
        )


def check_known(state: TableState, start: str) -> None:
    """Refuse an instant that the table never had: it was built anew, or another one is in its place.

    Args:
        state: The table.
        start: An instant that a reader of the table has noted.

    Raises:
        HistoryGapError: It was taken back, or neither timeline knows it.
    """
    _check_not_undone(state, start)
    known = {each for instant in state.timeline.completed_writes for each in _names(instant)}
    if start in known:
        return
    archived = state.timeline.archived
    if start not in {each for instant in archived.instants for each in _names(instant)}:
        raise _gap(
            state, start, "no commit of its timeline is that instant: it was rolled back, or built anew"
        )


def _names(instant: Instant) -> tuple[str, ...]:
    return (instant.requested_time, order_of(instant))


def _check_not_undone(state: TableState, start: str) -> None:
    """Refuse an instant that a rollback or restore took back, and one that has gone while one of them has not ended."""
    timeline = state.timeline
    for instant in timeline.completed:
        if instant.action in _UNDOING and instant.requested_time > start:
            told = state.timeline.record(instant)
            gone = {*(told.get("commitsRollback") or ()), *(told.get("instantsToRollback") or ())}
            if start in gone and not _stands(state, start):
                raise _gap(
                    state, start, f"that commit was taken back by {instant.action} {instant.requested_time}"
                )
    if start in {each for instant in timeline.completed_writes for each in _names(instant)}:
        return
    for instant in timeline.pending:
        if instant.action in _UNDOING and start in _planned_to_go(timeline.plan(instant) or {}):
            raise _gap(
                state,
                start,
                f"that commit is being taken back by {instant.action} {instant.requested_time}, which has not ended",
            )


def _stands(state: TableState, start: str) -> bool:
    """Return whether an instant that was taken back is a commit all the same: a compaction or clustering that ran again."""
    writes = (*state.timeline.completed_writes, *state.timeline.archived.completed_writes)
    return start in {each for instant in writes for each in _names(instant)}


def _planned_to_go(plan: Mapping[str, Any]) -> set[str]:
    """Return the instants that the plan of a rollback or of a restore takes back."""
    infos = [plan.get("instantToRollback"), *(plan.get("instantsToRollback") or ())]
    return {str(info["commitTime"]) for info in infos if info}


class CleanedFiles:
    """What the cleans after a position deleted, and what those that have not ended are about to.

    Args:
        state: The table.
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
        """Add the cleans that have begun since the table was looked at; asked when the files that are left have been listed.

        A clean says what it takes before it takes it, so that of no file that is missing from the list nothing is known.
        """
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
        """Refuse a slice that is not the one the group had before the step.

        Args:
            step: The step.
            key: The file group, live before the step.
            found: Its newest slice then, by the files that are left; None when there is none.

        Raises:
            HistoryGapError: A newer one, or a file of it, has gone.
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
        # a log that goes alone is one of the slice that its name says
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
        return _planned(timeline.plan_of_clean(instant) or {})
    return _deleted(timeline.record(instant))


def _deleted(told: Mapping[str, Any]) -> Iterator[tuple[FileGroupKey, str]]:
    """Yield the file groups that a clean took files of, each with the commit that made the file."""
    for partition, entry in (told.get("partitionMetadata") or {}).items():
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
    """Return the error of changes that cannot be told because of what became of a column.

    Args:
        state: The table.
        start: Where the changes begin.
        lost: What cannot be told.
        since: The commit from which on they can be, None when unknown.
    """
    return HistoryGapError(
        f"the changes of table {state.config.name!r} after {start or 'the beginning'} cannot be told in full: {lost}",
        start,
        since,
        _FROM_THERE,
    )


def _gap(state: TableState, start: str, lost: str, keeping: str = "") -> HistoryGapError:
    oldest = _oldest_start(state)
    hint = f". The oldest start that is left is {oldest}" if oldest is not None else ""
    return HistoryGapError(
        f"the changes of table {state.config.name!r} after {start} cannot be told in full: {lost}{hint}",
        start,
        oldest,
        f"{_CHOICES}. {keeping}" if keeping else _CHOICES,
    )


def _oldest_start(state: TableState) -> str | None:
    """Return the oldest commit whose changes since can surely be told, None for a table without commits."""
    writes = [each.requested_time for each in state.timeline.completed_writes]
    bound = state.timeline.cleaned_up_to
    since = max(state.timeline.first_write_time or "", "" if bound is None else bound.oldest)
    return next((each for each in writes if each >= since), writes[-1] if writes else None)
