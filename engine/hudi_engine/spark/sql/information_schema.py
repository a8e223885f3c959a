"""`information_schema.tables` and `.schemata` in queries: Spark has neither, and packages such as dbt_utils query them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pyspark.sql import SparkSession

from hudi_engine.errors import StatementError
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.errors import SPARK_ERRORS
from hudi_engine.spark.sql.statements import without_leading_dot
from hudi_engine.spark.sql.table_names import with_view
from hudi_engine.spark.sql.warehouse import Warehouse

_SCHEMA = "information_schema"
_COLUMNS: Mapping[str, str] = {
    "tables": "table_catalog string, table_schema string, table_name string, table_type string",
    "schemata": "catalog_name string, schema_name string",
}


def named_in(warehouse: Warehouse, session: SparkSession, query: str, own_view: Callable[[str], str]) -> str:
    """Return a query with temporary names in place of the two.

    Args:
        own_view: Makes of a name one of the connection's own, to be dropped with it.

    Raises:
        StatementError: A view or table of Spark's that would be made of them, which would outlive the name.
    """
    if _SCHEMA not in query.lower():
        return query
    # packages put the database before it, which is empty here
    query = without_leading_dot(query, _SCHEMA)
    try:
        for table in _COLUMNS:
            view = own_view(f"dbt_hudi_{_SCHEMA}_{table}")
            changed = with_view(session, query, partial(_is_meant, table), view)
            if changed == query or session.catalog.databaseExists(_SCHEMA):
                continue
            if plans.kind(plans.parse(session, query)) in ("CreateView", "AlterViewAs"):
                raise StatementError(
                    f"{_SCHEMA}.{table} stands in a view, which would show the names of now: make it a table"
                )
            rows = list(_tables(warehouse, session) if table == "tables" else _schemata(warehouse, session))
            session.createDataFrame(rows, _COLUMNS[table]).createOrReplaceTempView(view)
            query = changed
    except SPARK_ERRORS:
        pass  # Spark runs it again and reports the syntax error with its own words
    return query


def _is_meant(table: str, parts: list[str]) -> bool:
    return [each.lower() for each in parts[-2:]] == [_SCHEMA, table]


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
