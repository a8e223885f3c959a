"""Names that another process has given since this one learnt the names of the warehouse."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import CorruptTableError
from hudi_engine.spark.catalog import FunctionDefinition, TableName
from hudi_engine.spark.catalog.view_file import ViewDefinition
from hudi_engine.spark.read.reason import reason_of, spark_errors

from dbt.adapters.hudi.sql.targets import Statement


def is_kept(statement: Statement, kind: type[ViewDefinition | FunctionDefinition], name: TableName) -> bool:
    """Make the session know a view or function that the warehouse keeps under a name, as it is; returns whether there is one.

    Raises:
        DbtRuntimeError: Spark cannot make it.
    """
    directory, kept = statement.warehouse.directory, TableName(name.database.lower(), name.name)
    try:
        return directory is not None and directory.restore(statement.session, kind, kept)
    except spark_errors(CorruptTableError) as error:
        what = "view" if kind is ViewDefinition else "function"
        raise DbtRuntimeError(
            f"the {what} {name.label} is there, as another process has made it, but cannot be used: {reason_of(error)}. "
            f"CREATE OR REPLACE {what.upper()} makes it anew"
        ) from error
