"""Rows of other libraries as Spark DataFrames: pandas, Polars, Arrow, and whatever else speaks Arrow's C stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Union

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.front.arrow import ArrowStream, is_pandas, known_types, plain_types, to_arrow

if TYPE_CHECKING:
    import pandas


Frame = Union["DataFrame", "pandas.DataFrame", ArrowStream]
"""What a write takes as rows."""

_CAST = "cast it before it is written, such as astype('string') of pandas, cast(pl.String) of Polars or cast(pa.string()) of Arrow"
_CHUNK_ROWS = 65_536


def as_frame(spark: SparkSession, rows: Frame, known: pa.Schema | None = None) -> DataFrame:
    """Return rows as a Spark DataFrame; one is returned as it is.

    Times without a zone are taken in the session's time zone, as Spark takes those of pandas. Whole numbers, which these
    libraries keep in eight bytes by default, get the type of the table's column where all of them fit it, and so
    do those that pandas has made floats of because of a null among them. A column without a value and a type gets that of
    the table's column, and so does every column of a pandas DataFrame without rows, to which pandas gives types of its own.

    Args:
        rows: A Spark, pandas or Polars DataFrame, an Arrow table, or anything else with ``__arrow_c_stream__``.
        known: Data columns of the table that the rows are for, None when it has none yet.
    """
    if isinstance(rows, DataFrame):
        return rows
    table = plain_types(known_types(to_arrow(rows, otherwise="Spark, "), known, is_pandas(rows)))
    frame = _as_spark(spark, table)
    naive = [
        field.name for field in table.schema if pa.types.is_timestamp(field.type) and field.type.tz is None
    ]
    times = {name: F.col(quoted(name)).cast(TimestampType()) for name in naive}
    return frame.withColumns(times) if times else frame


def _as_spark(spark: SparkSession, table: pa.Table) -> DataFrame:
    schema = arrow_to_spark(table.schema, otherwise=_CAST)
    if int(spark.version.partition(".")[0]) >= 4:
        return spark.createDataFrame(table, schema)
    # Spark 3.5 takes no Arrow table: its bytes are unpacked by a task, so that no value passes through pandas.
    pieces = [(_packed(batch),) for batch in table.to_batches(max_chunksize=_CHUNK_ROWS)]
    if not pieces:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(pieces, "piece binary").mapInArrow(_unpack, schema)


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for piece in batch.column(0):
            yield from pa.ipc.open_stream(piece.as_py())
