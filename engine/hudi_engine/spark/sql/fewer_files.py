"""Queries that read a Hudi table by its name with a condition, from the files that may hold a row of it.

Spark reads a table's list of files and prunes folders and row groups of them; it does not know the metadata table. A table is
replaced by a temporary view on fewer files where its condition compares columns with literals.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hudi_engine.errors import HudiError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.merge.table_reader import as_its_readers_do
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import slices_frame
from hudi_engine.spark.sql.own_rows import meta_view
from hudi_engine.spark.sql.query import Query, table_text
from hudi_engine.spark.sql.statement import own_name
from hudi_engine.spark.sql.statements import first_keyword
from hudi_engine.table.data_skipping.plan import ReadPlan, plan_read
from hudi_engine.table.data_skipping.predicate import pruning_predicate
from hudi_engine.table.state import TableState

_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
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


@dataclass(frozen=True)
class _Place:
    """A table in a query, right below a condition."""

    start: int
    end: int
    parts: list[str]
    alias: str | None
    condition: JavaPlan


def with_fewer_files(query: Query) -> Query:
    """Return a query, or the EXPLAIN of one, with temporary views in place of Hudi tables of which it needs some files only."""
    is_query = _WHERE.search(query.text) and first_keyword(query.text) in ("select", "from", "explain")
    if not is_query or query.plan is None:
        return query
    plan = query.plan.logicalPlan() if plans.kind(query.plan) == "ExplainCommand" else query.plan
    views, reads = [], []
    for place in sorted(_places(plan), key=lambda each: each.start):
        try:
            found = _view_instead(query, place)
        except (HudiError, OSError):
            continue  # Spark reads the table, and reports what is wrong with it
        if found is None:
            continue
        read, view = found
        reads.append(f"{'.'.join(place.parts)}: {read}")
        if view is not None:
            called = place.parts[-1] if place.alias is None else None
            views.append((place.start, place.end, table_text(view, called)))
    return replace(query.with_views(views), reads=tuple(reads))


def explained(frame: DataFrame, reads: Sequence[str]) -> DataFrame:
    """Return the result of an EXPLAIN with lines on the files that the query reads."""
    text = "\n".join([*(row[0].rstrip("\n") for row in frame.collect()), "", "== Hudi Files ==", *reads, ""])
    return frame.sparkSession.createDataFrame([(text,)], "plan string")


def _view_instead(query: Query, place: _Place) -> tuple[ReadPlan, str | None] | None:
    """Return which files of a table its condition needs, and the name of a view on them; None where no index is asked."""
    session, warehouse = query.session, query.warehouse
    named = own_name(session, place.parts)
    base = None if named is None else warehouse.hudi_base(session, *named)
    if named is None or base is None:
        return None
    entry, table = warehouse.entry(session, *named), warehouse.table(session, base)
    is_face = entry is not None and entry.kind == READ_OPTIMIZED
    if is_face or not table.config.metadata_partitions:
        return None
    digest = hashlib.sha256(f"{place.start} {query.text}".encode()).hexdigest()[:16]
    view = f"{meta_view(TableName(*named))}_{digest}"
    return _make_view(session, TableState.load(table.storage), place, lambda: query.own_view(view))


def _places(node: JavaPlan) -> Iterator[_Place]:
    """Yield the tables that are right below a condition."""
    if plans.kind(node) == "Filter":
        below, alias = node.child(), None
        if plans.kind(below) == "SubqueryAlias":
            below, alias = below.child(), str(below.alias())
        span = plans.source_range(below) if plans.kind(below) == "UnresolvedRelation" else None
        if span is not None:
            yield _Place(*span, plans.texts(below.multipartIdentifier()), alias, node.condition())
            return
    if plans.kind(node) != "UnresolvedWith":  # a name may be that of a query of the WITH
        for each in plans.below(node):
            yield from _places(each)


def _make_view(
    session: SparkSession, state: TableState, place: _Place, name: Callable[[], str]
) -> tuple[ReadPlan, str | None] | None:
    """Plan the read of a condition, and make a view on its files where the indexes rule some out."""
    options, schema = resolve_options({}), state.data_schema()
    if schema is None:
        return None
    called = (place.alias or place.parts[-1]).lower()
    filters = [each for each in _filters(place.condition, called, schema) if each is not None]
    if not filters:
        return None
    read = as_its_readers_do(state.read_context(schema, options), state.timeline)
    predicate = replace(pruning_predicate(filters, read.schema, state.config, options), bounds_have_nan=False)
    plan = plan_read(state, read, predicate, options)
    if plan.is_listed or not any(step.skipped for step in plan.steps):
        return plan, None
    prepare_session(session)
    rows = slices_frame(session, state, read, plan.slices).drop(*meta_fields(operation=True))
    view = name()
    rows.createOrReplaceTempView(view)
    return plan, view


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
