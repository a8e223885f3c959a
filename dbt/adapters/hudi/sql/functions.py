"""CREATE FUNCTION and DROP FUNCTION of SQL functions: Spark runs them, the warehouse keeps them."""

from __future__ import annotations

from dbt.adapters.contracts.connection import AdapterResponse
from hudi_engine.spark.catalog import FunctionDefinition, TableName

from dbt.adapters.hudi.spark import functions
from dbt.adapters.hudi.spark.handle import Routed
from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.kept_names import is_kept
from dbt.adapters.hudi.sql.targets import Statement

_OK = AdapterResponse("OK")


def create_function(statement: Statement) -> Routed:
    """CREATE FUNCTION ... RETURN."""
    name = _name(statement)
    if statement.plan.ignoreIfExists() and (
        name.name.lower() in functions.names(statement.session, name.database)
        or is_kept(statement, FunctionDefinition, name)
    ):
        return Routed(_OK)
    functions.create(statement.session, statement.warehouse.directory, name, statement.text)
    return Routed(_OK)


def drop_function(statement: Statement) -> Routed:
    """DROP FUNCTION: Spark says what it says of one that is not there, and the kept definition goes."""
    name, directory = _name(statement), statement.warehouse.directory
    statement.session.sql(statement.text)
    if directory is not None:
        directory.remove_function(name.database.lower(), name.name)
    return Routed(_OK)


def _name(statement: Statement) -> TableName:
    child = statement.plan.child()
    parts = child.nameParts() if plans.hasattr_java(child, "nameParts") else child.multipartIdentifier()
    return TableName(*statement.names(plans.texts(parts)))
