"""The tables that a query names, and temporary views in place of some."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import SparkSession

from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.errors import SPARK_ERRORS
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.sql.warehouse import Warehouse


@dataclass(frozen=True)
class Query:
    """A query before it runs; each text of it is parsed once at most.

    Args:
        own_view: Returns the whole name of a temporary view for the beginning of one.
        reads: For each table of which files may be skipped, a line with how many are read.
    """

    warehouse: Warehouse
    session: SparkSession
    text: str
    own_view: Callable[[str], str]
    reads: tuple[str, ...] = ()

    @cached_property
    def plan(self) -> JavaPlan | None:
        """The parsed query; None where it has a syntax error, which Spark reports when it runs it."""
        try:
            return plans.parse(self.session, self.text)
        except SPARK_ERRORS:
            return None

    def with_text(self, text: str) -> Query:
        """Return the query with another text."""
        return self if text == self.text else replace(self, text=text)

    def with_views(self, views: Iterable[tuple[int, int, str]]) -> Query:
        """Return the query with texts in place of some stretches, each given by start and end."""
        return self.with_text(spliced(self.text, views))

    def with_tables(
        self, instead: Callable[[list[str], bool], str | None], without: Collection[int] = ()
    ) -> Query:
        """Return the query with the texts that ``instead`` gives for a table's parts and whether it has an alias.

        Args:
            without: Where tables begin that keep their names.
        """
        return self if self.plan is None else self.with_views(_instead(self.plan, instead, without))


def spliced(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with others in place of stretches of it, each given by start and end, in any order."""
    pieces, position = [], 0
    for start, end, other in sorted(replacements):
        pieces += [text[position:start], other]
        position = end
    return "".join([*pieces, text[position:]])


def table_text(view: str, called: str | None) -> str:
    """Return a view as a query names it.

    Args:
        called: Name that its columns go by, as they may be qualified by that of the table; None where the query has an alias.
    """
    return f"`{view}`" if called is None else f"`{view}` as {quoted(called)}"


def with_view(session: SparkSession, query: str, is_meant: Callable[[list[str]], bool], view: str) -> str:
    """Return a query that reads a view where it named a table by parts for which ``is_meant``."""

    def instead(parts: list[str], has_alias: bool) -> str | None:
        return table_text(view, None if has_alias else parts[-1]) if is_meant(parts) else None

    return spliced(query, _instead(plans.parse(session, query), instead))


def with_texts(query: str, plan: JavaPlan, instead: Callable[[list[str], bool], str | None]) -> str:
    """Return a query with other texts in place of tables; see `Query.with_tables`."""
    return spliced(query, _instead(plan, instead))


def _instead(
    plan: JavaPlan, instead: Callable[[list[str], bool], str | None], without: Collection[int] = ()
) -> Iterator[tuple[int, int, str]]:
    for start, end, parts, has_alias in sorted(mentioned_tables(plan)):
        text = None if start in without else instead(parts, has_alias)
        if text is not None:
            yield start, end, text


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
