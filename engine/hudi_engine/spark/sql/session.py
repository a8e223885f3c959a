"""The statements of one client on a Spark session of its own: a statement in, Arrow out."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from hudi_engine.errors import StatementError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.spark.jvm.catalog import invalidate_cached_tables
from hudi_engine.spark.read.collect import query_rows
from hudi_engine.spark.read.small_plans import interpreted_if_small
from hudi_engine.spark.sql.held_drops import HeldDrops, Holds
from hudi_engine.spark.sql.jobs import JobGroup
from hudi_engine.spark.sql.listings import with_hudi_names
from hudi_engine.spark.sql.router import StatementRouter
from hudi_engine.spark.sql.statement import OtherCatalogError, Statement, StatementResult
from hudi_engine.spark.sql.statements import split_statements
from hudi_engine.spark.sql.warehouse import StatementWarehouse

_SHOWN_LENGTH = 200
_COUNTS = T.StructType(
    [
        T.StructField(f"num_{each}_rows", T.LongType(), False)
        for each in ("affected", "updated", "deleted", "inserted")
    ]
)
Shown = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Rows:
    """The result of a statement.

    Args:
        schema: The columns with Spark's types; none for a statement without a result.
        table: The rows.
        changed: Rows that a write changed; None for anything else.
    """

    schema: T.StructType
    table: pa.Table
    changed: int | None = None

    def window(self, start: int, count: int) -> pa.Table:
        """Return rows from ``start`` on, at most ``count``, without a copy."""
        return self.table.slice(start, count)


NO_ROWS = Rows(T.StructType(), pa.table({}))


class StatementSession:
    """A Spark session with temporary views, settings and a current schema of its own.

    Args:
        spark: The session; ``SparkSession.newSession()`` makes one that shares Java and tables with others.
        hold_drops_s: How long a DROP TABLE of a Hudi table waits for the CREATE TABLE that replaces it, in seconds; 0 not to wait.
        holds: The drops that wait, shared by all sessions of the warehouse.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: StatementWarehouse,
        router: StatementRouter,
        *,
        hold_drops_s: float = 0,
        holds: Holds | None = None,
    ) -> None:
        self.spark = spark
        self.warehouse = warehouse
        self._router = router
        self.held = HeldDrops(spark, warehouse, {} if holds is None else holds, hold_drops_s)

    def run(self, text: str, jobs: JobGroup, shown: Shown | None = None) -> Rows:
        """Run one or more statements, separated by semicolons, and return the rows of the last one.

        Args:
            jobs: What to cancel the statement by.
            shown: Makes of a result's frame the one that is collected, such as with texts for some types.
        """
        statements = split_statements(text)
        if not statements:
            raise StatementError("there is no statement in the text; send one, such as SELECT 1")
        views: list[str] = []

        def own_view(stem: str) -> str:
            views.append(f"{stem}_{uuid.uuid4().hex}")
            return views[-1]

        rows = NO_ROWS
        try:
            for statement in statements:
                jobs.enter(self.spark, " ".join(statement.split())[:_SHOWN_LENGTH])
                taken = self.held.take(statement)
                if jobs.cancelled:
                    raise StatementError(jobs.cancelled)
                rows = NO_ROWS if taken is None else self._rows(taken, own_view, shown)
            return rows
        finally:
            for view in views:
                self.spark.catalog.dropTempView(view)

    def rewritten(self, query: str, own_view: Callable[[str], str]) -> str:
        """Return a query as Spark itself may run it: it reads earlier states, meta columns and ``information_schema``.

        Args:
            own_view: Makes names of temporary views, which the caller drops once the rows are read.
        """
        taken = self.held.take(query)
        return self._router.with_states(self.spark, query if taken is None else taken, own_view)

    def look_again(self) -> None:
        """See what other processes have written to tables since."""
        invalidate_cached_tables(self.spark)

    def hudi_base(self, parts: list[str]) -> str | None:
        """Return the folder of the Hudi table behind the parts of a name; None for anything else."""
        statement = Statement(self.spark, "", None, self.warehouse, set())
        try:
            named = statement.lasting(parts)
        except OtherCatalogError:
            return None
        return None if named is None else self.warehouse.hudi_base(self.spark, *named)

    def _rows(self, statement: str, own_view: Callable[[str], str], shown: Shown | None) -> Rows:
        self.look_again()
        result = self._router.run(self.spark, statement, own_view)
        if result.frame is None:
            return _counts(result)
        frame = with_hudi_names(self.warehouse, result.frame, statement)
        if not frame.schema.fields:
            return NO_ROWS
        collected = frame if shown is None else shown(frame)
        with interpreted_if_small(collected, EngineOptions.SMALL_PLAN_BYTES.default):
            return Rows(frame.schema, query_rows(collected))

    def close(self) -> None:
        """End the session: what it holds is carried out, and its temporary views and cached settings are dropped."""
        self.held.release()


def _counts(result: StatementResult) -> Rows:
    """Return the rows that a write changed, as one row."""
    write = result.write
    if write is None:
        return NO_ROWS
    counts = (write.rows_updated, write.rows_deleted, write.rows_inserted)
    columns = [[sum(counts)], *([each] for each in counts)]
    table = pa.table([pa.array(each, pa.int64()) for each in columns], names=_COUNTS.fieldNames())
    return Rows(_COUNTS, table, sum(counts))
