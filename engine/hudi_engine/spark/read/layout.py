"""The order of rows in Spark: a shuffle by ranges, and a sort within each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructType

from hudi_engine.format.layout.grid import Grid, fit_grid
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.parallel import typed_stage
from hudi_engine.spark.read.collect import to_arrow, worker_errors_raised

PLACE = "__hudi_place"
"""Place of a row on the curve, while rows are sorted by it."""


def sorted_frame(
    frame: DataFrame, layout: RowLayout, tasks: int, *, first: tuple[str, ...] = (), rows: int | None = None
) -> DataFrame:
    """Return rows in order, in a number of tasks of about equal size.

    Args:
        layout: The order; without columns rows are dealt out as they are.
        tasks: Tasks; 0 lets the session's setting decide.
        first: Columns that come before those of the layout, such as the partition path.
        rows: Rows there are, about; None counts them when a curve needs the number.
    """
    placed = _with_place(frame, layout, rows) if layout.is_curve else frame
    names = [*first, *([PLACE] if layout.is_curve else layout.columns)]
    order: list[Column] = [F.col(f"`{name}`").asc_nulls_last() for name in names]
    if not order:
        return frame.repartition(tasks) if tasks else frame
    ranged = placed.repartitionByRange(tasks, *order) if tasks else placed.repartitionByRange(*order)
    return ranged.sortWithinPartitions(*order).drop(PLACE)


def _with_place(frame: DataFrame, layout: RowLayout, rows: int | None) -> DataFrame:
    grid = fit_grid(_sample(frame, layout, rows), layout.columns, layout.strategy, layout.build)
    schema = StructType([*frame.schema.fields]).add(PLACE, BinaryType())
    return frame.mapInArrow(typed_stage(lambda batches: _places(grid, batches)), schema)


def _places(grid: Grid, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        places = grid.places(pa.Table.from_batches([batch]))
        data = pa.py_buffer(places.tobytes())
        width = places.shape[1]
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), batch.num_rows, [None, data])
        names = [*batch.schema.names, PLACE]
        yield pa.RecordBatch.from_arrays([*batch.columns, fixed.cast(pa.binary())], names=names)


def _sample(frame: DataFrame, layout: RowLayout, rows: int | None) -> pa.Table:
    """Return the columns of the curve of some rows, never more than the layout looks at."""
    chosen = frame.select(*[f"`{name}`" for name in layout.columns])
    if rows is None:
        with worker_errors_raised():
            rows = frame.count()
    if rows > layout.sample_rows:
        chosen = chosen.sample(fraction=min(1.0, 1.1 * layout.sample_rows / rows), seed=7)
    return to_arrow(chosen.limit(layout.sample_rows))
