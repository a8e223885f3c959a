"""The changes of a table between two states, in every mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import HistoryGapError
from hudi_engine.format.config.options import Options
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, IS_DELETED, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import map_slices, slices_frame
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.changes.gaps import CleanedFiles, check_returned
from hudi_engine.table.changes.group import TASK_BYTES, Comparison, meet
from hudi_engine.table.changes.plan import (
    ChangePlan,
    context_at,
    context_of_end,
    newest_slices,
    plan_changes,
    steps_since,
)
from hudi_engine.table.changes.read import FAIL, NET_CHANGES, Wanted
from hudi_engine.table.changes.touched import Step, newest_step, slices_of_whole
from hudi_engine.table.changes.window import (
    AFTER,
    ALL,
    CHANGE_TYPE,
    COMMITTED,
    DELETE,
    INSERT,
    LATEST,
    NET,
    STEP,
    Point,
    Span,
    change_columns,
    change_schema,
    check_names,
    state_at,
    task_schema,
)
from hudi_engine.table.state import TableState


def changes_between(
    spark: SparkSession,
    state: TableState,
    options: Options,
    span: Span,
    wanted: Wanted = NET_CHANGES,
) -> DataFrame | None:
    """Return the rows that changed within ``span``, None while the table has no columns; without a start all rows are inserts.

    Raises:
        CorruptTableError: The state whose rows are read lacks a file.
        HistoryGapError: The changes cannot be read in full.
        TimelineError: An invalid point in time, or an end before the start.
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


@dataclass(frozen=True)
class Reading:
    """How the changes of a table are read, in the columns it has at the end of the window."""

    spark: SparkSession
    state: TableState
    read: ReadContext

    @classmethod
    def of(cls, spark: SparkSession, state: TableState, options: Options, last: Point) -> Reading | None:
        """Prepare a read of the columns at the last state; None when the table has none yet."""
        prepare_session(spark)
        read = context_of_end(state, options, last)
        return None if read is None else cls(spark, state, read)

    def at(self, point: Point) -> ReadContext:
        """Return how the slices of a state are read."""
        return context_at(self.read, point)


def inserted_rows(reading: Reading, point: Point, commit: str) -> DataFrame:
    """Return all rows of a state as inserts; ``commit`` is the commit time of rows that have none."""
    slices = slices_of_whole(reading.state, point)
    frame = slices_frame(reading.spark, reading.state, reading.at(point), slices)
    return _typed(frame, INSERT, commit)


def newest_images(reading: Reading, step: Step, cleaned: CleanedFiles) -> DataFrame:
    """Return the rows that the step wrote and that are still there, as updates; raises as `newest_slices` does."""
    slices = newest_slices(reading.state, step, cleaned)
    frame = slices_frame(reading.spark, reading.state, reading.at(step.after), slices)
    return _typed(frame.where(F.col(COMMIT_TIME).isin(sorted(step.writes))), AFTER, "")


def compared_rows(reading: Reading, plan: ChangePlan) -> DataFrame:
    """Return the changes that the comparisons of a plan find."""
    alone = [unit for unit in plan.units if not unit.meets_others]
    together = [unit for unit in plan.units if unit.meets_others]
    parts = []
    if alone:
        bare, schema = replace(plan, units=()), change_schema(plan.read.schema)
        parts.append(map_slices(reading.spark, alone, schema, bare.change_rows, at_most=_tasks(alone)))
    if together:
        names = [f"`{name}`" for name in change_columns(reading.read.schema)]
        parts.append(_joined(reading, plan, together).select(*names))
    if not parts:
        return reading.spark.createDataFrame([], arrow_to_spark(change_schema(plan.read.schema)))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _joined(reading: Reading, plan: ChangePlan, units: Sequence[Comparison]) -> DataFrame:
    """Return the changes of file groups between which rows may have moved, brought together by key."""
    compare = replace(plan, units=()).compare
    tasks = _tasks(units)
    frame = map_slices(reading.spark, units, task_schema(plan.read.schema), compare, at_most=tasks)
    mode = plan.mode

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(batches)
        if rows:
            yield from (
                meet(pa.Table.from_batches(rows), mode).combine_chunks().to_batches(max_chunksize=65536)
            )

    parts = min(len(units), tasks, int(reading.spark.conf.get("spark.sql.shuffle.partitions") or 200))
    by = [STEP, PARTITION_PATH, RECORD_KEY] if mode == ALL else [PARTITION_PATH, RECORD_KEY]
    together = frame.repartition(parts, *map(F.col, by))
    return together.mapInArrow(run, frame.schema)


def _tasks(units: Sequence[Comparison]) -> int:
    return 1 + sum(unit.size for unit in units) // TASK_BYTES


def _typed(frame: DataFrame, kind: str, commit: str) -> DataFrame:
    written = F.coalesce(F.col(COMMIT_TIME), F.lit(commit)) if commit else F.col(COMMIT_TIME)
    names = [f"`{name}`" for name in frame.columns if not name.startswith("_hoodie_") or name == IS_DELETED]
    return frame.select(*names, F.lit(kind).alias(CHANGE_TYPE), written.alias(COMMITTED))
