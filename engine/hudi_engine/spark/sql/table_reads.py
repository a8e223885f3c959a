"""Which tables a query reads, by the plan that Spark has made of it."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.frames import analyzed_plan
from hudi_engine.spark.jvm.plans import JavaPlan

_SUFFIXES = ("", READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX)


def reads_table(frame: DataFrame, table: TableName, *, bounds: bool = True) -> bool:
    """Tell whether a query reads a table, itself or through views.

    Args:
        bounds: Whether it counts where all that is read of the table is one value that a filter compares rows with, as in
            ``where at > (select max(at) from ...)``.
    """
    wanted = {table.with_suffix(suffix).label.lower() for suffix in _SUFFIXES}
    found = _tables(analyzed_plan(frame), {}, bounds)
    return any(label in wanted for label in found)


def _tables(node: JavaPlan, definitions: dict[int, JavaPlan], bounds: bool) -> Iterator[str]:
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
        yield from _tables(each, definitions, bounds)


def _single_values(condition: JavaPlan) -> Iterator[JavaPlan]:
    """Give the plans of a condition's subqueries that have one value, the same for all rows."""
    for each in plans.nodes(condition):
        if plans.kind(each) == "ScalarSubquery" and each.outerAttrs().isEmpty():
            yield each.plan()
