"""Which tables a query names and reads, and a temporary view in the place of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame, SparkSession

from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.frames import analyzed_plan
from hudi_engine.spark.jvm.plans import JavaPlan

_SUFFIXES = ("", READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX)


def with_view(session: SparkSession, query: str, is_meant: Callable[[list[str]], bool], view: str) -> str:
    """Return a query that reads a view where it named a table by parts for which ``is_meant``."""

    def instead(parts: list[str], has_alias: bool) -> str | None:
        if not is_meant(parts):
            return None
        # columns may be qualified by the table's name
        return f"`{view}`" if has_alias else f"`{view}` as `{parts[-1]}`"

    return with_tables_replaced(query, plans.parse(session, query), instead)


def with_tables_replaced(sql: str, plan: JavaPlan, instead: Callable[[list[str], bool], str | None]) -> str:
    """Return a statement with the texts that ``instead`` gives for a table's parts and whether it has an alias."""
    pieces, position = [], 0
    for start, end, parts, has_alias in sorted(mentioned_tables(plan)):
        text = instead(parts, has_alias)
        if text is not None:
            pieces += [sql[position:start], text]
            position = end
    return "".join([*pieces, sql[position:]])


def mentioned_tables(plan: JavaPlan) -> Iterator[tuple[int, int, list[str], bool]]:
    """Return where a statement names tables, by which parts, and whether with an alias; a name of a WITH is no table."""
    return _tables(plan, None, frozenset())


def _tables(
    node: JavaPlan, above: JavaPlan | None, queries: frozenset[str]
) -> Iterator[tuple[int, int, list[str], bool]]:
    """Return where a plan names tables, by which parts, and whether with an alias; a name of a WITH around it is no table."""
    kind = plans.kind(node)
    if kind == "UnresolvedRelation":
        span, parts = plans.source_range(node), plans.texts(node.multipartIdentifier())
        if span is not None and not (len(parts) == 1 and parts[0].lower() in queries):
            aliased = above is not None and plans.kind(above) == "SubqueryAlias"
            yield (*span, parts, aliased)
        return
    if kind == "UnresolvedWith":
        yield from _tables_of_with(node, queries)
        return
    for each in plans.below(node):
        yield from _tables(each, node, queries)


def _tables_of_with(node: JavaPlan, queries: frozenset[str]) -> Iterator[tuple[int, int, list[str], bool]]:
    recurses = plans.hasattr_java(node, "allowRecursion") and node.allowRecursion()
    for each in plans.items(node.innerChildren()):
        # a query sees those before it, and itself where it may recurse
        later = queries | {str(each.alias()).lower()}
        yield from _tables(each, node, later if recurses else queries)
        queries = later
    yield from _tables(node.child(), node, queries)


def reads_table(frame: DataFrame, table: TableName, *, bounds: bool = True) -> bool:
    """Tell whether a query reads a table, itself or through views.

    Args:
        bounds: Whether it counts where all that is read of the table is one value that a filter compares rows with, as in
            ``where at > (select max(at) from ...)``.
    """
    wanted = {table.with_suffix(suffix).label.lower() for suffix in _SUFFIXES}
    found = _read_tables(analyzed_plan(frame), {}, bounds)
    return any(label in wanted for label in found)


def _read_tables(node: JavaPlan, definitions: dict[int, JavaPlan], bounds: bool) -> Iterator[str]:
    """Give the names of the tables and views that a plan reads, in lower case; a WITH counts where it is used."""
    kind = plans.kind(node)
    below = [*plans.items(node.children()), *plans.items(node.subqueries())]
    if kind == "WithCTE":
        definitions.update((int(each.id()), each) for each in plans.items(node.cteDefs()))
        below = [node.plan()]
    elif kind == "CTERelationRef":
        used = definitions.pop(int(node.cteId()), None)
        below = [] if used is None else [used]
    elif kind == "SubqueryAlias":
        if qualifier := plans.texts(node.identifier().qualifier()):
            yield f"{qualifier[-1]}.{node.alias()}".lower()
    elif kind == "Filter" and not bounds:
        compared = [*_single_values(node.condition())]
        below = [each for each in below if each not in compared]
    for each in below:
        yield from _read_tables(each, definitions, bounds)


def _single_values(condition: JavaPlan) -> Iterator[JavaPlan]:
    """Give the plans of a condition's subqueries that have one value, the same for all rows."""
    for each in plans.nodes(condition):
        if plans.kind(each) == "ScalarSubquery" and each.outerAttrs().isEmpty():
            yield each.plan()
