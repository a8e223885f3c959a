"""Conditions of SQL on one table: which of its files may hold a row that meets them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
    on_clock,
    period_of,
    session_zone,
    time_function,
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
_Filter = tuple[str, str, Any]
_MOST_ALTERNATIVES = 64
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def plan_of_condition(
    spark: SparkSession,
    state: TableState,
    condition: JavaPlan,
    called: str,
    options: Options,
    *,
    is_joined: bool = False,
) -> tuple[ReadContext, ReadPlan] | None:
    """Return how to read the rows of a table that a condition may hold for; None where no index is of use for it.

    Args:
        condition: Parsed, and not analysed.
        called: The table's name in the condition; empty where its columns have none.
        is_joined: Whether the condition is on a join, so that columns without the table's name may be another table's.
    """
    schema = state.data_schema() if state.config.metadata_partitions else None
    if schema is None:
        return None
    table = _Table(called.lower(), schema, session_zone(spark), is_joined)
    filters = table.alternatives(condition)
    if not all(filters):
        return None
    read = as_its_readers_do(state.read_context(schema, options), state.timeline)
    predicate = replace(pruning_predicate(filters, read.schema, state.config, options), bounds_have_nan=False)
    return read, plan_read(state, read, predicate, options)


@dataclass(frozen=True)
class _Table:
    """A table as a condition names its columns."""

    called: str
    schema: pa.Schema
    zone: ZoneInfo | None
    is_joined: bool

    def alternatives(self, condition: JavaPlan) -> list[list[_Filter]]:
        """Return what a condition compares with literals: all of one alternative. What is not understood is left out.

        No row of nulls meets an alternative that has a comparison, so that rows which a condition on a join leaves out may be
        left out of the table too, whatever the kind of the join.
        """
        kind = plans.kind(condition)
        if kind == "And":
            left, right = self.alternatives(condition.left()), self.alternatives(condition.right())
            if len(left) * len(right) > _MOST_ALTERNATIVES:
                return min(left, right, key=len)
            return [[*one, *other] for one in left for other in right]
        if kind == "Or":
            both = [*self.alternatives(condition.left()), *self.alternatives(condition.right())]
            return both if all(both) and len(both) <= _MOST_ALTERNATIVES else [[]]
        return [self._comparison(kind, condition)]

    def _comparison(self, kind: str, condition: JavaPlan) -> list[_Filter]:
        if kind in _OPERATORS:
            left, right, operator = condition.left(), condition.right(), _OPERATORS[kind]
            if plans.kind(left) == "Literal":
                left, right, operator = right, left, _MIRRORED.get(operator, operator)
            return self._compared(left, operator, [right])
        if kind == "In":
            return self._compared(condition.value(), "in", [*plans.items(condition.list())])
        if kind == "UnresolvedFunction" and plans.texts(condition.nameParts()) == ["between"]:
            value, low, high = plans.items(condition.arguments())
            return [*self._compared(value, ">=", [low]), *self._compared(value, "<=", [high])]
        return []

    def _compared(self, value: JavaPlan, operator: str, given: list[JavaPlan]) -> list[_Filter]:
        """Return a comparison of a column, or of a function of its times, with literals that Spark does not cast the column for."""
        function = time_function(value)
        name = self._column(value if function is None else function.column)
        if name is None:
            return []
        kind = self.schema.field(name).type
        literals = [_literal(each, kind) for each in given]
        if any(plans.kind(each) != "Literal" for each in literals):
            return []
        if function is not None:
            if function.is_text and operator in ("<", "<=") and pa.types.is_timestamp(kind):
                return []  # the year 10000 of 9999-12-31 in another zone is a text before all others
            periods = [period_of(each, function.pattern) for each in literals]
            return _in_periods(name, operator, periods, kind, self.zone)
        values = [_value(each, kind, self.zone) for each in literals]
        if any(each is None for each in values):
            return []
        return [(name, operator, values if operator == "in" else values[0])]

    def _column(self, named: JavaPlan) -> str | None:
        """Return the column of the table that a part of a condition names."""
        if plans.kind(named) != "UnresolvedAttribute":
            return None
        parts, exact = plans.texts(named.nameParts()), spellings(self.schema.names)
        is_qualified = len(parts) == 2 and parts[0].lower() == self.called
        if self.is_joined and not is_qualified:
            return None
        if is_qualified and parts[0] not in exact:
            parts = parts[1:]
        return exact.get(parts[0]) if len(parts) == 1 else None


def _literal(given: JavaPlan, kind: pa.DataType) -> JavaPlan:
    """Return the text of ``cast('2026-01-05' as timestamp)``, which a column of that type is compared with just so."""
    if plans.kind(given) != "Cast" or plans.kind(given.child()) != "Literal":
        return given
    to, text = str(given.dataType().typeName()), str(given.child().dataType().typeName())
    is_same = pa.types.is_timestamp(kind) if to == "timestamp" else to == "date" and pa.types.is_date32(kind)
    return given.child() if is_same and text == "string" else given


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
