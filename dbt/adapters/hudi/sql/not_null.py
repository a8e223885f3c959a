"""NOT NULL of a CREATE TABLE: noted with the table, and looked at before the commit of every later statement that writes rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.catalog.entry_notes import EntryNotes
from hudi_engine.write.inspection import before_commit
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.spark.kept_notes import NOT_NULL
from dbt.adapters.hudi.sql.targets import Statement, Target

_WRITES = frozenset({"InsertIntoStatement", "OverwriteByExpression", "UpdateTable", "MergeIntoTable"})


def noted(schema: T.StructType) -> dict[str, str]:
    """Return the table property that says which columns of a CREATE TABLE must not be null; none for none."""
    names = [column.name for column in schema.fields if not column.nullable]
    return {NOT_NULL: ",".join(names)} if names else {}


@contextmanager
def enforced(statement: Statement, target: Target) -> Iterator[None]:
    """Stop a statement that would leave null in a column that must not have it, before anything of it is visible.

    Raises:
        DbtRuntimeError: Names the column and how many rows would lack a value.
    """
    if statement.kind not in _WRITES:
        yield
        return
    said = EntryNotes.load(statement.table(target).storage).properties.get(NOT_NULL, "")
    required = [name for name in said.split(",") if name]
    if not required:
        yield
        return

    def look(rows: DataFrame) -> None:
        known = {name.lower() for name in rows.columns}
        columns = [name for name in required if name.lower() in known]
        if not columns:
            return
        counts = rows.select(*[F.count_if(F.col(f"`{name}`").isNull()) for name in columns]).collect()[0]
        broken = [f"{name} ({count} row(s))" for name, count in zip(columns, counts, strict=True) if count]
        if broken:
            raise DbtRuntimeError(
                f"{target.label} is declared NOT NULL in {', '.join(broken)}, which would be null after this statement; nothing "
                "was written. Give a value"
            )

    with before_commit(look):
        yield
