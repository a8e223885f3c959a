"""Conditions of SQL on one table: which of its files may hold a row that meets them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_engine.format.config.options import Options
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.table_reader import as_its_readers_do
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.read.periods import (
    Period,
    column_and_pattern,
    on_clock,
    period_of,
    session_zone,
    time_of,
)
from hudi_engine.table.data_skipping.plan import ReadPlan, plan_read
from hudi_engine.table.data_skipping.predicate import pruning_predicate
from hudi_engine.table.state import TableState

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_EPOCH = datetime.date(1970, 1, 1)
_OPERATORS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def plan_of_condition(
    spark: SparkSession, state: TableState, condition: JavaPlan, called: str, options: Options
) -> tuple[ReadContext, ReadPlan] | None:
    """Return how to read the rows of a table that a condition may hold for; None where no index is of use for it.

    Args:
        condition: Parsed, and not analysed.
        called: The table's name in the condition; empty where its columns have none.
    """
    schema = state.data_schema() if state.config.metadata_partitions else None
    if schema is None:
        return None
    filters = [*_filters(condition, called.lower(), schema, session_zone(spark))]
    if not filters:
        return None
    read = as_its_readers_do(state.read_context(schema, options), state.timeline)
    predicate = replace(pruning_predicate(filters, read.schema, state.config, options), bounds_have_nan=False)
    return read, plan_read(state, read, predicate, options)


def _filters(
    condition: JavaPlan, called: str, schema: pa.Schema, zone: ZoneInfo | None
) -> Iterator[tuple[str, str, Any]]:
    """Yield what a condition compares with literals, all of which its rows must meet; what is not understood is left out."""
    kind = plans.kind(condition)
    if kind == "And":
        for each in (condition.left(), condition.right()):
            yield from _filters(each, called, schema, zone)
    elif kind in _OPERATORS:
        left, right, operator = condition.left(), condition.right(), _OPERATORS[kind]
        if plans.kind(left) == "Literal":
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        yield from _compared(left, operator, [right], called, schema, zone)
    elif kind == "In":
        yield from _compared(condition.value(), "in", [*plans.items(condition.list())], called, schema, zone)


def _compared(
    value: JavaPlan,
    operator: str,
    literals: list[JavaPlan],
    called: str,
    schema: pa.Schema,
    zone: ZoneInfo | None,
) -> list[tuple[str, str, Any]]:
    """Return a comparison of a column, or of a function of its times, with literals that Spark does not cast the column for."""
    if any(plans.kind(each) != "Literal" for each in literals):
        return []
    function = column_and_pattern(value)
    name = _column(value if function is None else function[0], called, schema)
    if name is None:
        return []
    kind = schema.field(name).type
    if function is not None:
        return _in_periods(name, operator, [period_of(each, function[1]) for each in literals], kind, zone)
    values = [_value(each, kind, zone) for each in literals]
    if any(each is None for each in values):
        return []
    return [(name, operator, values if operator == "in" else values[0])]


def _column(named: JavaPlan, called: str, schema: pa.Schema) -> str | None:
    """Return the column of the table that a part of a condition names."""
    if plans.kind(named) != "UnresolvedAttribute":
        return None
    parts, exact = plans.texts(named.nameParts()), spellings(schema.names)
    if len(parts) == 2 and parts[0].lower() == called and parts[0] not in exact:
        parts = parts[1:]
    return exact.get(parts[0]) if len(parts) == 1 else None


def _in_periods(
    name: str, operator: str, periods: Sequence[Period | None], kind: pa.DataType, zone: ZoneInfo | None
) -> list[tuple[str, str, Any]]:
    """Return the comparison of a function of times as comparisons of its column; of several periods their hull."""
    known = [each for each in periods if each is not None]
    is_time = pa.types.is_timestamp(kind) and kind.tz is not None and zone is not None
    if len(known) < len(periods) or not (is_time or pa.types.is_date32(kind)):
        return []
    start, end = min(each.start for each in known), max(each.end for each in known)
    if pa.types.is_date32(kind) and end.time() != datetime.time():
        return []  # hours of a date
    one_side = {"<": ("<", start), "<=": ("<", end), ">": (">=", end), ">=": (">=", start)}
    sides = [one_side[operator]] if operator in one_side else [(">=", start), ("<", end)]
    return [(name, each, on_clock(moment, kind, zone)) for each, moment in sides]


def _value(literal: JavaPlan, kind: pa.DataType, zone: ZoneInfo | None) -> Any:
    """Return a literal as a value of a column's type; None where Spark would compare the two as another type."""
    value, given = literal.value(), str(literal.dataType().typeName())
    if value is None:
        return None
    if pa.types.is_string(kind):
        return str(value) if given == "string" else None
    if pa.types.is_integer(kind):
        return int(value) if given in ("integer", "long") else None
    if pa.types.is_timestamp(kind):
        return time_of(literal, kind, zone)
    if pa.types.is_date32(kind):
        if given == "date":
            return _EPOCH + datetime.timedelta(days=int(value))
        if given == "string" and _DAY.fullmatch(str(value)):
            with suppress(ValueError):  # 2024-02-30 is no day, and null in Spark
                return datetime.date.fromisoformat(str(value))
    return None
