"""Brings the columns of a query to those of a table, by name and type, without losing a value in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED, META_FIELDS
from hudi_engine.spark.catalog.sql_text import type_text
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.write.rows.marks import exact_marks, refuse_false_marks
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.column import stored_type
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.rows.nested_types import nested_cast

META_PREFIX = "_hoodie_"
_INFINITE = float("inf")
# Mark a row as deleted in an upsert: a model may select the first, and the table keeps it; the other is never stored.
_MARKS = (IS_DELETED, DELETES)
_ADVICE = ". Select a value that does, or give the column another type: on_schema_change: sync_all_columns, or --full-refresh"


def drop_meta_columns(frame: DataFrame) -> DataFrame:
    """Return the frame without Hudi's own columns, which ``select *`` over a Hudi source brings along.

    Only some of them were named by the query on purpose, which is told. The marks of deleted rows stay, under the names that
    Hudi looks for.
    """
    drop = [c for c in frame.columns if c.lower().startswith(META_PREFIX) and c.lower() not in _MARKS]
    if drop and not {c.lower() for c in drop} >= {*META_FIELDS}:
        logger.warning("{}", told_of_dropped(drop))
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
        advice: Ends the message about a value that does not fit; None for what is true of models.
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
                except DbtRuntimeError as problem:
                    raise problem from error
        raise


def check_cast(frame: DataFrame, source: T.StructField, target: T.StructField, advice: str = _ADVICE) -> None:
    """Raise DbtRuntimeError where Spark casts no value of a column of a frame to the type of the table's column."""
    try:
        frame.select(exact_cast(source.name, source.dataType, target.dataType, target.name))
    except AnalysisException as error:
        raise DbtRuntimeError(
            f"column {target.name} is {source.dataType.simpleString()} in the query and "
            f"{target.dataType.simpleString()} in the table, and Spark casts no such value to the other{advice}"
        ) from error


def chosen_columns(given: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the columns a run may write those a query has, quoted, and those it lacks.

    The mark of deleted rows is no column of the model's table and is taken whenever it is there.

    Args:
        wanted: Columns as the schema change mode leaves them; none means all.
    """
    if not wanted:
        return [quoted(name) for name in given], []
    # in the query's spelling, which alone Spark finds where spark.sql.caseSensitive is true
    spelled = spellings(given)
    present = [spelled[name] for name in wanted if name in spelled]
    marks = [name for name in given if name.lower() in _MARKS]
    absent = [name for name in wanted if name not in spelled]
    return [quoted(name) for name in (*present, *marks)], absent


def refuse_absent(
    table: str,
    absent: Sequence[str],
    given: Sequence[str],
    wanted: Collection[str],
    named: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Refuse a query that lacks columns of its table where on_schema_change is ``ignore``.

    Args:
        wanted: Those of them that the table has, quoted; others may be what it lacks, under another name.
        named: Configs, such as ``unique_key``, by whose columns no mode goes without; those are told first.

    Raises:
        DbtRuntimeError: Always.
    """
    check_named_columns(given, named or {})
    known = {name.lower() for name in wanted}
    new = [name for name in given if quoted(name).lower() not in known]
    beside = f", and selects {', '.join(new)}, which it lacks (a column that was renamed?)" if new else ""
    raise DbtRuntimeError(
        f"the model no longer selects {', '.join(absent)} of {table}{beside}; on_schema_change is 'ignore'. Select it under its "
        "name, or set on_schema_change to append_new_columns (the column stays, null in new rows) or sync_all_columns (it is "
        "dropped, with the values it has)"
    )


def with_delete_mark(table: T.StructType, frame: DataFrame) -> T.StructType:
    """Return a table's columns, with the mark of deleted rows when the query has one and the table has none yet.

    Raises:
        SchemaError: The table has it in a spelling under which no row is deleted.
    """
    known = {name.lower() for name in table.names}
    marks = [field for field in frame.schema.fields if field.name.lower() in _MARKS]
    refuse_false_marks(spark_to_arrow(T.StructType(marks)), spark_to_arrow(table))
    return T.StructType([*table.fields, *(field for field in marks if field.name.lower() not in known)])


def missing_columns(frame: DataFrame, table: T.StructType) -> list[str]:
    """Columns of the table that the query lacks."""
    given = {name.lower() for name in frame.columns}
    return [column.name for column in table.fields if column.name.lower() not in given]


def exact_cast(
    source: str, given: T.DataType, wanted: T.DataType, name: str, place: Column | None = None
) -> Column:
    """Cast a column; a value that does not fit fails the query instead of becoming null or wrapping around.

    Args:
        place: Where the value stands, text that ends the message.
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


def check_named_columns(columns: Sequence[str], named: Mapping[str, Iterable[str]]) -> None:
    """Raise when a query gives a column twice or lacks columns that configs name; all problems in one message.

    Args:
        named: Config and the columns it names; dots reach into structs, what follows a colon is no part of the name.
    """
    times = Counter(name.lower() for name in columns)
    problems = [
        f"the column {name!r} is selected {count} times; give each a name of its own"
        for name, count in times.items()
        if count > 1
    ]
    for config, names in named.items():
        absent = [name for name in names if name.split(".")[0].split(":")[0].lower() not in times]
        if absent:
            problems.append(
                f"{config} names {', '.join(map(repr, absent))}, but the model's columns are {', '.join(columns)}; "
                "correct the config or select the column"
            )
    if problems:
        raise DbtRuntimeError("\n".join(problems))
