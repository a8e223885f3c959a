"""Brings the columns of a query to those of a table, by name and type, without losing a value in silence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED, META_FIELDS
from hudi_engine.spark.catalog.sql_text import type_text
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.spark.schema.spark_types import stored_type
from hudi_engine.spark.write.rows.batch import exact_marks
from hudi_engine.spark.write.rows.set_values import field_problems

META_PREFIX = "_hoodie_"
DELETE_MARKS = (IS_DELETED, DELETES)
"""Mark a row as deleted in an upsert. A table may have the first as a column; the other is never stored."""
_INFINITE = float("inf")
_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_ADVICE = ". Select a value that does, or give the column another type"
_log = logging.getLogger(__name__)


def drop_meta_columns(frame: DataFrame) -> DataFrame:
    """Return the frame without Hudi's own columns, which ``select *`` over a Hudi source brings along.

    Only some of them were named by the query on purpose, which is a warning. The marks of deleted rows stay, under the names that
    Hudi looks for.
    """
    drop = [c for c in frame.columns if c.lower().startswith(META_PREFIX) and c.lower() not in DELETE_MARKS]
    if drop and not {c.lower() for c in drop} >= {*META_FIELDS}:
        _log.warning("%s", told_of_dropped(drop))
    return exact_marks(frame.drop(*drop) if drop else frame)


def told_of_dropped(names: Sequence[str]) -> str:
    """Say that columns are left out for their names, and what to do."""
    one = names[0]
    return (
        f"{', '.join(names)} not written: names that begin with {META_PREFIX} are Hudi's own; to keep such a value give "
        f"it another name, as in {one} as {one.lower().removeprefix(META_PREFIX) or 'name'}"
    )


def fit_to_table(
    frame: DataFrame, table: T.StructType, *, fill_missing: bool = False, advice: str | None = None
) -> DataFrame:
    """Name, order and cast the columns as the table has them.

    Args:
        frame: The query's rows; column names are matched without regard to case, columns the table lacks go.
        fill_missing: Columns the query lacks become null; otherwise they stay away.
        advice: Ends the message about a value that does not fit; None for that of SQL.
    """
    place = None if advice is None else F.lit(advice)
    given = AnyCase((column.name, column) for column in frame.schema.fields)
    selected: list[Column] = []
    for target in table.fields:
        source = given.get(target.name)
        if source is not None:
            selected.append(exact_cast(source.name, source.dataType, target.dataType, target.name, place))
        elif fill_missing:
            selected.append(F.lit(None).cast(target.dataType).alias(target.name))
    try:
        return frame.select(*selected)
    except AnalysisException as error:
        for target in table.fields:
            source = given.get(target.name)
            if source is not None:
                try:
                    check_cast(frame, source, target, _ADVICE if advice is None else advice)
                except SchemaError as problem:
                    raise problem from error
        raise


def check_cast(frame: DataFrame, source: T.StructField, target: T.StructField, advice: str = _ADVICE) -> None:
    """Raise SchemaError where Spark casts no value of a column of a frame to the type of the table's column."""
    try:
        frame.select(exact_cast(source.name, source.dataType, target.dataType, target.name))
    except AnalysisException as error:
        raise SchemaError(
            f"column {target.name} is {source.dataType.simpleString()} in the query and "
            f"{target.dataType.simpleString()} in the table, and Spark casts no such value to the other{advice}"
        ) from error


def exact_cast(
    source: str, given: T.DataType, wanted: T.DataType, name: str, place: Column | None = None
) -> Column:
    """Cast a column; a value that does not fit fails the query instead of becoming null or wrapping around.

    Args:
        place: The value's place, as the end of the message.
    """
    column = F.col(quoted(source))
    if given == wanted:
        return column.alias(name)
    if not (isinstance(given, T.AtomicType) and isinstance(wanted, T.AtomicType)):
        return nested_cast(column, given, wanted, name).alias(name)
    widens = stored_type(given.simpleString()) == stored_type(wanted.simpleString())
    if widens or isinstance(wanted, T.StringType):
        return column.cast(wanted).alias(name)
    tried = F.expr(f"try_cast({quoted(source)} as {type_text(wanted)})")
    if isinstance(wanted, T.FloatType):
        # Spark takes a number that is too large for it for infinite
        wider = F.expr(f"try_cast({quoted(source)} as double)")
        grown = (F.abs(tried) == _INFINITE) & (F.abs(wider) != _INFINITE)
        tried = F.when(~grown, tried)
    problem = F.concat(
        F.lit("value "),
        column.cast("string"),
        F.lit(f" of column {name} does not fit its type {wanted.simpleString()}"),
        F.lit(_ADVICE) if place is None else place,
    )
    failed = F.raise_error(problem).cast(wanted)
    return F.when(column.isNull() | tried.isNotNull(), tried).otherwise(failed).alias(name)


def nested_cast(value: Column, given: T.DataType, wanted: T.DataType, path: str) -> Column:
    """Return a value as the table has it: fields by name, those the table lacks go, numbers only widen.

    Args:
        path: Name of the column or field, for messages.

    Raises:
        SchemaError: A field is missing, or its values may not fit.
    """
    if given == wanted:
        return value
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        return _struct(value, given, wanted, path)
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        element, kind = given.elementType, wanted.elementType
        return F.transform(value, lambda item: nested_cast(item, element, kind, f"{path}.element"))
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        before, after = given.valueType, wanted.valueType
        return F.transform_values(value, lambda _, item: nested_cast(item, before, after, f"{path}.value"))
    if _fits(given, wanted):
        return value.cast(wanted)
    raise SchemaError(
        f"{path} is {given.simpleString()} in the model and {wanted.simpleString()} in the table; cast it in the model, "
        "or rebuild the table with --full-refresh"
    )


def refuse_other_fields(given: T.DataType, wanted: T.DataType, path: str) -> None:
    """Refuse a value that a statement gives a column, whose structs have other fields than the table's.

    Raises:
        SchemaError: Names all fields that the table lacks, and those that the value lacks.
    """
    problems = field_problems(given, wanted, path)
    if problems:
        raise SchemaError("; ".join(problems))


def _struct(value: Column, given: T.StructType, wanted: T.StructType, path: str) -> Column:
    fields = AnyCase((field.name, field) for field in given.fields)
    absent = [field.name for field in wanted.fields if field.name not in fields]
    if absent:
        raise SchemaError(
            f"{path} lacks the field {', '.join(absent)} that the table has ({wanted.simpleString()}); select it, null will "
            "do, or rebuild the table with --full-refresh"
        )
    made = []
    for field in wanted.fields:
        source = fields[field.name]
        item = nested_cast(
            value.getField(source.name), source.dataType, field.dataType, f"{path}.{field.name}"
        )
        made.append(item.alias(field.name))
    return F.when(value.isNotNull(), F.struct(*made))


def _fits(given: T.DataType, wanted: T.DataType) -> bool:
    """Tell whether every value of a type is one of the other, so that the cast of a nested field loses nothing."""
    checks: tuple[Callable[[], bool], ...] = (
        lambda: isinstance(given, T.AtomicType) and isinstance(wanted, T.StringType),
        lambda: isinstance(given, T.NullType),
        lambda: isinstance(given, _INTEGERS) and isinstance(wanted, (T.FloatType, T.DoubleType)),
        lambda: isinstance(given, T.FloatType) and isinstance(wanted, T.DoubleType),
        lambda: (
            isinstance(given, _INTEGERS)
            and isinstance(wanted, _INTEGERS)
            and _INTEGERS.index(type(given)) <= _INTEGERS.index(type(wanted))
        ),
        lambda: (
            isinstance(given, T.DecimalType)
            and isinstance(wanted, T.DecimalType)
            and wanted.scale >= given.scale
            and wanted.precision - wanted.scale >= given.precision - given.scale
        ),
    )
    return any(check() for check in checks)
