"""Columns that were dropped and came back between two states: rows change with them that no commit has written anew.

Files know a column by its name. While it is away, a file that is written again loses its values, and a file that is not shows them
again once it is back. Such rows keep the commit time that they had, so what a window tells would not make the one state the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from hudi_engine.changes.window import Window, order_of
from hudi_engine.config.enums import WriteOperation
from hudi_engine.errors import HistoryGapError
from hudi_engine.schema.avro import avro_to_arrow
from hudi_engine.table_state import TableState
from hudi_engine.timeline.schema_commits import load_schema_history

_ADVICE = "Choose on_gap='snapshot' to take all rows as inserts, or start at that commit or a later one"
_Named = tuple[str, frozenset[str]]
"""A write's instant, and the columns that the table has from it on."""


def check_returned(state: TableState, window: Window, start: str) -> None:
    """Refuse a window in which a column came back; one that is new is none, nor one of a table that was replaced as a whole since.

    Args:
        state: The table.
        window: The writes.
        start: Where the changes begin, for messages.

    Raises:
        HistoryGapError: Naming the column, and the commit that brought it back.
    """
    if not window.start:
        return  # every row is told as it is
    before = [each for each in state.timeline.completed_writes if order_of(each) <= window.start]
    texts = [(each.requested_time, *_told(state, each.requested_time)) for each in window.writes]
    whole = [number for number, told in enumerate(texts) if told[2]]
    if whole:
        # its rows are written anew, so that they are compared
        texts, before = texts[whole[-1] :], []
    elif before:
        newest = before[-1].requested_time
        texts = [(newest, state.schema_json(newest), False), *texts]
    changed = [
        next(same) for _, same in groupby((each for each in texts if each[1]), key=lambda each: each[1])
    ]
    if len(changed) < 2:
        return
    named = [(time, frozenset(avro_to_arrow(str(text)).names)) for time, text, _ in changed]
    found = _returned(state, named, [each.requested_time for each in before])
    # where columns are found by ids, one of the same name is another column
    if found is None or load_schema_history(state.storage, state.timeline) is not None:
        return
    column, since = found
    raise HistoryGapError(
        f"the changes of table {state.config.name!r} after {start} cannot be told in full: column {column!r} had "
        f"been dropped and is back since commit {since}, by which rows that nobody wrote have lost or regained its values",
        start,
        since,
        _ADVICE,
    )


def _returned(state: TableState, named: Sequence[_Named], before: Sequence[str]) -> tuple[str, str] | None:
    """Return a column that was away and is there at the end, and the write that brought it back; None where there is none."""
    for column in sorted(named[-1][1]):
        there = [column in names for _, names in named]
        if all(there):
            continue
        last_away = len(there) - 1 - there[::-1].index(False)
        if any(there[:last_away]) or _was_there(state, column, before):
            return column, named[last_away + 1][0]
    return None


def _was_there(state: TableState, column: str, before: Sequence[str]) -> bool:
    """Tell whether an earlier state that files are left of had a column, as far as the active timeline goes."""
    for instant in reversed(before):
        text, is_whole = _told(state, instant)
        if text and column in avro_to_arrow(text).names:
            return True
        if is_whole:
            return False
    return False


def _told(state: TableState, instant: str) -> tuple[str | None, bool]:
    """Return the columns that a write names, as Avro, and whether it replaced the whole table."""
    write = next(each for each in state.timeline.completed_writes if each.requested_time == instant)
    metadata = state.timeline.commit_metadata(write)
    return metadata.schema_json, metadata.operation_type == WriteOperation.INSERT_OVERWRITE_TABLE
