"""A model's input compared with its table, where the changes in between are no longer known."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.spark.catalog.sql_text import type_text
from hudi_engine.spark.changes.read import changes_between
from hudi_engine.spark.sql.earlier_states import rows_as_of
from hudi_engine.table.changes.window import CHANGE_TYPE, COMMITTED, DELETE, Span
from hudi_engine.table.state import TableState
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def full_compare(session: SparkSession, source: TableState, target: TableState, end: str | None) -> DataFrame:
    """Return all rows of an input as inserts, and a delete for each row of the model that the input lacks.

    Rows are matched by the model's key and by its partition columns that the input has. A delete has the values of the model's row
    in the columns that both have, and null for one that is no value of the input's type.
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
    shared = list(dict.fromkeys((*keys, *places)))
    lost = stored.alias("stored").join(
        rows.alias("given"), [_same(stored, rows, known[name], given[name]) for name in shared], "left_anti"
    )
    kinds = {known[name]: rows.schema[given[name]].dataType for name in shared}
    _check_deletes(stored, kinds, source, target)
    columns = [
        _cast_or_null(stored, f"`{known[field.name]}`", field.dataType).alias(field.name)
        if field.name in known
        else F.lit(None).cast(field.dataType).alias(field.name)
        for field in rows.schema.fields
        if field.name not in (CHANGE_TYPE, COMMITTED)
    ]
    deletes = lost.select(
        *columns, F.lit(DELETE).alias(CHANGE_TYPE), F.lit(end).cast("string").alias(COMMITTED)
    )
    return rows.unionByName(deletes)


def _same(stored: DataFrame, given: DataFrame, ours: str, theirs: str) -> Column:
    """Whether a row of the model has the value of the input's row, in the model's type."""
    left, right, kind = F.col(f"stored.`{ours}`"), f"given.`{theirs}`", stored.schema[ours].dataType
    same = kind == given.schema[theirs].dataType
    return left.eqNullSafe(F.col(right) if same else _cast_or_null(given.alias("given"), right, kind))


def _check_deletes(
    stored: DataFrame, kinds: Mapping[str, DataType], source: TableState, target: TableState
) -> None:
    """Refuse rows of the model whose keys are no values of the input's types: no delete could say which row it is of."""
    for name, kind in kinds.items():
        own = stored.schema[name].dataType
        if own == kind:
            continue
        there = stored.select(
            F.col(f"`{name}`").alias("own"), _cast_or_null(stored, f"`{name}`", kind).alias("cast")
        )
        lost = there.where(~F.col("own").eqNullSafe(_cast_or_null(there, "cast", own))).first()
        if lost is not None:
            raise DbtRuntimeError(
                f"on_gap is 'compare', but {target.config.name!r} has a row whose {name} is {lost['own']!r}, of type "
                f"{own.simpleString()}, and {name} of the input {source.config.name!r} is {kind.simpleString()} now, of which "
                "that is no value: the row could not be deleted. Run the model with --full-refresh"
            )


def _cast_or_null(frame: DataFrame, column: str, kind: DataType) -> Column:
    """Cast a column, to null where its value is none of the type."""
    cast = _tried(column, kind)
    try:
        frame.select(cast)
    except AnalysisException:  # no value of the one type is one of the other
        return F.lit(None).cast(kind)
    return cast


def _tried(column: str, kind: DataType) -> Column:
    if hasattr(Column, "try_cast"):
        return F.col(column).try_cast(kind)
    # Spark before 4 has it in SQL only, where the names in a nested type may not be what SQL calls a name
    is_nested = isinstance(kind, (ArrayType, MapType, StructType))
    return F.col(column).cast(kind) if is_nested else F.expr(f"try_cast({column} as {type_text(kind)})")
