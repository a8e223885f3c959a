"""Proof that the changes of a window can still be told in full.

A window needs three things: its writes on the active timeline, a start that was never taken back, and the files of every
touched file group as they were before. What is missing is an error: changes are never skipped in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hudi_engine.changes.touched import Step
from hudi_engine.changes.window import Point, Window, order_of
from hudi_engine.errors import HistoryGapError
from hudi_engine.filegroup.base_file import parse_base_file
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.filegroup.log_file import parse_log_file
from hudi_engine.table_state import TableState
from hudi_engine.timeline.active import FileGroupKey
from hudi_engine.timeline.avro_file import decode_avro_file
from hudi_engine.timeline.instant import Instant

_CHOICES = (
    "Choose on_gap='snapshot' to take all rows as inserts, or start at a state the table still has, and retain more commits "
    "(hoodie.clean.commits.retained, hoodie.keep.min.commits) so that readers can be away longer"
)


def check_timeline(state: TableState, window: Window, start: str) -> None:
    """Refuse a start that archiving, a rollback or a restore left behind.

    Args:
        state: The table.
        window: The window.
        start: The start in the digits of the timeline.

    Raises:
        HistoryGapError: A write after the start was archived, or the start was rolled back.
    """
    _check_not_undone(state, start)
    first = state.timeline.first_write_time
    if first is None or (state.config.layout_version == 1 and window.start >= first):
        return
    _check_not_undone_before(state, start, first)
    writes = state.timeline.archived.completed_writes
    passed = [order_of(each) for each in writes if order_of(each) > window.start]
    if passed:
        raise _gap(state, start, f"{len(passed)} commits up to {max(passed)} were archived since", first)


def check_stands(state: TableState, start: str) -> None:
    """Refuse an instant that a rollback or a restore took back: what came with it has to be taken back by its reader too.

    Args:
        state: The table.
        start: A position of a reader in the digits of the timeline; it need not be a commit.

    Raises:
        HistoryGapError: It was taken back.
    """
    _check_not_undone(state, start)
    first = state.timeline.first_write_time
    if first is not None and start < first:
        _check_not_undone_before(state, start, first)


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
        oldest = state.timeline.first_write_time
        raise _gap(
            state,
            start,
            "no commit of its timeline is that instant: it was rolled back, or built anew",
            oldest,
        )


def _names(instant: Instant) -> tuple[str, ...]:
    return (instant.requested_time, order_of(instant))


def _check_not_undone(state: TableState, start: str) -> None:
    for instant in state.timeline.completed:
        if instant.action in ("rollback", "restore") and instant.requested_time > start:
            told = _body(state, instant)
            if start in {*(told.get("commitsRollback") or ()), *(told.get("instantsToRollback") or ())}:
                newest = state.timeline.completed_writes
                oldest = newest[-1].requested_time if newest else None
                raise _gap(
                    state,
                    start,
                    f"that commit was taken back by {instant.action} {instant.requested_time}",
                    oldest,
                )


def _check_not_undone_before(state: TableState, start: str, first: str) -> None:
    """Refuse an instant that a rollback or restore took back that is archived itself."""
    undone = state.timeline.archived.undone
    if start in undone:
        raise _gap(state, start, f"that commit was taken back by {undone[start]}", first)


class CleanedFiles:
    """What the cleans after a position deleted.

    Args:
        state: The table.
        window: The window, whose start is the position.
        start: The start in the digits of the timeline, for messages.
    """

    def __init__(self, state: TableState, window: Window, start: str) -> None:
        self._state, self._start = state, start
        self._oldest: str | None = None
        self._newest: dict[FileGroupKey, list[str]] = {}
        for instant in state.timeline.completed:
            if instant.action == "clean" and instant.requested_time > window.start:
                told = _body(state, instant)
                self._oldest = str(told.get("earliestCommitToRetain") or "") or self._oldest
                for key, time in _deleted(told):
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
                self._start,
                f"clean deleted the files of commit {max(gone)} in file group {key[1]} of partition {key[0]!r}, {needed}",
                self._oldest,
            )


def _since(found: FileSlice | None) -> str:
    return "" if found is None else found.base_instant


def _deleted(told: dict[str, Any]) -> Iterator[tuple[FileGroupKey, str]]:
    for partition, entry in (told.get("partitionMetadata") or {}).items():
        for path in entry.get("successDeleteFiles") or ():
            file = parse_base_file(path, partition) or parse_log_file(path, partition)
            if file is not None and not getattr(file, "is_cdc", False):
                yield (partition, file.file_id), file.instant


def _body(state: TableState, instant: Instant) -> dict[str, Any]:
    body = state.timeline.read_file(instant.file_name)
    return decode_avro_file(body, instant.file_name) if body else {}


def _gap(state: TableState, start: str, lost: str, oldest: str | None) -> HistoryGapError:
    hint = f" The oldest start that is left is {oldest}." if oldest is not None else ""
    return HistoryGapError(
        f"the changes of table {state.config.name!r} after {start} cannot be told in full: {lost}.{hint} {_CHOICES}",
        start,
        oldest,
    )
