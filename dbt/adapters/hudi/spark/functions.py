"""SQL functions of the warehouse: made by Spark 4, kept for the next process."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.catalog import (
    DirectoryCatalog,
    FunctionDefinition,
    TableName,
    function_names,
    identifier,
)
from pyspark.sql import SparkSession

_FIRST_VERSION = 4


def check_version(session: SparkSession, name: str) -> None:
    """Refuse a function in a Spark that has no SQL functions.

    Raises:
        DbtRuntimeError: The session's Spark is older than 4.
    """
    if int(session.version.split(".")[0]) < _FIRST_VERSION:
        raise DbtRuntimeError(
            f"function {name}: SQL functions need PySpark 4, and this is Spark {session.version}; install pyspark>=4, or "
            "write the function as a macro"
        )


def create(
    session: SparkSession, directory: DirectoryCatalog | None, name: TableName, statement: str
) -> None:
    """Run a CREATE FUNCTION and keep it.

    Args:
        directory: The catalog of folders, None with a metastore, which keeps functions itself.
    """
    check_version(session, name.label)
    session.sql(statement)
    if directory is not None:
        kept = TableName(name.database.lower(), name.name)
        directory.save_function(FunctionDefinition(kept, statement, session.catalog.currentDatabase()))


def drop(session: SparkSession, directory: DirectoryCatalog | None, name: TableName) -> None:
    """Drop a function; no error when it is not there."""
    session.sql(f"drop function if exists {identifier(name.database)}.{identifier(name.name)}")
    if directory is not None:
        directory.remove_function(name.database.lower(), name.name)


def names(session: SparkSession, schema: str) -> list[str]:
    """Names of the functions of a schema, lower case and sorted; none when it does not exist."""
    return sorted(function_names(session, schema))
