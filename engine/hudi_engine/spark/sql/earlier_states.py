"""Temporary views in place of names in queries: earlier states of tables, meta columns, and ``information_schema``.

`TIMESTAMP AS OF`, `VERSION AS OF` and `hudi_table_changes(...)` are Hudi's words. Spark has no `information_schema`, which
packages such as dbt_utils query.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import StatementError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, META_FIELDS, meta_fields
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.spark.sql.own_rows import meta_view
from hudi_engine.spark.sql.query import Query, table_text
from hudi_engine.spark.sql.statement import own_name
from hudi_engine.spark.sql.statements import closing_bracket, first_keyword, without_leading_dot
from hudi_engine.spark.sql.warehouse import Warehouse
from hudi_engine.table.changes.window import CHANGE_TYPE, COMMITTED
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.state import TableState

_FUNCTION = "hudi_table_changes"
_WORDS = re.compile(rf"\bas\s+of\b|\b{_FUNCTION}\b", re.IGNORECASE)
_USAGE = (
    f"{_FUNCTION} takes 'schema.table', 'latest_state' or 'cdc', a start ('earliest', an instant or a moment, excluded) and, if "
    "wanted, an end (included), all as text"
)
# Nodes above a table that has an alias, or that no alias may follow.
_NAMING = ("SubqueryAlias", "UnresolvedSubqueryColumnAliases", "Sample")
_KINDS = ("latest_state", "cdc")
_TIMES = ("timestamp", "timestamp_ntz", "date")
_EPOCH = datetime.fromtimestamp(0, timezone.utc)
# What dbt makes of {{ ref('t') }} where it reads a part of it (samples, batches, --empty), with what follows it in the query.
_PART_OF = re.compile(
    r"(?P<begin>(?:\(select \* from )+)(?P<name>[\w.`]+)(?P<end>(?: (?:where (?:[^()]|\([^()]*\))*|limit \d+)\))+)"
    r"(?P<state>_r[ot]\b|\s+(?:for\s+)?(?:timestamp|system_time|version|system_version)\s+as\s+of\s+'[^']*')",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Place:
    """A stretch of a query, end excluded, its plan, and the name that its columns go by unless the query gives one."""

    start: int
    end: int
    node: JavaPlan
    called: str | None = None


def with_earlier_states(query: Query) -> Query:
    """Return a statement with temporary views in place of other states of Hudi tables."""
    query = query.with_text(_PART_OF.sub(_state_inside, query.text))
    if not _WORDS.search(query.text) or query.plan is None:
        return query
    views = []
    for place in sorted(_places(query.plan, query.text), key=lambda each: each.start):
        text = query.text[place.start : place.end]
        frame = _state(query, place.node, text)
        if frame is None:
            continue
        if plans.kind(query.plan) in ("CreateView", "AlterViewAs"):
            raise StatementError(
                f"{text} in a view is refused, as the view would show it as of now: make it a table"
            )
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        name = query.own_view(f"dbt_hudi_state_{digest}")
        frame.createOrReplaceTempView(name)
        views.append((place.start, place.end, table_text(name, place.called)))
    return query.with_views(views)


def _state(query: Query, node: JavaPlan, text: str) -> DataFrame | None:
    """Return the rows that are meant, None for a table that is not Hudi's."""
    return _as_of(query, node, text) if plans.kind(node) == "RelationTimeTravel" else _changes(query, node)


def _as_of(query: Query, node: JavaPlan, text: str) -> DataFrame | None:
    parts, _ = plans.target_parts(node.relation())
    version, timestamp = plans.option(node.version()), plans.option(node.timestamp())
    base = _base(query, parts)
    if base is None:
        return None
    when = version if timestamp is None else _literal(query.session, timestamp)
    if when is None:
        raise StatementError(
            f"{text} is refused: the time must be a text such as '2026-11-01 09:30:00' or an instant, no expression"
        )
    state = TableState.load(query.warehouse.table(query.session, base).storage)
    return rows_as_of(query.session, state, instant_as_of(state, str(when)))


def _changes(query: Query, node: JavaPlan) -> DataFrame:
    """Read the changes of a call of the function; its arguments have to be literals."""
    given = [_literal(query.session, each) for each in plans.items(node.functionArgs())]
    if not 3 <= len(given) <= 4 or None in given or given[1] not in _KINDS:
        shown = ", ".join("an expression" if each is None else repr(each) for each in given)
        raise StatementError(f"{_FUNCTION}({shown}) is refused: {_USAGE}")
    name, kind, start, end = (*map(str, given), *(["latest"] if len(given) == 3 else []))
    base = _base(query, name.replace("`", "").split("."))
    if base is None:
        raise StatementError(f"{_FUNCTION}: {name!r} is no Hudi table of the warehouse; {_USAGE}")
    table = query.warehouse.table(query.session, base)
    last = None if end == "latest" else end
    if kind == "cdc":
        return table.cdc(start, last)
    rows = table.changes(start, last, mode="latest").drop(CHANGE_TYPE)
    return rows.withColumnRenamed(COMMITTED, COMMIT_TIME)


def _base(query: Query, parts: list[str]) -> str | None:
    named = own_name(query.session, parts)
    return None if named is None else query.warehouse.hudi_base(query.session, *named)


def rows_as_of(session: SparkSession, state: TableState, instant: str | None) -> DataFrame:
    """Return a table's rows as of an instant (None for now), without Hudi's own columns."""
    rows = snapshot_frame(session, state, resolve_options({}), as_of=instant)
    state.check_still(instant)
    return rows.drop(*meta_fields(operation=True))


def _places(node: JavaPlan, text: str, above: str = "") -> Iterator[_Place]:
    """Find where a text names an earlier state, by the parser's positions; not below one, which is replaced as a whole."""
    kind = plans.kind(node)
    span = plans.source_range(node)
    if span is not None and kind == "RelationTimeTravel":
        named = plans.source_range(node.relation())
        if named is not None:
            parts, _ = plans.target_parts(node.relation())
            yield _Place(named[0], span[1], node, None if above in _NAMING else parts[-1])
        return
    if span is not None and kind == "UnresolvedTableValuedFunction":
        if [each.lower() for each in plans.texts(node.name())] == [_FUNCTION]:
            yield _Place(span[0], closing_bracket(text, span[0]), node)
        return
    for each in plans.below(node):
        yield from _places(each, text, kind)


def _state_inside(part: re.Match[str]) -> str:
    """Return dbt's query of a part of a table with the words behind it put at the table's name."""
    name, state = part["name"], part["state"]
    is_face = state.startswith("_")
    named = f"{name[:-1]}{state}`" if is_face and name.endswith("`") else f"{name}{state}"
    return f"{part['begin']}{named}{part['end']}"


def _literal(session: SparkSession, expression: JavaPlan) -> str | None:
    """Return the value of a literal as text, None for any other expression."""
    if plans.kind(expression) != "Literal":
        return None
    if str(expression.dataType().typeName()) not in _TIMES:
        return str(expression.value())
    # Spark holds a number there; a date is its first moment in the session's zone
    moment = F.unix_micros(plans.column(session, expression).cast("timestamp_ltz"))
    micros = session.sql("select 1").select(moment).collect()[0][0]
    return (
        None if micros is None else (_EPOCH + timedelta(microseconds=micros)).isoformat(" ", "microseconds")
    )


_META = re.compile(rf"\b(?:{'|'.join(META_FIELDS)})\b", re.IGNORECASE)
_QUERIES = ("select", "with", "from")
# What more columns would change, though nobody names them.
_BY_ALL_COLUMNS = ("Distinct", "Union", "Except", "Intersect", "Pivot", "Unpivot")


def with_meta_columns(query: Query) -> Query:
    """Return a query that names meta columns with temporary views that have them in place of Hudi tables.

    The names themselves lack the columns, as Spark hides no column from ``*``. A table below a ``*`` keeps its name, so that the
    ``*`` is the same in every query.
    """
    if not _META.search(query.text) or first_keyword(query.text) not in _QUERIES or query.plan is None:
        return query
    session, warehouse = query.session, query.warehouse
    starred = set(_below_stars(query.plan, is_star=True))

    def instead(parts: list[str], has_alias: bool) -> str | None:
        named = own_name(session, parts)
        base = None if named is None else warehouse.hudi_base(session, *named)
        if named is None or base is None:
            return None
        table, entry = warehouse.table(session, base), warehouse.entry(session, *named)
        reads_files = entry is not None and entry.kind == READ_OPTIMIZED
        frame = table.read_optimized() if reads_files else table.snapshot()
        view = query.own_view(meta_view(TableName(*named)))
        frame.createOrReplaceTempView(view)
        return table_text(view, None if has_alias else parts[-1])

    return query.with_tables(instead, without=starred)


def _below_stars(node: JavaPlan, *, is_star: bool) -> Iterator[int]:
    """Give the places of the tables whose columns a ``*`` stands for, or a query without a SELECT.

    Args:
        is_star: Whether there is one above.
    """
    kind = plans.kind(node)
    if kind == "UnresolvedRelation":
        span = plans.source_range(node)
        if span is not None and is_star:
            yield span[0]
        return
    if kind in ("Project", "Aggregate"):
        chosen = [*plans.items(node.projectList() if kind == "Project" else node.aggregateExpressions())]
        # of (select * from t limit 10), as dbt has it for a part of a table, the query around it chooses the columns
        is_star = is_star if _is_only_star(chosen) else any(map(_has_star, chosen))
    elif kind in _BY_ALL_COLUMNS or (kind == "Join" and "Natural" in str(node.joinType())):
        is_star = True
    inside = [] if kind == "UnresolvedWith" else [*plans.items(node.children())]
    for each in plans.below(node):
        yield from _below_stars(each, is_star=is_star if each in inside else True)


def _is_only_star(chosen: list[JavaPlan]) -> bool:
    return [plans.kind(each) for each in chosen] == ["UnresolvedStar"] and plans.option(
        chosen[0].target()
    ) is None


def _has_star(expression: JavaPlan) -> bool:
    """Return whether an expression is a ``*`` or has one, but for that of ``count(*)``."""
    kind = plans.kind(expression)
    if kind == "UnresolvedFunction" and plans.texts(expression.nameParts()) == ["count"]:
        return False
    return "Star" in kind or any(map(_has_star, plans.items(expression.children())))


_SCHEMA = "information_schema"
_COLUMNS: Mapping[str, str] = {
    "tables": "table_catalog string, table_schema string, table_name string, table_type string",
    "schemata": "catalog_name string, schema_name string",
}


def with_information_schema(query: Query) -> Query:
    """Return a query with temporary views in place of the two; refuses permanent views of them."""
    if _SCHEMA not in query.text.lower():
        return query
    # packages put the database before it, which is empty here
    query = query.with_text(without_leading_dot(query.text, _SCHEMA))
    plan, session, warehouse = query.plan, query.session, query.warehouse
    if plan is None or session.catalog.databaseExists(_SCHEMA):
        return query

    def instead(parts: list[str], has_alias: bool) -> str | None:
        schema, table = ([""] + [each.lower() for each in parts])[-2:]
        if schema != _SCHEMA or table not in _COLUMNS:
            return None
        if plans.kind(plan) in ("CreateView", "AlterViewAs"):
            raise StatementError(
                f"{_SCHEMA}.{table} in a view is refused, as it would show the names of now: make it a table"
            )
        view = query.own_view(f"dbt_hudi_{_SCHEMA}_{table}")
        rows = list(_tables(warehouse, session) if table == "tables" else _schemata(warehouse, session))
        session.createDataFrame(rows, _COLUMNS[table]).createOrReplaceTempView(view)
        return table_text(view, None if has_alias else parts[-1])

    return query.with_tables(instead)


def _tables(warehouse: Warehouse, session: SparkSession) -> Iterator[tuple[str | None, str, str, str]]:
    """Yield tables and views, without the second faces of merge-on-read tables: a union of names would have rows twice."""
    for schema in warehouse.schemas(session):
        for entry in warehouse.entries(session, schema):
            if not entry.is_face:
                kind = "VIEW" if entry.reads_only else "BASE TABLE"
                yield None, entry.name.database, entry.name.name, kind


def _schemata(warehouse: Warehouse, session: SparkSession) -> Iterator[tuple[str | None, str]]:
    for schema in warehouse.schemas(session):
        yield None, schema
