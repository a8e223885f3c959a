"""CSV seeds as DataFrames: the parsed table travels as Arrow text and gets its types from Spark."""

from __future__ import annotations

import datetime
import decimal
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.schema.avro import check_avro_names
from hudi_engine.format.spelling import nearest
from hudi_engine.spark.write.rows.casts import exact_cast
from hudi_engine.spark.write.rows.frames import as_frame
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import _parse_datatype_string

from dbt.adapters.hudi.column import explicit_type
from dbt.adapters.hudi.logs import logger

if TYPE_CHECKING:
    import agate

_INT64 = 2**63
_NUMBER = "row_number"
# types of other databases that mean one type of Spark and no other, as packages give them
_IN_SPARK = {
    **dict.fromkeys(("text", "varchar", "character varying"), "string"),
    "bool": "boolean",
    "int64": "bigint",
    "float64": "double",
    "double precision": "double",
}
# agate warns of types for columns that a file does not have; the adapter has a warning of its own
warnings.filterwarnings("ignore", message=".* does not match the name of any column in this table")


def number_type(agate_table: agate.Table, column: int) -> str:
    """Spark type of a column of numbers: whole ones are bigint as long as they fit."""
    largest = 0
    for value in agate_table.columns[column].values():
        if value is None:
            continue
        if not value.is_finite() or value != value.to_integral_value():
            return "double"
        largest = max(largest, abs(int(value)))
    return "bigint" if largest < _INT64 else "decimal(38,0)"


def seed_types(
    seed: str,
    agate_table: agate.Table,
    given: Mapping[str, str],
    guessed: Callable[[agate.Table, int], str | None],
) -> dict[str, str]:
    """Return the Spark type of each column of a seed, in order.

    Args:
        given: Types by column, its ``column_types``; a name that the file does not have is warned of where it is like one.
    """
    header = list(agate_table.column_names)
    try:
        check_avro_names(
            pa.schema([(name, pa.string()) for name in header]), "rename it in the first line of the file"
        )
    except SchemaError as error:
        raise DbtRuntimeError(f"seed {seed}: {error}") from error
    known = AnyCase((name, name) for name in header)
    for name in given:
        if name in known and name not in header:
            # dbt has parsed the column by its values, so that numbers have lost their zeros
            raise DbtRuntimeError(
                f"column_types of {seed} names {name!r}, and the file has {known[name]!r}; spell it as in the file"
            )
        near = None if name in known else nearest(name, header)
        if near is not None:
            # a folder may give types for columns that only some of its seeds have: other names are no mistake
            logger.warning(
                "column_types of {} names {!r}, which the file does not have; did you mean {!r}?",
                seed,
                name,
                near,
            )
    types = {}
    for number, name in enumerate(header):
        kind = str(given.get(name) or guessed(agate_table, number))
        types[name] = explicit_type(_IN_SPARK.get(kind.strip().lower(), kind))
    return types


def seed_frame(session: SparkSession, agate_table: agate.Table, types: Mapping[str, str]) -> DataFrame:
    """Rows of a seed."""
    names = list(types)
    if len(agate_table.rows) == 0:
        empty = [T.StructField(name, _type_of(kind), True) for name, kind in types.items()]
        return session.createDataFrame([], T.StructType(empty))
    columns = [
        pa.array([_text(value) for value in column.values()], pa.string()) for column in agate_table.columns
    ]
    numbers = pa.array(range(1, len(agate_table.rows) + 1), pa.int64())
    table = pa.table([*columns, numbers], names=[*(f"c{number}" for number in range(len(names))), _NUMBER])
    text = as_frame(session, table)
    # not the line, which is another one where a value above has line breaks
    place = f"concat(', in row ', cast({_NUMBER} as string), ' below the header')"
    cast = []
    for number, (name, kind) in enumerate(types.items()):
        cast.append(exact_cast(f"c{number}", T.StringType(), _type_of(kind), name, place))
    return text.select(*cast)


def _type_of(kind: str) -> T.DataType:
    try:
        wanted = _parse_datatype_string(kind)
    except ParseException as error:
        raise DbtRuntimeError(
            f"column_types has {kind!r}; legal values: types of Spark, such as int, double, decimal(10, 2), string, date, timestamp"
        ) from error
    return T.StringType() if isinstance(wanted, (T.VarcharType, T.CharType)) else wanted


def _text(value: Any) -> str | None:
    """Return a parsed value as text that Spark casts back to the same value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        return str(int(value)) if whole else format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            return value.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat(sep=" ") + "Z"
        return value.isoformat(sep=" ")
    return str(value)
