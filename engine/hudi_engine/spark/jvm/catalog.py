"""Spark's catalogs of names: the session's, and the external one below it, which a metastore may keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from hudi_engine.spark.jvm.plans import JavaPlan, items
from hudi_engine.spark.jvm.session import gateway, java_session

JavaCatalog = Any
JavaIdentifier = Any


def session_catalog(session: SparkSession) -> JavaCatalog:
    """Return Spark's ``SessionCatalog``."""
    return java_session(session).sessionState().catalog()


def external_catalog(session: SparkSession) -> JavaCatalog:
    """Return Spark's ``ExternalCatalog``, which has names in lower case only."""
    return java_session(session).sharedState().externalCatalog()


def has_hive_catalog(session: SparkSession) -> bool:
    """Whether a Hive metastore keeps the names."""
    return str(external_catalog(session).unwrapped().getClass().getSimpleName()) == "HiveExternalCatalog"


def hive_settings(session: SparkSession) -> Any:
    """Return the ``HiveConf`` of the metastore that keeps the names."""
    return external_catalog(session).unwrapped().client().getState().getConf()


def identifier_of(session: SparkSession, sql: str) -> JavaIdentifier:
    """Return a table's ``TableIdentifier`` of its name in SQL."""
    # through the parser, since each part of a class's full name would cost a call of Java
    return java_session(session).sessionState().sqlParser().parseTableIdentifier(sql)


def analyzed_statement(session: SparkSession, sql: str) -> JavaPlan:
    """Return the command that Spark makes of a statement, which is not run."""
    state = java_session(session).sessionState()
    return state.analyzer().execute(state.sqlParser().parsePlan(sql))


def parsed_columns(session: SparkSession, text: str) -> Any:
    """Return the ``StructType`` of columns as a CREATE TABLE has them."""
    return java_session(session).sessionState().sqlParser().parseTableSchema(text)


def some(session: SparkSession, value: Any) -> Any:
    """Return a Scala ``Option`` of a value, empty for None."""
    return gateway(session).scala.Option.apply(value)


def database_exists(session: SparkSession, schema: str) -> bool:
    """Whether the session's catalog has a schema, whose name need not be an identifier."""
    return bool(session_catalog(session).databaseExists(schema))


def is_temporary_view(session: SparkSession, name: str) -> bool:
    """Whether a name without a schema is that of a temporary view."""
    return bool(session_catalog(session).getTempView(name).isDefined())


def temporary_view_mark(session: SparkSession, name: str) -> int | None:
    """Return a number that a temporary view has until one is made in its place; None where there is none."""
    found = session_catalog(session).getRawTempView(name)
    return int(gateway(session).java.lang.System.identityHashCode(found.get())) if found.isDefined() else None


def invalidate_cached_tables(session: SparkSession) -> None:
    """Make a session look again at the tables it has read, which others may have written to since."""
    session_catalog(session).invalidateAllCachedTables()


def functions_in(session: SparkSession, schema: str) -> Iterator[str]:
    """Give the names of a schema's permanent functions; none where there is no such schema."""
    catalog = external_catalog(session)
    if catalog.databaseExists(schema.lower()):
        yield from map(str, items(catalog.listFunctions(schema.lower(), "*")))


def forget_statistics(session: SparkSession, identifier: JavaIdentifier) -> None:
    """Remove a size that ANALYZE TABLE stored with a table's entry; Spark adds up its files then."""
    session_catalog(session).alterTableStats(identifier, some(session, None))
