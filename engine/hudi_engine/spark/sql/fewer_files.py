"""Queries that read a Hudi table by its name with a condition, from the files that may hold a row of it.

Spark reads a table's list of files and prunes folders and row groups of them; it does not know the metadata table. A table is
replaced by a temporary view on fewer files where its condition compares columns with literals.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from hudi_engine.errors import HudiError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.read.conditions import plan_of_condition
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import slices_frame
from hudi_engine.spark.sql.own_rows import meta_view
from hudi_engine.spark.sql.query import Query, mentioned_tables, table_text
from hudi_engine.spark.sql.statement import own_name
from hudi_engine.spark.sql.statements import first_keyword
from hudi_engine.table.data_skipping.plan import ReadPlan
from hudi_engine.table.state import TableState

_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
_QUERIES = ("select", "from", "explain", "with")
_WRITES = ("InsertIntoStatement", "OverwriteByExpression", "InsertIntoDir")
_NOT_USED = "no index is used, as the condition compares no text, whole number, date or timestamp of the table with a literal"


@dataclass(frozen=True)
class _Place:
    """A table in a query, below a condition: right below, or as a side of joins that are."""

    start: int
    end: int
    parts: list[str]
    alias: str | None
    condition: JavaPlan
    is_joined: bool


def with_fewer_files(query: Query) -> Query:
    """Return a query, or the EXPLAIN of one, with temporary views in place of Hudi tables of which it needs some files only."""
    is_query = _WHERE.search(query.text) and first_keyword(query.text) in _QUERIES
    if not is_query or query.plan is None:
        return query
    plan = query.plan.logicalPlan() if plans.kind(query.plan) == "ExplainCommand" else query.plan
    if plans.kind(plan) == "UnresolvedWith" and plans.kind(plan.child()) in _WRITES:
        return query
    places = sorted(_places(plan), key=lambda each: each.start)
    if any(len(each.parts) == 1 for each in places):
        # such a name may be that of a query of a WITH
        tables = {start for start, *_ in mentioned_tables(plan)}
        places = [each for each in places if each.start in tables]
    views, reads = [], []
    for place in places:
        try:
            found = _view_instead(query, place)
        except (HudiError, OSError):
            continue  # Spark reads the table, and reports what is wrong with it
        if found is None:
            continue
        read, view = found
        if isinstance(read, str) and first_keyword(query.text) != "explain":
            continue
        reads.append(f"{'.'.join(place.parts)}: {read}")
        if view is not None:
            called = place.parts[-1] if place.alias is None else None
            views.append((place.start, place.end, table_text(view, called)))
    return replace(query.with_views(views), reads=tuple(reads))


def explained(frame: DataFrame, reads: Sequence[str]) -> DataFrame:
    """Return the result of an EXPLAIN with lines on the files that the query reads."""
    text = "\n".join([*(row[0].rstrip("\n") for row in frame.collect()), "", "== Hudi Files ==", *reads, ""])
    return frame.sparkSession.createDataFrame([(text,)], "plan string")


def _view_instead(query: Query, place: _Place) -> tuple[ReadPlan | str, str | None] | None:
    """Return which files of a table its condition needs, and the name of a view on them; None for a table without indexes."""
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
    """Yield the tables that are below a condition."""
    kind = plans.kind(node)
    if kind == "Filter":
        yield from _joined(node.child(), node.condition(), is_joined=False)
    for each in (
        [*plans.items(node.innerChildren()), node.child()] if kind == "UnresolvedWith" else plans.below(node)
    ):
        yield from _places(each)


def _joined(node: JavaPlan, condition: JavaPlan, *, is_joined: bool) -> Iterator[_Place]:
    """Yield a table, or those of a join."""
    kind, below, alias = plans.kind(node), node, None
    if kind == "Join":
        for each in (node.left(), node.right()):
            yield from _joined(each, condition, is_joined=True)
        return
    if kind == "SubqueryAlias":
        below, alias = node.child(), str(node.alias())
    span = plans.source_range(below) if plans.kind(below) == "UnresolvedRelation" else None
    if span is not None:
        yield _Place(*span, plans.texts(below.multipartIdentifier()), alias, condition, is_joined)


def _make_view(
    session: SparkSession, state: TableState, place: _Place, name: Callable[[], str]
) -> tuple[ReadPlan | str, str | None]:
    """Plan the read of a condition, and make a view on its files where the indexes rule some out."""
    called = place.alias or place.parts[-1]
    found = plan_of_condition(
        session, state, place.condition, called, resolve_options({}), is_joined=place.is_joined
    )
    if found is None:
        return _NOT_USED, None
    read, plan = found
    if not plan.skips:
        return plan, None
    prepare_session(session)
    rows = slices_frame(session, state, read, plan.slices).drop(*meta_fields(operation=True))
    view = name()
    rows.createOrReplaceTempView(view)
    return plan, view
