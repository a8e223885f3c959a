"""Conditions that read the table whose rows they choose, in a subquery: of models, operations and statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.table.state import TableState
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.hudi.rows.own_rows import Written, shown_state
from dbt.adapters.hudi.spark.warehouse import Warehouse
from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.plans import JavaPlan
from dbt.adapters.hudi.sql.substituted import mentioned_tables
from dbt.adapters.hudi.sql.table_reads import reads_table

_SUBQUERIES = frozenset(("ScalarSubquery", "ListQuery", "Exists"))


def shown_for_condition(
    warehouse: Warehouse,
    session: SparkSession,
    written: Written,
    texts: Iterable[str],
    *,
    bounds: bool = True,
) -> TableState | None:
    """Return the table as it was before subqueries read it, which they then read so or newer; None where none counts.

    Args:
        bounds: Whether it counts where all that is asked of the table is one value, the same for all rows, as in
            ``at > (select max(at) from ...)``; Spark is shown the table all the same.
    """
    table = TableName(written.schema, written.name)
    reading = [
        each
        for text in texts
        for each in _subqueries_of(session, text)
        if any(name_is_read(session, table, parts) for parts in names_in([each]))
    ]
    if not reading:
        return None
    state = shown_state(warehouse, session, written)
    return state if bounds or not all(_has_one_value(session, each) for each in reading) else None


def subqueries(condition: JavaPlan) -> Iterator[JavaPlan]:
    """Give the subqueries of a parsed condition."""
    return (each for each in plans.nodes(condition) if plans.kind(each) in _SUBQUERIES)


def names_in(queries: Iterable[JavaPlan]) -> list[list[str]]:
    """Return the names of tables and views that subqueries say, by their parts."""
    return [parts for each in queries for *_, parts, _ in mentioned_tables(each.plan())]


def name_is_read(session: SparkSession, table: TableName, parts: list[str]) -> bool:
    """Tell whether a name is that of a table, or of a view which reads it."""
    try:
        frame = session.table(".".join(map(quoted, parts)))
    except AnalysisException:
        return False  # files, or nothing, of which Spark will speak
    return reads_table(frame, table)


def _subqueries_of(session: SparkSession, text: str) -> list[JavaPlan]:
    if "select" not in text.lower() and "from" not in text.lower():
        return []
    parser = session._jsparkSession.sessionState().sqlParser()
    try:
        return list(subqueries(parser.parseExpression(text)))
    except PySparkException:
        return []  # which is said where the condition is asked


def _has_one_value(session: SparkSession, subquery: JavaPlan) -> bool:
    if plans.kind(subquery) != "ScalarSubquery":
        return False
    try:
        plans.frame(session, subquery.plan())
    except AnalysisException:
        return False  # it names columns of the rows around it
    return True
