"""The changes of a table between two states as DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, IS_DELETED, PARTITION_PATH, RECORD_KEY
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import map_slices, slices_frame
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.changes.group import TASK_BYTES, Comparison, meet
from hudi_engine.table.changes.plan import (
    ChangePlan,
    context_at,
    context_of_end,
)
from hudi_engine.table.changes.read import NET_CHANGES, ChangeReader, Wanted
from hudi_engine.table.changes.window import (
    AFTER,
    ALL,
    CHANGE_TYPE,
    COMMITTED,
    DELETE,
    STEP,
    Point,
    Span,
    change_columns,
    change_schema,
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
    """Return the rows that changed within ``span``, None while the table has no columns; raises as `ChangeReader.between`."""
    last = state_at(state, span.end)
    reading = Reading.of(spark, state, options, last)
    return None if reading is None else reading.between(span, last, wanted)


@dataclass(frozen=True)
class Reading(ChangeReader[DataFrame]):
    """Changes as DataFrames."""

    spark: SparkSession

    @classmethod
    def of(cls, spark: SparkSession, state: TableState, options: Options, last: Point) -> Reading | None:
        """Prepare a read of the columns at the last state; None when the table has none yet."""
        prepare_session(spark)
        read = context_of_end(state, options, last)
        return None if read is None else cls(state, read, spark)

    def of_slices(
        self,
        slices: list[FileSlice],
        point: Point,
        kind: str,
        *,
        commit: str = "",
        written_by: Collection[str] | None = None,
    ) -> DataFrame:
        """Return the rows of slices as changes of one kind."""
        frame = slices_frame(self.spark, self.state, context_at(self.read, point), slices)
        if written_by is not None:
            frame = frame.where(F.col(COMMIT_TIME).isin(sorted(written_by)))
        written = F.coalesce(F.col(COMMIT_TIME), F.lit(commit)) if commit else F.col(COMMIT_TIME)
        names = [
            f"`{name}`" for name in frame.columns if not name.startswith("_hoodie_") or name == IS_DELETED
        ]
        return frame.select(*names, F.lit(kind).alias(CHANGE_TYPE), written.alias(COMMITTED))

    def compared(self, plan: ChangePlan) -> DataFrame:
        """Return the changes that the comparisons of a plan find."""
        alone = [unit for unit in plan.units if not unit.meets_others]
        together = [unit for unit in plan.units if unit.meets_others]
        schema = change_schema(plan.read.schema)
        parts = []
        if alone:
            bare = replace(plan, units=())
            parts.append(map_slices(self.spark, alone, schema, bare.change_rows, at_most=_tasks(alone)))
        if together:
            names = [f"`{name}`" for name in change_columns(self.read.schema)]
            parts.append(_joined(self.spark, plan, together).select(*names))
        if not parts:
            return self.spark.createDataFrame([], arrow_to_spark(schema))
        return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])

    def rows_left(self, changes: DataFrame) -> DataFrame:
        """Return the rows of changes that still exist, as updates."""
        return changes.where(F.col(CHANGE_TYPE) != DELETE).withColumn(CHANGE_TYPE, F.lit(AFTER))


def _joined(spark: SparkSession, plan: ChangePlan, units: Sequence[Comparison]) -> DataFrame:
    """Return the changes of file groups between which rows may have moved, brought together by key."""
    compare = replace(plan, units=()).compare
    tasks = _tasks(units)
    frame = map_slices(spark, units, task_schema(plan.read.schema), compare, at_most=tasks)
    mode = plan.mode

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(batches)
        if rows:
            yield from (
                meet(pa.Table.from_batches(rows), mode).combine_chunks().to_batches(max_chunksize=65536)
            )

    parts = min(len(units), tasks, int(spark.conf.get("spark.sql.shuffle.partitions") or 200))
    by = [STEP, PARTITION_PATH, RECORD_KEY] if mode == ALL else [PARTITION_PATH, RECORD_KEY]
    together = frame.repartition(parts, *map(F.col, by))
    return together.mapInArrow(run, frame.schema)


def _tasks(units: Sequence[Comparison]) -> int:
    return 1 + sum(unit.size for unit in units) // TASK_BYTES
