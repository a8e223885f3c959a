"""Rows of other libraries as Spark DataFrames: pandas, Polars, Arrow, and whatever else speaks Arrow's C stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, Union

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.schema.any_case import AnyCase, refuse_same_names
from hudi_engine.format.schema.nested import map_leaf_types
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.spark.schema.spark_types import MAX_DIGITS, arrow_to_spark

if TYPE_CHECKING:
    import pandas


# Arrow raises its own for most values; for others Python's, such as OverflowError for whole numbers beyond eight bytes
_REFUSALS = (pa.ArrowException, ValueError, TypeError, OverflowError)


class ArrowStream(Protocol):
    """Rows that can be handed over as Arrow data: of Polars, DuckDB, pyarrow, `hudi_engine.read`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows over."""


Frame = Union["DataFrame", "pandas.DataFrame", ArrowStream]
"""What a write takes as rows."""

_CAST = "cast it before it is written, such as astype('string') of pandas, cast(pl.String) of Polars or cast(pa.string()) of Arrow"
_CHUNK_ROWS = 65_536
_SIMPLE = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


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
    table = _plain(_fitted(_arrow(rows), known, _is_pandas(rows)))
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


def _is_pandas(rows: object) -> bool:
    kind = type(rows)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _arrow(rows: Any) -> pa.Table:
    kind = type(rows)
    if _is_pandas(rows):
        return pandas_to_arrow(rows)
    if hasattr(rows, "collect") and kind.__module__.partition(".")[0] == "polars":
        rows = rows.collect()
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if not hasattr(rows, "__arrow_c_stream__"):
        raise ConfigError(
            f"the rows are a {kind.__name__}; give a Spark, pandas or Polars DataFrame or an Arrow table, such as "
            "spark.createDataFrame(rows)"
        )
    table = pa.table(rows)
    refuse_same_names(table.column_names)  # below columns are found by name
    return table


def _fitted(table: pa.Table, known: pa.Schema | None, pandas: bool) -> pa.Table:
    """Return the rows with whole numbers, and columns without a value, in the types of the table's columns."""
    types = AnyCase((field.name, field.type) for field in known or ())
    typeless = [field.name for field in table.schema if pa.types.is_null(_type_of_values(field.type))]
    new = [name for name in typeless if name not in types]
    if new and table.num_rows:
        raise SchemaError(
            f"column(s) {', '.join(map(repr, new))} of the rows have no value and no type, and the table does not have them; "
            "give them a type, such as astype('string') of pandas or cast(pl.String) of Polars, or leave them out"
        )
    if pandas and not table.num_rows:
        typeless = [name for name in table.column_names if name in types]  # it calls no values floats
    columns = {
        name: (
            pa.nulls(len(column), types[name])
            if name in typeless
            else _whole_numbers(column, types.get(name), pandas)
        )
        for name, column in zip(table.column_names, table.columns)
        if name not in new
    }
    return pa.table(columns)


def _type_of_values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _whole_numbers(column: pa.ChunkedArray, wanted: pa.DataType | None, pandas: bool) -> pa.ChunkedArray:
    given = _type_of_values(column.type)
    if wanted is None or not pa.types.is_integer(wanted) or given == wanted:
        return column
    if not pa.types.is_integer(given) and not (pandas and pa.types.is_floating(given)):
        return column
    try:
        return _decoded(column).cast(wanted)
    except pa.ArrowInvalid:
        return column  # some do not fit: whether the table's column may become wider is decided with those of Spark


def _plain(table: pa.Table) -> pa.Table:
    """Return the rows in the types that Spark knows."""
    columns = {}
    for field, column in zip(table.schema, table.columns):
        try:
            columns[field.name] = _decoded(column).cast(_plain_type(field.type))
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise SchemaError(
                f"column {field.name!r} of the rows cannot be given to Spark: {error}"
            ) from error
    return pa.table(columns)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary's values for its codes; Arrow itself cannot do it for the texts that Polars has in its own."""
    if not pa.types.is_dictionary(column.type):
        return column
    plain = _plain_type(column.type)
    return pa.chunked_array(
        [chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks], type=plain
    )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type Spark takes for one that only Arrow has: dictionaries, large and fixed lists, other time units."""
    return map_leaf_types(kind, _plain_leaf)


def _plain_leaf(kind: pa.DataType) -> pa.DataType:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _plain_decimal(kind) if pa.types.is_decimal(kind) else kind


def _plain_decimal(kind: pa.DataType) -> pa.DataType:
    digits = kind.precision - min(kind.scale, 0)
    return pa.decimal128(digits, max(kind.scale, 0)) if digits <= MAX_DIGITS else kind


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for piece in batch.column(0):
            yield from pa.ipc.open_stream(piece.as_py())


def pandas_to_arrow(rows: pandas.DataFrame) -> pa.Table:
    """Return the columns of a pandas DataFrame, without its index."""
    refuse_same_names(map(str, rows.columns))
    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except _REFUSALS as error:
        raise SchemaError(
            f"the pandas DataFrame has values that are no column: {_first_refused(rows)}{error}; "
            "replace them, or give the column one type, such as astype('string')"
        ) from error


def _first_refused(rows: pandas.DataFrame) -> str:
    """Name the first column that cannot be had by itself; empty where there is none."""
    for number, name in enumerate(rows.columns):
        try:
            pa.Table.from_pandas(rows.iloc[:, [number]], preserve_index=False)
        except _REFUSALS:
            return f"column {str(name)!r}: "
    return ""
