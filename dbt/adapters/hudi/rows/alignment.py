"""Which columns of a model's query its table takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.write.rows import casts
from hudi_engine.table.write.fit import DELETE_MARKS, refuse_false_marks
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from dbt.adapters.hudi.logs import logger

MODEL_ADVICE = ". Select a value that does, or give the column another type: on_schema_change: sync_all_columns, or --full-refresh"


def fit_to_table(
    frame: DataFrame, table: T.StructType, *, fill_missing: bool = False, advice: str = MODEL_ADVICE
) -> DataFrame:
    """Name, order and cast the columns of a model as the table has them; see `casts.fit_to_table`."""
    return casts.fit_to_table(frame, table, fill_missing=fill_missing, advice=advice)


def misfits(frame: DataFrame, table: T.StructType) -> list[Column]:
    """Return texts that are null where a row's values fit the columns of the table."""
    given = spellings(frame.columns)
    fields = {field.name: field for field in frame.schema.fields}
    found = (casts.misfit(fields[given[each.name]], each) for each in table.fields if each.name in given)
    return [each for each in found if each is not None]


def chosen_columns(given: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the columns a run may write those a query has, quoted, and those it lacks.

    The mark of deleted rows is no column of the model's table and is taken whenever it is there.
    """
    if not wanted:
        return [quoted(name) for name in given], []
    # in the query's spelling, which alone Spark finds where spark.sql.caseSensitive is true
    spelled = spellings(given)
    present = [spelled[name] for name in wanted if name in spelled]
    marks = [name for name in given if name.lower() in DELETE_MARKS]
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
        named: Configs, such as ``unique_key``, whose columns every mode needs; those are named first.
    """
    check_named_columns(given, named or {})
    known = {name.lower() for name in wanted}
    new = [name for name in given if quoted(name).lower() not in known]
    others = f", and selects {', '.join(new)}, which it lacks (a column that was renamed?)" if new else ""
    raise DbtRuntimeError(
        f"the model no longer selects {', '.join(absent)} of {table}{others}; on_schema_change is 'ignore'. Select it under its "
        "name, or set on_schema_change to append_new_columns (the column stays, null in new rows) or sync_all_columns (it is "
        "dropped, with the values it has)"
    )


def name_ignored(table: str, given: Sequence[str], wanted: Collection[str]) -> None:
    """Log the columns of a query that on_schema_change ``ignore`` leaves out of its table."""
    known = {name.lower() for name in wanted}
    new = [name for name in given if quoted(name).lower() not in known]
    if new:
        logger.info(
            "{}: {} of the query is not in the table, and on_schema_change 'ignore' leaves it out; append_new_columns adds it",
            table,
            ", ".join(new),
        )


def with_delete_mark(table: T.StructType, frame: DataFrame) -> T.StructType:
    """Return a table's columns, with the mark of deleted rows when the query has one and the table has none yet."""
    known = {name.lower() for name in table.names}
    marks = [field for field in frame.schema.fields if field.name.lower() in DELETE_MARKS]
    refuse_false_marks(spark_to_arrow(T.StructType(marks)), spark_to_arrow(table))
    return T.StructType([*table.fields, *(field for field in marks if field.name.lower() not in known)])


def missing_columns(frame: DataFrame, table: T.StructType) -> list[str]:
    """Columns of the table that the query lacks."""
    given = {name.lower() for name in frame.columns}
    return [column.name for column in table.fields if column.name.lower() not in given]


def check_named_columns(columns: Sequence[str], named: Mapping[str, Iterable[str]]) -> None:
    """Raise when a query gives a column twice or lacks columns that configs name; all problems in one message."""
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
