"""Rows of a table that meet a filter, read from the files that may hold one of them."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import Options
from hudi_engine.format.merge.filters import Filters, typed_tuples
from hudi_engine.format.merge.table_reader import as_its_readers_do
from hudi_engine.format.schema.meta_fields import META_SCHEMA, with_meta_columns
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.table.data_skipping.plan import ReadPlan, plan_read
from hudi_engine.table.data_skipping.predicate import PruningPredicate, pruning_predicate
from hudi_engine.table.state import TableState


def filtered_frame(
    spark: SparkSession, state: TableState, options: Options, filters: Filters, *, as_of: str | None = None
) -> DataFrame:
    """Return the rows of a table that meet a filter, the five meta columns first.

    Args:
        filters: Tuples as `hudi_engine.read` takes them. NaN is Spark's: larger than every number, and equal to itself.

    Raises:
        ConfigError, SchemaError: Filters that make no sense.
        TimelineError, CorruptTableError: As `snapshot_frame` does.
    """
    if isinstance(filters, pc.Expression):
        raise ConfigError(
            "filters is an expression of pyarrow; give tuples, or a condition of Spark to where()"
        )
    schema = _schema(state, as_of)
    tuples, predicate = typed_tuples(filters, schema), _predicate(state, options, filters, schema)
    frame = snapshot_frame(spark, state, options, as_of=as_of, predicate=predicate)
    return frame.where(_any([_all([_column(*each) for each in alternative]) for alternative in tuples]))


def filtered_plan(
    state: TableState, options: Options, filters: Filters, *, as_of: str | None = None
) -> ReadPlan:
    """Return which files `filtered_frame` reads, and what ruled out the others; raises as it does."""
    schema = _schema(state, as_of)
    read = as_its_readers_do(state.read_context(schema, options, as_of=as_of), state.timeline)
    return plan_read(state, read, _predicate(state, options, filters, schema), options)


def _schema(state: TableState, as_of: str | None) -> pa.Schema:
    state.timeline.check_readable(as_of)
    data_schema = state.readable_schema(as_of)
    if data_schema is None:
        return META_SCHEMA
    return with_meta_columns(data_schema, operation=state.config.keeps_operations)


def _predicate(state: TableState, options: Options, filters: Filters, schema: pa.Schema) -> PruningPredicate:
    return replace(pruning_predicate(filters, schema, state.config, options), bounds_have_nan=False)


def _all(conditions: list[Column]) -> Column:
    return reduce(lambda one, other: one & other, conditions)


def _any(conditions: list[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions)


def _column(name: str, operator: str, value: Any) -> Column:
    """Return a filter as a condition; a row without a value passes ``not in``, and ``in`` of values with None."""
    column = F.col(f"`{name.replace('`', '``')}`")
    if operator in ("in", "not in"):
        members = value.to_pylist() if isinstance(value, pa.Array) else list(value)
        found = column.isin([_literal(each) for each in members if each is not None])
        known = F.coalesce(found, F.lit(None in members))
        return known if operator == "in" else ~known
    literal = _literal(value)
    compared = {
        "=": column == literal,
        "==": column == literal,
        "!=": column != literal,
        "<": column < literal,
        "<=": column <= literal,
        ">": column > literal,
        ">=": column >= literal,
    }
    return compared[operator]


def _literal(value: Any) -> Column:
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return F.lit(value.isoformat(" ")).cast("timestamp_ntz")
    return F.lit(value)
