"""The changes of a table between two states, in every mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudi_engine.changes.columns import ALL, CHANGE_TYPE, DELETE, LATEST, MODES, NET
from hudi_engine.changes.frame import Reading, compared_rows, inserted_rows, newest_images
from hudi_engine.changes.plan import plan_changes, steps_since
from hudi_engine.changes.window import Moment, Span, point_at, position_of
from hudi_engine.config.options import Options
from hudi_engine.errors import ConfigError, HistoryGapError
from hudi_engine.table_state import TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAIL, SNAPSHOT = ON_GAP = ("fail", "snapshot")


def changes_between(
    spark: SparkSession,
    state: TableState,
    options: Options,
    span: Span,
    *,
    mode: str = NET,
    on_gap: str = FAIL,
    known: bool = False,
) -> DataFrame | None:
    """Return the rows that changed within ``span``, None while the table has no columns.

    Args:
        spark: The session.
        state: The table.
        options: Read options.
        span: Without a start all rows of its end are inserts.
        mode: ``net``, ``all`` or ``latest``.
        on_gap: ``fail``, or ``snapshot`` for all rows as inserts where the changes cannot be told.
        known: The start is an instant that the table must have had.

    Raises:
        ConfigError: A mode or choice that is none.
        HistoryGapError: The changes cannot be told in full.
        TimelineError: A point in time that is none, or an end before the start.
    """
    start, end = span
    for name, value, legal in (("mode", mode, MODES), ("on_gap", on_gap, ON_GAP)):
        if value not in legal:
            raise ConfigError(f"{name} is {value!r}; legal are {', '.join(legal)}")
    last = point_at(state.timeline, None if end is None else position_of(state, end))
    reading = Reading.of(spark, state, options, last)
    if reading is None:
        return None
    if start is not None:
        try:
            return _since(reading, start, end, mode, known)
        except HistoryGapError:
            if on_gap == FAIL:
                raise
    if end is not None:
        state.timeline.check_readable(last.newest)
    return inserted_rows(reading, last, last.newest or "")


def _since(reading: Reading, start: Moment, end: Moment | None, mode: str, known: bool) -> DataFrame:
    from pyspark.sql import functions as F

    state = reading.state
    steps, cleaned = steps_since(state, start, end, mode=mode, known=known)
    if mode == LATEST and steps and state.config.populate_meta_fields:
        return newest_images(reading, steps[0], cleaned)
    plan = plan_changes(state, reading.read, steps, cleaned, ALL if mode == ALL else NET)
    frame = compared_rows(reading, plan)
    return frame.where(F.col(CHANGE_TYPE) != DELETE) if mode == LATEST else frame
