"""Puts a temporary view in the place of a table that a query names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.plans import JavaPlan


def with_view(session: SparkSession, query: str, is_meant: Callable[[list[str]], bool], view: str) -> str:
    """Return a query that reads a view where it named a table.

    Args:
        session: The session that parses it.
        query: The query.
        is_meant: Tells by the parts of a name whether it is the table.
        view: Name of the view.

    Raises:
        ParseException: The query is none.
    """
    pieces, position = [], 0
    for start, end, parts, has_alias in sorted(_tables(plans.parse(session, query), None)):
        if not is_meant(parts):
            continue
        # columns may be qualified by the table's name
        pieces += [query[position:start], f"`{view}`" if has_alias else f"`{view}` as `{parts[-1]}`"]
        position = end
    return "".join([*pieces, query[position:]])


def _tables(node: JavaPlan, above: JavaPlan | None) -> Iterator[tuple[int, int, list[str], bool]]:
    kind = plans.kind(node)
    if kind == "UnresolvedRelation":
        span = plans.source_range(node)
        if span is not None:
            aliased = above is not None and plans.kind(above) == "SubqueryAlias"
            yield (*span, plans.texts(node.multipartIdentifier()), aliased)
        return
    for each in plans.below(node):
        yield from _tables(each, node)
