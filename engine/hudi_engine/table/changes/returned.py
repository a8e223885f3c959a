"""Columns that were dropped and came back between two states: rows change with them that no commit has written anew.

Files know a column by its name. While it is away, a file that is written again loses its values, and a file that is not shows them
again once it is back. Such rows keep the commit time that they had, so what a window tells would not make the one state the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.format.timeline.active import newest_first
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.format.timeline.moments import Moment, digits_of
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.table.changes.gaps import gap_of_column
from hudi_engine.table.changes.window import ALL, window_of
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class _Columns:
    """What a write says of the table's columns.

    Args:
        is_whole: Whether it replaced the whole table, so that no file of before is left.
    """

    instant: Instant
    names: frozenset[str]
    is_whole: bool


def check_returned(state: TableState, start: Moment, end: Moment | None, mode: str) -> None:
    """Refuse a window in which a column came back; one that is new is none, nor one of a table that was replaced as a whole since.

    Args:
        end: Included; None for now.
        mode: ``all`` tells each commit by itself, otherwise the states at both ends are compared.

    Raises:
        HistoryGapError: Naming the column, and the commit that brought it back.
    """
    window = window_of(state, start, end)
    if not (window.start and window.writes):
        return
    inside = {each.requested_time for each in window.writes}
    told = _newest_first(state, max(inside))
    named: list[_Columns] = []
    rest: Iterator[_Columns] = iter(())
    # The columns of the table are those of the greatest requested time, whatever completed when.
    for each in told:
        is_before = each.instant.requested_time not in inside
        if is_before and each.instant.order > window.start:
            continue
        named.append(each)
        if is_before:
            rest = iter(()) if each.is_whole else told
            break
        if each.is_whole and mode != ALL:
            break  # its rows are written anew, so that they are compared
    else:
        if mode != ALL:
            return  # nothing is before the start: all rows are told as they are
    if len({each.names for each in named}) > 1:
        _refuse(state, _returned(named[::-1], rest), digits_of(start, state.config))


def _refuse(state: TableState, found: tuple[str, str] | None, start: str) -> None:
    # where columns are found by ids, one of the same name is another column
    if found is None or load_schema_history(state.storage, state.timeline) is not None:
        return
    column, since = found
    lost = (
        f"column {column!r} had been dropped and is back since commit {since}, by which rows that nobody wrote have lost or "
        "regained its values"
    )
    raise gap_of_column(state, start, lost, since)


def _returned(named: Sequence[_Columns], earlier: Iterator[_Columns]) -> tuple[str, str] | None:
    """Return a column that was away and is there at the end, and the write that brought it back; None where there is none.

    Args:
        named: The state at the start and the writes since, in order.
        earlier: Writes before that, newest first; looked at only where a column is new.
    """
    new: dict[str, str] = {}
    for column in sorted(named[-1].names):
        there = [column in each.names for each in named]
        if all(there):
            continue
        last_away = len(there) - 1 - there[::-1].index(False)
        since = named[last_away + 1].instant.requested_time
        if any(there[:last_away]):
            return column, since
        new[column] = since
    for each in earlier if new else ():
        found = sorted(new.keys() & each.names)
        if found:
            return found[0], new[found[0]]
        if each.is_whole:
            break
    return None


def _newest_first(state: TableState, last: str) -> Iterator[_Columns]:
    """Yield what writes say of the columns, those of the archive after the active ones.

    A table service may have begun before a write of new columns completed, and says those from before it.
    """
    meta = frozenset(meta_fields(operation=True))
    known: dict[str, frozenset[str]] = {}  # most commits have the columns of the one before
    for instant, metadata in newest_first(state.timeline, attrgetter("requested_time"), last):
        text = metadata.schema_json
        if text and not metadata.is_of_service:
            if text not in known:
                known[text] = frozenset(avro_to_arrow(text).names) - meta
            is_whole = metadata.operation_type == WriteOperation.INSERT_OVERWRITE_TABLE
            yield _Columns(instant, known[text], is_whole)
