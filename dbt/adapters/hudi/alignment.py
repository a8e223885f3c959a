"""Brings the columns of a query to those of a table, by name and type, without losing a value in silence."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.column import stored_type

META_PREFIX = "_hoodie_"
# Marks a row as deleted in an upsert; the one reserved name a model may produce.
_ALLOWED_RESERVED = ("_hoodie_is_deleted",)


def without_meta_columns(frame: DataFrame) -> DataFrame:
    """The frame without Hudi's own columns, which ``select *`` over a Hudi source brings along."""
    drop = [
        c for c in frame.columns if c.lower().startswith(META_PREFIX) and c.lower() not in _ALLOWED_RESERVED
    ]
    return frame.drop(*drop) if drop else frame


def align(
    frame: DataFrame, table: T.StructType, *, keep_new: bool = False, fill_missing: bool = False
) -> DataFrame:
    """Name, order and cast the columns as the table has them.

    Args:
        frame: The query's rows; column names are matched without regard to case.
        table: The table's columns.
        keep_new: Columns the table lacks stay, after the others; otherwise they are dropped.
        fill_missing: Columns the query lacks become null; otherwise they stay away.
    """
    given = {column.name.lower(): column for column in frame.schema.fields}
    selected: list[Column] = []
    for target in table.fields:
        source = given.pop(target.name.lower(), None)
        if source is not None:
            selected.append(
                exact_cast(F.col(_quoted(source.name)), source.dataType, target.dataType, target.name)
            )
        elif fill_missing:
            selected.append(F.lit(None).cast(target.dataType).alias(target.name))
    if keep_new:
        selected.extend(F.col(_quoted(source.name)) for source in given.values())
    return frame.select(*selected)


def missing_columns(frame: DataFrame, table: T.StructType) -> list[str]:
    """Columns of the table that the query lacks."""
    given = {name.lower() for name in frame.columns}
    return [column.name for column in table.fields if column.name.lower() not in given]


def new_columns(frame: DataFrame, table: T.StructType) -> list[str]:
    """Columns of the query that the table lacks."""
    known = {column.name.lower() for column in table.fields}
    return [name for name in frame.columns if name.lower() not in known]


def exact_cast(column: Column, given: T.DataType, wanted: T.DataType, name: str) -> Column:
    """Cast a column; a value that does not survive fails the query instead of becoming null or another value.

    Args:
        column: The column.
        given: Its type.
        wanted: The type to cast to.
        name: Name of the result.
    """
    if stored_type(given.simpleString()) == stored_type(wanted.simpleString()):
        return column.cast(wanted).alias(name) if given != wanted else column.alias(name)
    if isinstance(given, T.NullType) or isinstance(wanted, T.StringType):
        return column.cast(wanted).alias(name)
    if isinstance(wanted, (T.ArrayType, T.MapType, T.StructType)) or not _castable(given):
        return column.cast(wanted).alias(name)
    tried = column.try_cast(wanted) if hasattr(column, "try_cast") else _try_cast(column, given, wanted)
    problem = F.concat(
        F.lit("value "),
        column.cast("string"),
        F.lit(f" of column {name} does not fit its type {wanted.simpleString()}"),
    )
    failed = F.raise_error(problem).cast(wanted)
    return F.when(column.isNull() | tried.isNotNull(), tried).otherwise(failed).alias(name)


def _castable(kind: T.DataType) -> bool:
    return isinstance(kind, T.AtomicType)


def _try_cast(column: Column, given: T.DataType, wanted: T.DataType) -> Column:
    """``try_cast`` for PySpark 3.5, which has it in SQL only: a cast that must come back as it was."""
    cast = column.cast(wanted)
    if isinstance(given, T.NumericType) and isinstance(wanted, T.IntegralType):
        back = cast.cast(given)
        return F.when(F.floor(column.cast("decimal(38,10)")) == F.floor(back.cast("decimal(38,10)")), cast)
    return cast


def require_columns(frame: DataFrame, columns: tuple[str, ...], what: str) -> None:
    """Raise when the query lacks columns a config names.

    Args:
        frame: The query.
        columns: Column names; dots reach into structs.
        what: The config that names them.
    """
    known = {name.lower() for name in frame.columns}
    absent = [column for column in columns if column.split(".")[0].split(":")[0].lower() not in known]
    if absent:
        raise DbtRuntimeError(
            f"{what} names {', '.join(map(repr, absent))}, but the model's columns are {', '.join(frame.columns)}; "
            "correct the config or select the column"
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
