"""The table to be in place of the table that is, in all that a test asks while it is compiled and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_engine.spark.sql.statements import first_keyword
from hudi_engine.spark.sql.table_names import with_view
from pyspark.sql import SparkSession

from dbt.adapters.hudi.model.plan import ModelPlan

_THIS = "this"
_QUERIES = ("select", "with", "from", "values", "table")


@dataclass(frozen=True)
class ToBe:
    """A view of the rows that a model's table is about to have."""

    plan: ModelPlan
    view: str

    def in_statement(self, session: SparkSession, statement: str) -> str:
        """Return a statement that reads the view where it is a query that named the table; any other one as it is."""
        if first_keyword(statement) not in _QUERIES:
            return statement
        return with_view(session, statement, lambda parts: self._is_meant(session, parts), self.view)

    def shown_for(self, schema: str | None, name: str | None) -> str | None:
        """Return the name of the view where a relation is the table, None where it is another one."""
        asked = (str(schema or "").lower(), str(name or "").lower())
        return f"`{self.view}`" if asked == self._own else None

    @property
    def _own(self) -> tuple[str, str]:
        return self.plan.schema.lower(), self.plan.name.lower()

    def _is_meant(self, session: SparkSession, parts: Sequence[str]) -> bool:
        lowered = [part.lower() for part in parts]
        if len(lowered) == 1:
            current = session.catalog.currentDatabase().lower()
            return lowered == [_THIS] or (current, *lowered) == self._own
        return tuple(lowered[-2:]) == self._own
