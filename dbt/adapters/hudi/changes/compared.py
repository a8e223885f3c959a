"""A model's input compared with its table, where the changes in between cannot be told any more."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.changes.columns import CHANGE_TYPE, COMMITTED, DELETE
from hudi_engine.changes.read import changes_between
from hudi_engine.changes.window import Span
from hudi_engine.config.options import resolve_options
from hudi_engine.schema.any_case import spellings
from hudi_engine.table_state import TableState
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from dbt.adapters.hudi.spark.earlier import rows_as_of


def compared_with(
    session: SparkSession, source: TableState, target: TableState, end: str | None
) -> DataFrame:
    """Return all rows of an input as inserts, and a delete for each row of the model that the input lacks.

    Rows are told apart by the model's key, and by its partition columns that the input has: where a key is unique in the whole
    table the delete of one that went to another partition loses against its row. A delete has the values of the model's row in the
    columns that both have, and null for one that is none of the input's type.

    Args:
        session: The session.
        source: The input.
        target: The model's table.
        end: State of the input.

    Raises:
        DbtRuntimeError: The model has no key, or the input lacks a column of it.
        TimelineError: Files of the model or of its input may have gone while they were listed.
    """
    options = resolve_options({})
    rows = changes_between(session, source, options, Span(None, end))
    assert rows is not None, "a table that was read before has columns"
    keys = [name.lower() for name in target.config.record_key_fields]
    given = spellings(rows.columns)
    missing = [name for name in keys if name not in given]
    if missing or not keys:
        raise DbtRuntimeError(
            f"on_gap is 'compare', but {target.config.name!r} has the key {', '.join(keys) or 'none'}, and the input "
            f"{source.config.name!r} has no column {', '.join(missing) or 'to compare by'}; use on_gap='snapshot', or run the "
            "model with --full-refresh"
        )
    stored = rows_as_of(session, target, None)
    known = spellings(stored.columns)
    places = [
        name
        for each in target.config.partition_fields
        if (name := each.name.lower()) in given and name in known
    ]
    same = [F.col(f"stored.`{known[key]}`") == F.col(f"given.`{given[key]}`") for key in keys]
    # as texts, for their types may differ, and what cannot be made the other type would fail the run
    same += [
        F.col(f"stored.`{known[name]}`")
        .cast("string")
        .eqNullSafe(F.col(f"given.`{given[name]}`").cast("string"))
        for name in places
        if name not in keys
    ]
    gone = stored.alias("stored").join(rows.alias("given"), same, "left_anti")
    columns = [
        _if_it_can(F.col(f"`{known[field.name]}`"), field.dataType).alias(field.name)
        if field.name in known
        else F.lit(None).cast(field.dataType).alias(field.name)
        for field in rows.schema.fields
        if field.name not in (CHANGE_TYPE, COMMITTED)
    ]
    told = gone.select(*columns, F.lit(DELETE).alias(CHANGE_TYPE), F.lit(end).cast("string").alias(COMMITTED))
    return rows.unionByName(told)


def _if_it_can(column: Column, kind: DataType) -> Column:
    """Cast a column, to null where its value is none of the type; Spark before 4 has no word for it, and does so unless told."""
    return column.try_cast(kind) if hasattr(Column, "try_cast") else column.cast(kind)
