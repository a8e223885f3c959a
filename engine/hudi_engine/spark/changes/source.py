"""The changes of a table as a source of Spark 4, for batches and streams: planned and read in Python, without a session.

The offset of a stream is the instant that it has read up to, so that a batch that runs again tells the same again, and
what clean took meanwhile is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

import pyarrow as pa

from hudi_engine.errors import ConfigError, SchemaError, UnsupportedTableError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.format.storage.given import StoreAccess
from hudi_engine.table.changes.checkpoint import (
    LIMIT_NAMES,
    WindowLimits,
    newest_until,
    newest_without_hole,
    next_window,
)
from hudi_engine.table.changes.column_history import check_returned, check_types
from hudi_engine.table.changes.gaps import check_known, check_start
from hudi_engine.table.changes.group import Comparison
from hudi_engine.table.changes.plan import (
    ChangePlan,
    Piece,
    plan_changes,
    plan_newest,
    steps_since,
    units_of_tasks,
)
from hudi_engine.table.changes.slices import slices_of_whole
from hudi_engine.table.changes.touched import newest_step
from hudi_engine.table.changes.window import (
    ALL,
    EARLIEST,
    LATEST,
    MODES,
    NET,
    check_names,
    check_order,
    start_of,
    state_at,
    told_schema,
)
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import table_storage

FORMAT = "hudi_changes"
INSTANT = "instant"
NEWEST = "latest"
_BATCH_ROWS = 65_536
_LEGAL = ("path", "mode", "start", "end", *LIMIT_NAMES)


class ChangeSource:
    """The changes of one table, as the options of a reader ask for them.

    Args:
        told: How to get to places of stores, for a process that was not told itself.
        chosen: The columns of the reader are some that were asked for, of which the table may have more.

    Raises:
        ConfigError: Options that are none, or have values that are none.
    """

    def __init__(
        self, options: Mapping[str, str], told: StoreAccess | None = None, *, chosen: bool = False
    ) -> None:
        """Check what the reader was given, all of it in one error."""
        given = {key.lower(): value for key, value in options.items()}
        problems = [
            f"option {key!r} is none; legal are {', '.join(_LEGAL)}" for key in given if key not in _LEGAL
        ]
        if "path" not in given:
            problems.append("no path: give the table's folder to load()")
        self.mode = given.get("mode", NET)
        if self.mode not in MODES:
            problems.append(f"mode is {self.mode!r}; legal are {', '.join(MODES)}")
        found = {name: given.get(name) for name in LIMIT_NAMES}
        problems += [
            f"{name} is {text!r}; legal are whole numbers of at least 1"
            for name, text in found.items()
            if text is not None and not (text.isascii() and text.isdigit() and int(text))
        ]
        if problems:
            raise ConfigError(f"{FORMAT}: " + "; ".join(problems), tuple(problems))
        self.limits = WindowLimits(*(None if text is None else int(text) for text in found.values()))
        self._told, self._chosen = told, chosen
        self._path, self._start, self._end = given["path"], given.get("start", EARLIEST), given.get("end")

    def state(self) -> TableState:
        """Read the table's timeline."""
        if self._told is not None:
            self._told.use()
        return TableState.load(table_storage(self._path))

    def columns(self) -> pa.Schema:
        """Return the columns of changes as of now.

        Raises:
            UnsupportedTableError: The table has none yet, or one with the name of a column of changes.
        """
        return told_schema(_read_of(self.state()).schema)

    def first(self) -> str:
        """Return the instant after which is read, ``""`` for all rows first."""
        if start_of(self._start) is None:
            return ""
        state = self.state()
        if self._start == NEWEST:
            return newest_without_hole(state) or ""
        check_start(state, self._start)
        check_order(state, self._start, self._end)
        reached = newest_until(state, self._start)
        if reached is None:
            raise ConfigError(
                f"{FORMAT}: start is {self._start!r}, before the oldest commit of the timeline; use {EARLIEST!r} for all rows first"
            )
        return reached

    def after(self, instant: str, limits: WindowLimits, until: str | None = None) -> str:
        """Return the instant up to which is read after another one; the same when nothing is new.

        Args:
            instant: What was read before, ``""`` for nothing.
            limits: How much is read at most.
            until: An instant to stop at; None for the option ``end``.
        """
        end, state = self._end if until is None else until, self.state()
        if instant:
            check_known(state, instant)
        return next_window(state, instant or None, end=end, limits=limits).end or instant

    def newest(self) -> str:
        """Return the newest instant there is to read, ``""`` without one; what holds up a reader before it is not looked at."""
        state = self.state()
        if self._end is not None:
            return newest_until(state, self._end) or ""
        writes = state.timeline.completed_writes
        return max(writes, key=attrgetter("order")).requested_time if writes else ""

    def pieces(self, start: str, end: str, columns: pa.Schema) -> Iterator[Piece]:
        """Yield the parts of the changes after ``start`` up to ``end``.

        Raises:
            HistoryGapError: They cannot be told in full any more.
            SchemaError: A column is new, renamed, dropped or of another type since the reader was made.
            UnsupportedTableError: A column has the name of a column of changes by now.
        """
        if start == end:
            return
        state = self.state()
        plan = _plan(state, start, end, self.mode)
        newest = self.mode == LATEST and bool(start)  # all rows first are inserts in every mode
        _check_columns(state, plan, columns, chosen=self._chosen)
        bare = replace(plan, units=())
        yield from (Piece(bare, units, columns, newest) for units in units_of_tasks(plan.units))


def batches_of(piece: Piece | None) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one Spark partition, which has no piece where the whole read has none; runs in a Spark task."""
    if piece is not None:
        yield from piece.rows().combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)


def _read_of(state: TableState) -> ReadContext:
    """Return how slices are read in the columns of now.

    Raises:
        UnsupportedTableError: There are none yet, or one has the name of a column of changes.
    """
    data = state.data_schema()
    if data is None:
        raise UnsupportedTableError(f"table {state.config.name!r} has no columns yet; write to it first")
    read = state.read_context(data, resolve_options({}))
    check_names(read.schema)
    return read


def _plan(state: TableState, start: str, end: str, mode: str) -> ChangePlan:
    last = state_at(state, end)
    # in the columns of now, as the reader is, whatever they were called at the end
    read = _read_of(state)
    if start:
        steps, cleaned = steps_since(state, start, end, mode=mode, known=True)
        check_returned(state, start, end, mode)
        step = newest_step(state, steps) if mode == LATEST else None
        if step is not None:
            return plan_newest(state, read, step, cleaned)
        return plan_changes(state, read, steps, cleaned, ALL if mode == ALL else NET)
    state.timeline.check_readable(last.newest, asked="end")
    slices = slices_of_whole(state, last)
    units = tuple(Comparison(0, each.partition, None, each, end, meets_others=False) for each in slices)
    plan = ChangePlan(read, ((last, last, None),), units, NET)
    check_types(state, read, plan.points, units, start)
    return plan


def _check_columns(state: TableState, plan: ChangePlan, columns: pa.Schema, *, chosen: bool) -> None:
    """Refuse a reader whose columns are others by now, which would leave out a new one, or tell other values than there are."""
    now = {field.name: spark_name(field.type) for field in told_schema(plan.read.schema)}
    made = {field.name: spark_name(field.type) for field in columns}
    found = [f"{name!r} was renamed or dropped" for name in made if name not in now]
    found += [
        f"{name!r} was {kind} and is {now[name]}"
        for name, kind in made.items()
        if now.get(name, kind) != kind
    ]
    found += [] if chosen else [f"{name!r} is new" for name in now if name not in made]
    if found:
        than = "than the schema that was given" if chosen else "since the reader was made"
        way = "give a schema that fits, or load it anew" if chosen else "load it anew"
        raise SchemaError(
            f"{FORMAT}: table {state.config.name!r} has other columns {than}: {', '.join(found)}; {way} "
            "(a stream: start it again)"
        )
