"""The changes of a table between two states, in every mode, and as Arrow rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

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
    ChangePlan,
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
    Point,
    Span,
    change_schema,
    check_names,
    state_at,
)
from hudi_engine.table.state import TableState

Given = TypeVar("Given")
"""What a reader returns rows as."""
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
                raise ConfigError(f"{name} is {value!r}; legal values: {', '.join(legal)}")


NET_CHANGES = Wanted()


@dataclass(frozen=True)
class ChangeReader(ABC, Generic[Given]):
    """Reads the changes of a table, in the columns that it has at the end of a window: as Arrow tables, or as DataFrames."""

    state: TableState
    read: ReadContext

    @abstractmethod
    def of_slices(
        self,
        slices: list[FileSlice],
        point: Point,
        kind: str,
        *,
        commit: str = "",
        written_by: Collection[str] | None = None,
    ) -> Given:
        """Return the rows of slices of a state as changes of one kind.

        Args:
            commit: The commit time of rows that have none; empty to leave them without.
            written_by: Only the rows that these commits wrote; None for all.
        """

    @abstractmethod
    def compared(self, plan: ChangePlan) -> Given:
        """Return the changes that the comparisons of a plan find."""

    @abstractmethod
    def rows_left(self, changes: Given) -> Given:
        """Return the rows of changes that still exist, as updates."""

    def between(self, span: Span, last: Point, wanted: Wanted) -> Given:
        """Return the rows that changed within ``span``; without a start all rows are inserts.

        Args:
            last: The state at its end.

        Raises:
            CorruptTableError: The state whose rows are read lacks a file.
            HistoryGapError: The changes cannot be read in full.
            TimelineError: An invalid point in time, or an end before the start.
            UnsupportedTableError: A column of the table has the name of a column of changes.
        """
        check_names(self.read.schema)
        if span.start is not None:
            try:
                return self._since(span.start, span.end, wanted)
            except HistoryGapError:
                if wanted.on_gap == FAIL:
                    raise
        if span.end is not None:
            self.state.timeline.check_readable(last.newest, asked="end")
        whole = slices_of_whole(self.state, last)
        return self.of_slices(whole, last, INSERT, commit=last.newest or "")

    def _since(self, start: Moment, end: Moment | None, wanted: Wanted) -> Given:
        state, mode = self.state, wanted.mode
        skips = wanted.skip_insert_overwrite
        steps, cleaned = steps_since(
            state, start, end, mode=mode, known=wanted.known, skip_insert_overwrite=skips
        )
        check_returned(state, start, end, mode)
        step = newest_step(state, steps) if mode == LATEST else None
        if step is not None:
            slices = newest_slices(state, step, cleaned)
            return self.of_slices(slices, step.after, AFTER, written_by=step.writes)
        plan = plan_changes(state, self.read, steps, cleaned, ALL if mode == ALL else NET)
        found = self.compared(plan)
        return self.rows_left(found) if mode == LATEST else found


class _ArrowChanges(ChangeReader[pa.Table]):
    """Changes as Arrow tables, read by threads of this process."""

    def of_slices(
        self,
        slices: list[FileSlice],
        point: Point,
        kind: str,
        *,
        commit: str = "",
        written_by: Collection[str] | None = None,
    ) -> pa.Table:
        """Return the rows of slices as changes of one kind."""
        read, schema = context_at(self.read, point), change_schema(self.read.schema)
        names = [name for name in schema.names if name not in (CHANGE_TYPE, COMMITTED)]
        found = run_in_threads(lambda each: read_slice(read, each, columns=(*names, COMMIT_TIME)), slices)
        parts = []
        for rows in found:
            written = rows.column(COMMIT_TIME)
            if commit:
                written = pc.fill_null(written, commit)
            kinds = pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows)
            parts.append(
                rows.select(names).append_column(CHANGE_TYPE, kinds).append_column(COMMITTED, written)
            )
        typed = pa.concat_tables([schema.empty_table(), *parts])
        if written_by is None:
            return typed
        return typed.filter(pc.is_in(typed.column(COMMITTED), pa.array(sorted(written_by), pa.string())))

    def compared(self, plan: ChangePlan) -> pa.Table:
        """Return the changes that the comparisons of a plan find."""
        return plan.rows()

    def rows_left(self, changes: pa.Table) -> pa.Table:
        """Return the rows of changes that still exist, as updates."""
        rows = changes.filter(pc.not_equal(changes.column(CHANGE_TYPE), DELETE))
        kinds = pa.repeat(pa.scalar(AFTER, pa.string()), rows.num_rows)
        return rows.set_column(rows.column_names.index(CHANGE_TYPE), CHANGE_TYPE, kinds)


def changes_between(
    state: TableState, options: Options, span: Span, wanted: Wanted = NET_CHANGES
) -> pa.Table:
    """Return the rows that changed within ``span``; raises as `ChangeReader.between`."""
    last = state_at(state, span.end)
    read = context_of_end(state, options, last)
    if read is None:
        return change_schema(pa.schema([])).empty_table()
    return _ArrowChanges(state, read).between(span, last, wanted)
