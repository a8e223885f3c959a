"""`information_schema.tables` and `.schemata` in queries: Spark has neither, and packages such as dbt_utils query them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyspark.sql import SparkSession

from hudi_engine.errors import StatementError
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.errors import SPARK_ERRORS
from hudi_engine.spark.sql.statements import without_leading_dot
from hudi_engine.spark.sql.table_names import with_tables_replaced
from hudi_engine.spark.sql.warehouse import Warehouse

_SCHEMA = "information_schema"
_COLUMNS: Mapping[str, str] = {
    "tables": "table_catalog string, table_schema string, table_name string, table_type string",
    "schemata": "catalog_name string, schema_name string",
}


def named_in(warehouse: Warehouse, session: SparkSession, query: str, own_view: Callable[[str], str]) -> str:
    """Return a query with temporary views, named by ``own_view``, in place of the two; refuses permanent views of them."""
    if _SCHEMA not in query.lower():
        return query
    # packages put the database before it, which is empty here
    query = without_leading_dot(query, _SCHEMA)
    try:
        plan = plans.parse(session, query)
    except SPARK_ERRORS:
        return query  # Spark runs it again and reports the syntax error with its own words
    if session.catalog.databaseExists(_SCHEMA):
        return query

    def instead(parts: list[str], has_alias: bool) -> str | None:
        schema, table = ([""] + [each.lower() for each in parts])[-2:]
        if schema != _SCHEMA or table not in _COLUMNS:
            return None
        if plans.kind(plan) in ("CreateView", "AlterViewAs"):
            raise StatementError(
                f"{_SCHEMA}.{table} in a view is refused, as it would show the names of now: make it a table"
            )
        view = own_view(f"dbt_hudi_{_SCHEMA}_{table}")
        rows = list(_tables(warehouse, session) if table == "tables" else _schemata(warehouse, session))
        session.createDataFrame(rows, _COLUMNS[table]).createOrReplaceTempView(view)
        return f"`{view}`" if has_alias else f"`{view}` as `{parts[-1]}`"

    return with_tables_replaced(query, plan, instead)


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
