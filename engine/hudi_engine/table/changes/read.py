"""The changes of a table between two states, as Arrow rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, HistoryGapError
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.parallel import run_in_threads
from hudi_engine.format.schema.meta_fields import COMMIT_TIME
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.changes.gaps import check_returned
from hudi_engine.table.changes.plan import (
    context_at,
    context_of_end,
    newest_slices,
    plan_changes,
    steps_since,
)
from hudi_engine.table.changes.touched import newest_step, slices_of_whole
from hudi_engine.table.changes.window import (
    AFTER,
    ALL,
    CHANGE_TYPE,
    COMMITTED,
    DELETE,
    INSERT,
    LATEST,
    MODES,
    NET,
    Span,
    change_schema,
    check_names,
    state_at,
)
from hudi_engine.table.state import TableState

FAIL, SNAPSHOT = ON_GAP = ("fail", "snapshot")


@dataclass(frozen=True)
class Wanted:
    """Which of the changes are returned.

    Args:
        mode: ``net``, ``all`` or ``latest``.
        on_gap: ``fail``, or ``snapshot`` for all rows as inserts where the changes are lost.
        known: The start is an instant that the table must have had.
        skip_insert_overwrite: Overwrites of partitions or the table are left out.

    Raises:
        ConfigError: An invalid mode or choice.
    """

    mode: str = NET
    on_gap: str = FAIL
    known: bool = False
    skip_insert_overwrite: bool = False

    def __post_init__(self) -> None:
        """Refuse a mode or choice that is none."""
        for name, value, legal in (("mode", self.mode, MODES), ("on_gap", self.on_gap, ON_GAP)):
            if value not in legal:
                raise ConfigError(f"{name} is {value!r}; legal are {', '.join(legal)}")


NET_CHANGES = Wanted()


def changes_between(
    state: TableState, options: Options, span: Span, wanted: Wanted = NET_CHANGES
) -> pa.Table:
    """Return the rows that changed within ``span``; without a start all rows are inserts.

    Raises:
        CorruptTableError: The state whose rows are read lacks a file.
        HistoryGapError: The changes cannot be read in full.
        TimelineError: An invalid point in time, or an end before the start.
        UnsupportedTableError: A column of the table has the name of a column of changes.
    """
    last = state_at(state, span.end)
    read = context_of_end(state, options, last)
    if read is None:
        return change_schema(pa.schema([])).empty_table()
    check_names(read.schema)
    if span.start is not None:
        try:
            return _since(state, read, span.start, span.end, wanted)
        except HistoryGapError:
            if wanted.on_gap == FAIL:
                raise
    if span.end is not None:
        state.timeline.check_readable(last.newest, asked="end")
    return _typed(context_at(read, last), slices_of_whole(state, last), INSERT, last.newest or "")


def _since(
    state: TableState, read: ReadContext, start: Moment, end: Moment | None, wanted: Wanted
) -> pa.Table:
    steps, cleaned = steps_since(
        state,
        start,
        end,
        mode=wanted.mode,
        known=wanted.known,
        skip_insert_overwrite=wanted.skip_insert_overwrite,
    )
    check_returned(state, start, end, wanted.mode)
    step = newest_step(state, steps) if wanted.mode == LATEST else None
    if step is not None:
        slices = newest_slices(state, step, cleaned)
        rows = _typed(context_at(read, step.after), slices, AFTER, "")
        return rows.filter(pc.is_in(rows.column(COMMITTED), pa.array(sorted(step.writes), pa.string())))
    rows = plan_changes(state, read, steps, cleaned, ALL if wanted.mode == ALL else NET).rows()
    if wanted.mode != LATEST:
        return rows
    rows = rows.filter(pc.not_equal(rows.column(CHANGE_TYPE), DELETE))
    return _with_kind(rows, AFTER)


def _typed(read: ReadContext, slices: list[FileSlice], kind: str, commit: str) -> pa.Table:
    """Return the rows of slices as changes; ``commit`` is the commit time of rows that have none."""
    schema = change_schema(read.schema)
    names = [name for name in schema.names if name not in (CHANGE_TYPE, COMMITTED)]
    found = run_in_threads(lambda each: read_slice(read, each, columns=(*names, COMMIT_TIME)), slices)
    parts = []
    for rows in found:
        written = pc.fill_null(rows.column(COMMIT_TIME), commit) if commit else rows.column(COMMIT_TIME)
        kinds = pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows)
        parts.append(rows.select(names).append_column(CHANGE_TYPE, kinds).append_column(COMMITTED, written))
    return pa.concat_tables([schema.empty_table(), *parts])


def _with_kind(rows: pa.Table, kind: str) -> pa.Table:
    place = rows.column_names.index(CHANGE_TYPE)
    return rows.set_column(place, CHANGE_TYPE, pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows))
