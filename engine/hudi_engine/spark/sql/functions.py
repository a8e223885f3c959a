"""SQL functions: made by Spark 4, kept by the warehouse for the next process."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hudi_engine.errors import StatementError
from hudi_engine.spark.catalog import (
    DirectoryCatalog,
    FunctionDefinition,
    TableName,
    function_names,
    identifier,
)
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql.ddl import is_kept
from hudi_engine.spark.sql.statement import Statement, StatementResult

_FIRST_VERSION = 4


def check_version(session: SparkSession, name: str) -> None:
    """Refuse a function in a Spark older than 4, which has no SQL functions."""
    if int(session.version.split(".")[0]) < _FIRST_VERSION:
        raise StatementError(
            f"function {name}: SQL functions need PySpark 4, and this is Spark {session.version}; install pyspark>=4, or "
            "write the function as a macro"
        )


def create(
    session: SparkSession, directory: DirectoryCatalog | None, name: TableName, statement: str
) -> None:
    """Run a CREATE FUNCTION and keep it in the folder catalog; a metastore (None) keeps functions itself."""
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


def create_function(statement: Statement) -> StatementResult:
    """CREATE FUNCTION ... RETURN."""
    name = _name(statement)
    if statement.plan.ignoreIfExists() and (
        name.name.lower() in names(statement.session, name.database)
        or is_kept(statement, FunctionDefinition, name)
    ):
        return StatementResult()
    create(statement.session, statement.warehouse.directory, name, statement.text)
    return StatementResult()


def drop_function(statement: Statement) -> StatementResult:
    """DROP FUNCTION: Spark drops it or reports that it is not there, and the kept definition is removed."""
    name, directory = _name(statement), statement.warehouse.directory
    statement.session.sql(statement.text)
    if directory is not None:
        directory.remove_function(name.database.lower(), name.name)
    return StatementResult()


def _name(statement: Statement) -> TableName:
    child = statement.plan.child()
    parts = child.nameParts() if plans.hasattr_java(child, "nameParts") else child.multipartIdentifier()
    return TableName(*statement.names(plans.texts(parts)))
