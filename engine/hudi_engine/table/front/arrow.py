"""Rows of other libraries as Arrow tables: pandas, Polars, DuckDB, Arrow, and whatever else speaks Arrow's C stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from hudi_engine.errors import ConfigError, DataError, SchemaError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.schema.any_case import AnyCase, refuse_same_names
from hudi_engine.format.schema.avro import MAX_DIGITS
from hudi_engine.format.schema.nested import map_leaf_types

if TYPE_CHECKING:
    import pandas

# Arrow raises its own for most values; for others Python's, such as OverflowError for whole numbers beyond eight bytes
_REFUSALS = (pa.ArrowException, ValueError, TypeError, OverflowError)
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


class ArrowStream(Protocol):
    """Rows that can be handed over as Arrow data: of Polars, DuckDB, pyarrow, `hudi_engine.read`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows over."""


def is_pandas(rows: object) -> bool:
    """Tell whether rows are a pandas DataFrame."""
    kind = type(rows)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def to_arrow(rows: Any, most_bytes: int | None = None, otherwise: str = "") -> pa.Table:
    """Return rows as an Arrow table.

    Args:
        rows: A pandas or Polars DataFrame, an Arrow table, or anything else with ``__arrow_c_stream__``.
        most_bytes: Rows of more bytes are refused; a stream of them is read no further. None for no limit.
        otherwise: What is legal too, for the message about other things.

    Raises:
        ConfigError: Something else.
        DataError: More bytes.
        SchemaError: Values that are no column, or columns of one name.
    """
    kind = type(rows)
    if is_pandas(rows):
        return _held(pandas_to_arrow(rows), most_bytes)
    if hasattr(rows, "collect") and kind.__module__.partition(".")[0] == "polars":
        rows = rows.collect()
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if not hasattr(rows, "__arrow_c_stream__"):
        raise ConfigError(
            f"the rows are a {kind.__name__}; give a {otherwise}pandas or Polars DataFrame or an Arrow table, such as "
            "pyarrow.Table.from_pylist(rows)"
        )
    table = _held(rows, most_bytes)
    refuse_same_names(table.column_names)  # below columns are found by name
    return table


def _held(rows: Any, most_bytes: int | None) -> pa.Table:
    """Return a stream as a table, read up to a limit."""
    if most_bytes is None:
        return pa.table(rows)
    if isinstance(rows, pa.Table):
        _check_size(rows.nbytes, most_bytes)
        return rows
    stream, batches, size = pa.RecordBatchReader.from_stream(rows), [], 0
    for batch in stream:
        batches.append(batch)
        size += batch.nbytes
        _check_size(size, most_bytes)
    return pa.Table.from_batches(batches, stream.schema)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise DataError(
            f"the rows have more than {EngineOptions.LOCAL_BATCH_BYTES}={most} bytes, and a write without Spark holds all of them "
            "in memory; write them in parts, each a commit of its own, with HudiTable on Spark, or raise the option; nothing was "
            "written"
        )


def known_types(table: pa.Table, known: pa.Schema | None, pandas: bool) -> pa.Table:
    """Return the rows with whole numbers, and columns without a value, in the types of the table's columns.

    Args:
        known: Data columns of the table, None when it has none yet.
        pandas: Whether they come from pandas, which makes floats of whole numbers among which there is a null.
    """
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


def plain_types(table: pa.Table) -> pa.Table:
    """Return the rows without types that only Arrow has; raises SchemaError for values that the others do not hold."""
    columns = {}
    for field, column in zip(table.schema, table.columns):
        try:
            columns[field.name] = _decoded(column).cast(plain_type(field.type))
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise SchemaError(f"column {field.name!r} of the rows cannot be written: {error}") from error
    return pa.table(columns)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary's values for its codes; Arrow itself cannot do it for the texts that Polars has in its own."""
    if not pa.types.is_dictionary(column.type):
        return column
    plain = plain_type(column.type)
    return pa.chunked_array(
        [chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks], type=plain
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in the place of one that only Arrow has: dictionaries, large and fixed lists, other time units."""
    return map_leaf_types(kind, _plain_leaf)


def _plain_leaf(kind: pa.DataType) -> pa.DataType:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _plain_decimal(kind) if pa.types.is_decimal(kind) else kind


def _plain_decimal(kind: pa.DataType) -> pa.DataType:
    digits = kind.precision - min(kind.scale, 0)
    return pa.decimal128(digits, max(kind.scale, 0)) if digits <= MAX_DIGITS else kind


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
