"""SQL functions as small JSON files, for a catalog that does not keep them itself (PySpark 4)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from hudi_engine.errors import CorruptTableError
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.spark.jvm.catalog import functions_in
from hudi_engine.spark.jvm.plans import parse
from hudi_engine.spark.read.reason import spark_errors

_FORMAT = 1
_CREATE = "CreateUserDefinedFunction"


@dataclass(frozen=True)
class FunctionDefinition:
    """A permanent SQL function as it is kept in a file.

    Args:
        database: Schema in which unqualified names of the statement are looked up.
    """

    name: TableName
    statement: str
    database: str

    def to_json(self) -> bytes:
        """Format as the file's content."""
        raw = {"format": _FORMAT, "statement": self.statement, "database": self.database}
        return json.dumps(raw, indent=2).encode()

    @classmethod
    def from_json(cls, name: TableName, body: bytes, source: str) -> FunctionDefinition:
        """Parse a file.

        Raises:
            CorruptTableError: It is damaged; names ``source``.
        """
        try:
            raw: dict[str, Any] = json.loads(body)
            if raw["format"] != _FORMAT:
                raise ValueError(f"its format is {raw['format']!r}, not {_FORMAT}")
            return cls(name, str(raw["statement"]), str(raw["database"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptTableError(
                f"{source} is no readable function: {error!r}. Delete it and build the function again"
            ) from error

    def create(self, spark: SparkSession) -> None:
        """Create the function in a session unless it is there; fails as Spark does when its body is broken.

        Args:
            spark: A session that nobody else uses: its current schema is afterwards the function's.

        Raises:
            CorruptTableError: The statement is another than the CREATE FUNCTION of this name.
        """
        if self.name.name.lower() in function_names(spark, self.name.database):
            return
        self._check(spark)
        spark.catalog.setCurrentDatabase(self.database)
        spark.sql(self.statement)

    def _check(self, spark: SparkSession) -> None:
        # a file of the warehouse may make its function and do nothing else
        plan = parse(spark, self.statement)
        if plan.getClass().getSimpleName() == _CREATE:
            parts = plan.child().nameParts()
            if str(parts.last()).lower() == self.name.name.lower():
                return
        raise CorruptTableError(
            f"the kept definition of the function {self.name.label} does something else; delete it and build the function again"
        )


def function_names(spark: SparkSession, schema: str) -> set[str]:
    """Return the names, lower case, of the permanent functions of a schema; none when the schema does not exist."""
    return {name.lower() for name in functions_in(spark, schema)}


def create_all(
    spark: SparkSession, functions: Iterable[FunctionDefinition]
) -> list[tuple[FunctionDefinition, Exception]]:
    """Create functions, those that call others after them.

    Args:
        spark: A session that nobody else uses, see `FunctionDefinition.create`.

    Returns:
        Those that cannot be created, with the reason.
    """
    waiting = list(functions)
    failed: list[tuple[FunctionDefinition, Exception]] = []
    while waiting:
        failed = []
        for function in waiting:
            try:
                function.create(spark)
            except spark_errors(CorruptTableError) as error:
                failed.append((function, error))
        if len(failed) == len(waiting):
            break
        waiting = [function for function, _ in failed]
    return failed
