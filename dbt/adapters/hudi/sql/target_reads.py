"""Statements that read the table which they change: in a subquery, or as the source of a MERGE."""

from __future__ import annotations

from collections.abc import Callable

from hudi_engine.spark.catalog import TableName
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame

from dbt.adapters.hudi.rows.own_rows import shown_state
from dbt.adapters.hudi.sql.condition_reads import name_is_read, names_in, subqueries
from dbt.adapters.hudi.sql.plans import JavaPlan
from dbt.adapters.hudi.sql.substituted import mentioned_tables
from dbt.adapters.hudi.sql.targets import Statement, Target


def state_for_subqueries(
    statement: Statement, target: Target, condition: JavaPlan | None = None
) -> TableState | None:
    """Return the table as it was before subqueries read it, which they then read so or newer; None where none of them does.

    Args:
        statement: An UPDATE or DELETE, or another statement whose condition is asked about.
        condition: The condition, None for all that an UPDATE or DELETE says.
    """
    if condition is None:
        names = _read_besides(statement)
    else:
        names = names_in(subqueries(condition))
    if not any(_is_read(statement, target, parts) for parts in names):
        return None
    return shown_state(statement.warehouse, statement.session, target)


def with_newest_source(
    statement: Statement, target: Target, decide: Callable[[DataFrame], DataFrame]
) -> Callable[[DataFrame], DataFrame]:
    """Return what a MERGE makes of the table's rows, whose source is read as they are or newer where it reads them too.

    Args:
        decide: Makes of the table's rows those that change, and has Spark read the source.
    """
    if not any(_is_read(statement, target, parts) for parts in _read_besides(statement)):
        return decide

    def decided(stored: DataFrame) -> DataFrame:
        """Show Spark what stands now: these rows have been found already, so a newer commit will be a conflict."""
        shown_state(statement.warehouse, statement.session, target)
        return decide(stored)

    return decided


def _read_besides(statement: Statement) -> list[list[str]]:
    """Return the names of tables and views behind that of the target, which an UPDATE, DELETE or MERGE says first."""
    _, *others = sorted(mentioned_tables(statement.plan))
    return [parts for _, _, parts, _ in others]


def _is_read(statement: Statement, target: Target, parts: list[str]) -> bool:
    return name_is_read(statement.session, TableName(target.schema, target.name), parts)
