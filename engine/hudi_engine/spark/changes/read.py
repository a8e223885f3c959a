"""The changes of a table between two states, in every mode."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import ConfigError, HistoryGapError
from hudi_engine.format.config.options import Options
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.spark.changes.frame import Reading, compared_rows, inserted_rows, newest_images
from hudi_engine.table.changes.columns import AFTER, ALL, CHANGE_TYPE, DELETE, LATEST, MODES, NET, check_names
from hudi_engine.table.changes.plan import plan_changes, steps_since
from hudi_engine.table.changes.returned import check_returned
from hudi_engine.table.changes.touched import newest_step
from hudi_engine.table.changes.window import Span, state_at
from hudi_engine.table.state import TableState

FAIL, SNAPSHOT = ON_GAP = ("fail", "snapshot")


@dataclass(frozen=True)
class Wanted:
    """What of the changes is told.

    Args:
        mode: ``net``, ``all`` or ``latest``.
        on_gap: ``fail``, or ``snapshot`` for all rows as inserts where the changes cannot be told.
        known: The start is an instant that the table must have had.
        skip_insert_overwrite: What overwrites of partitions or the table did is not told.

    Raises:
        ConfigError: A mode or choice that is none.
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


def changes_between(
    spark: SparkSession,
    state: TableState,
    options: Options,
    span: Span,
    wanted: Wanted = Wanted(),
) -> DataFrame | None:
    """Return the rows that changed within ``span``, None while the table has no columns.

    Args:
        span: Without a start all rows of its end are inserts.
        wanted: What is told, and what is done about a gap.

    Raises:
        CorruptTableError: The state whose rows are told lacks a file.
        HistoryGapError: The changes cannot be told in full.
        TimelineError: A point in time that is none, or an end before the start.
        UnsupportedTableError: A column of the table has the name of a column of changes.
    """
    start, end = span
    last = state_at(state, end)
    reading = Reading.of(spark, state, options, last)
    if reading is None:
        return None
    check_names(reading.read.schema)
    if start is not None:
        try:
            return _since(reading, start, end, wanted)
        except HistoryGapError:
            if wanted.on_gap == FAIL:
                raise
    if end is not None:
        state.timeline.check_readable(last.newest, asked="end")
    return inserted_rows(reading, last, last.newest or "")


def _since(reading: Reading, start: Moment, end: Moment | None, wanted: Wanted) -> DataFrame:
    state, mode = reading.state, wanted.mode
    steps, cleaned = steps_since(
        state, start, end, mode=mode, known=wanted.known, skip_insert_overwrite=wanted.skip_insert_overwrite
    )
    check_returned(state, start, end, mode)
    step = newest_step(state, steps) if mode == LATEST else None
    if step is not None:
        return newest_images(reading, step, cleaned)
    frame = compared_rows(
        reading, plan_changes(state, reading.read, steps, cleaned, ALL if mode == ALL else NET)
    )
    if mode == LATEST:
        frame = frame.where(F.col(CHANGE_TYPE) != DELETE).withColumn(CHANGE_TYPE, F.lit(AFTER))
    return frame
