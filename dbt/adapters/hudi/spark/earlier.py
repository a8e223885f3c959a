"""A table as it was, under the columns that its name shows."""

from __future__ import annotations

from hudi_engine.config.options import resolve_options
from hudi_engine.frames.spark_read import snapshot_frame
from hudi_engine.schema.meta_fields import meta_fields
from hudi_engine.table_state import TableState
from pyspark.sql import DataFrame, SparkSession


def rows_as_of(session: SparkSession, state: TableState, instant: str | None) -> DataFrame:
    """Return a table's rows as of an instant, without Hudi's own columns, which names of tables leave out.

    Args:
        session: The session.
        state: The table.
        instant: Newest requested time that counts, None for now.

    Raises:
        TimelineError: Files of the state have gone, or may have while they were listed.
    """
    rows = snapshot_frame(session, state, resolve_options({}), as_of=instant)
    state.check_still(instant)
    return rows.drop(*meta_fields(operation=True))
