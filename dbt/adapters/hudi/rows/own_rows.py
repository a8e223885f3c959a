"""A query whose rows take the place of those that it reads, and what others write to them from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hudi_engine.errors import TableNotFoundError
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.snapshot.manifest import current_manifest
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import table_storage
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.spark.folders import same_place
from dbt.adapters.hudi.spark.session import invalidate_cached_tables
from dbt.adapters.hudi.spark.warehouse import Warehouse
from dbt.adapters.hudi.sql.table_reads import reads_table


class Written(Protocol):
    """What rows are written to: schema, name and folder of a table."""

    @property
    def schema(self) -> str:
        """Schema."""

    @property
    def name(self) -> str:
        """Table."""

    @property
    def base(self) -> str:
        """Folder."""


def with_state_read(
    warehouse: Warehouse,
    session: SparkSession,
    written: Written,
    code: str,
    analysed: Callable[[], DataFrame],
) -> tuple[DataFrame, TableState | None]:
    """Return the rows of a query that are written to a table, and the table as it was before they were read from it.

    None where the query reads none of its rows, or does not name the table, as through a view alone. That a filter compares the
    rows of other tables with one value of it, as the newest time that it has, makes no row: the table takes those rows whatever
    others write meanwhile.

    Args:
        written: The model, or the table of a statement.
        analysed: Has Spark analyse it, which fixes the files that are read.
    """
    before = shown_state(warehouse, session, written) if written.name.lower() in code.lower() else None
    frame = analysed()
    if before is None or not reads_table(frame, TableName(written.schema, written.name), bounds=False):
        return frame, None
    return frame, before


def statement_with_state_read(
    warehouse: Warehouse,
    session: SparkSession,
    written: Written,
    analysed: Callable[[], DataFrame],
) -> tuple[DataFrame, TableState | None]:
    """Do what `with_state_read` does for a statement, and also where the query names the table through views alone.

    Only where it reads the table, the table is looked at, and the query then analysed anew.
    """
    frame = analysed()
    if not reads_table(frame, TableName(written.schema, written.name), bounds=False):
        return frame, None
    before = shown_state(warehouse, session, written)
    return (frame if before is None else analysed()), before


def shown_state(warehouse: Warehouse, session: SparkSession, written: Written) -> TableState | None:
    """Return a table, which Spark then reads so or newer; None where it is not there, or not where it is written to."""
    base = warehouse.hudi_base(session, written.schema, written.name)
    if base is None or not same_place(base, written.base):
        return None
    try:
        state = TableState.load(table_storage(base))
    except TableNotFoundError:
        # a name whose folder is gone, which the query says, or a build mends
        return None
    if current_manifest(state.storage, state.timeline, state.config) is None:
        warehouse.show(session, written.schema, written.name, warehouse.table(session, base))
    invalidate_cached_tables(session)
    return state
