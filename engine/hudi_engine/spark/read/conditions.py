"""Conditions of SQL on one table: which of its files may hold a row that meets them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_engine.format.config.options import Options
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.table_reader import as_its_readers_do
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.plans import JavaPlan
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
    state: TableState, condition: JavaPlan, called: str, options: Options
) -> tuple[ReadContext, ReadPlan] | None:
    """Return how to read the rows of a table that a condition may hold for; None where no index is of use for it.

    Args:
        condition: Parsed, and not analysed.
        called: The table's name in the condition; empty where its columns have none.
    """
    schema = state.data_schema() if state.config.metadata_partitions else None
    if schema is None:
        return None
    filters = [each for each in _filters(condition, called.lower(), schema) if each is not None]
    if not filters:
        return None
    read = as_its_readers_do(state.read_context(schema, options), state.timeline)
    predicate = replace(pruning_predicate(filters, read.schema, state.config, options), bounds_have_nan=False)
    return read, plan_read(state, read, predicate, options)


def _filters(condition: JavaPlan, called: str, schema: pa.Schema) -> Iterator[tuple[str, str, Any] | None]:
    """Yield what a condition compares with literals, all of which its rows must meet; None for what is not understood."""
    kind = plans.kind(condition)
    if kind == "And":
        for each in (condition.left(), condition.right()):
            yield from _filters(each, called, schema)
    elif kind in _OPERATORS:
        left, right, operator = condition.left(), condition.right(), _OPERATORS[kind]
        if plans.kind(left) == "Literal":
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        yield _compared(left, operator, [right], called, schema)
    elif kind == "In":
        yield _compared(condition.value(), "in", [*plans.items(condition.list())], called, schema)


def _compared(
    column: JavaPlan, operator: str, literals: list[JavaPlan], called: str, schema: pa.Schema
) -> tuple[str, str, Any] | None:
    """Return a comparison of a column with literals that Spark does not cast the column for."""
    if plans.kind(column) != "UnresolvedAttribute" or any(plans.kind(each) != "Literal" for each in literals):
        return None
    parts, exact = plans.texts(column.nameParts()), spellings(schema.names)
    if len(parts) == 2 and parts[0].lower() == called and parts[0] not in exact:
        parts = parts[1:]
    if len(parts) != 1 or parts[0] not in exact:
        return None
    name = exact[parts[0]]
    values = [_value(each, schema.field(name).type) for each in literals]
    if any(value is None for value in values):
        return None
    return name, operator, values if operator == "in" else values[0]


def _value(literal: JavaPlan, kind: pa.DataType) -> Any:
    """Return a literal as a value of a column's type; None where Spark would compare the two as another type."""
    value, given = literal.value(), str(literal.dataType().typeName())
    if value is None:
        return None
    if pa.types.is_string(kind):
        return str(value) if given == "string" else None
    if pa.types.is_integer(kind):
        return int(value) if given in ("integer", "long") else None
    if pa.types.is_date32(kind):
        if given == "date":
            return _EPOCH + datetime.timedelta(days=int(value))
        if given == "string" and _DAY.fullmatch(str(value)):
            with suppress(ValueError):  # 2024-02-30 is no day, and null in Spark
                return datetime.date.fromisoformat(str(value))
    return None
