"""A model that asks for a window of its own, in place of the one after its checkpoint."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import HistoryGapError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.changes.read import Wanted, changes_between
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.table.changes.columns import ALL, CHANGE_TYPE, COMMITTED, DELETE, LATEST
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.changes.window import Span, position_of
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.hudi.changes.asked import Asked
from dbt.adapters.hudi.changes.consume import untimed_deletes
from dbt.adapters.hudi.changes.feed import Taken
from dbt.adapters.hudi.logs import logger


def check_begin(state: TableState, source: str, noted: str, begin: str | None, *, compiles: bool) -> None:
    """Refuse a window that leaves out changes which the model has not taken.

    Args:
        noted: Instant up to which the model has taken it.
        begin: Where the window begins, None for the first commit.
        compiles: Nothing is run, so it is only warned of: an error would end the command for every other node too.

    Raises:
        DbtRuntimeError: It begins later than that.
        HistoryGapError: The input never had that instant, or it was taken back: what the model has of it cannot be told.
    """
    check_known(state, noted)
    if begin is None or position_of(state, begin) <= position_of(state, noted):
        return
    told = (
        f"begin is {begin}, but the model has taken {source} up to {noted} only: what changed in between would never reach "
        "it. Leave begin out, or give an earlier one. To leave those changes out on purpose: dbt run-operation "
        f"hudi_checkpoint --args '{{table: ..., input: {source}, set: \"{begin}\"}}'"
    )
    if not compiles:
        raise DbtRuntimeError(told)
    logger.warning("{}. A run will fail", told)


def ends_early(state: TableState, noted: str | None, end: str | None) -> bool:
    """Tell whether a window ends before what the model has taken already.

    Args:
        noted: Instant up to which the model has taken it, None for not at all.
        end: Last commit of the window, None for that of a table without commits.
    """
    if noted is None or (end is not None and position_of(state, end) >= position_of(state, noted)):
        return False
    try:
        check_known(state, noted)
    except HistoryGapError:
        return False  # what was taken then says nothing of this table
    return True


def with_later_changes(
    session: SparkSession, state: TableState, frame: DataFrame, taken: Taken, noted: str, wish: Asked
) -> DataFrame:
    """Return the rows of a window that begins before the checkpoint, and what changed after the checkpoint.

    Net changes tell no delete of a row that came after their begin. A model that has taken such a row would keep it.

    Args:
        noted: Instant up to which the model has taken the input.

    Raises:
        HistoryGapError: The changes after the checkpoint cannot be told.
    """
    tells_steps = wish.mode == ALL and taken.since is not None
    if tells_steps or wish.mode == LATEST or taken.is_early:
        return frame
    wanted = Wanted(known=True, skip_insert_overwrite=wish.skip_insert_overwrite)
    later = changes_between(session, state, resolve_options({}), Span(noted, taken.end), wanted)
    assert later is not None, "the table has columns"
    columns = _row_by(state, frame)
    later = untimed_deletes(later, noted)
    # a row that the model has and that is gone is deleted as it was when the model took it, which no ordering value outruns
    frame = _without(frame, later.where(F.col(CHANGE_TYPE) == DELETE), columns)
    return frame.unionByName(_without(later, frame, columns))


def _without(rows: DataFrame, told: DataFrame, columns: list[str]) -> DataFrame:
    """Return changes of rows that others do not tell of."""
    known = told.select(
        *(F.col(name).alias(f"__told_{place}") for place, name in enumerate(columns))
    ).distinct()
    same = [F.col(name).eqNullSafe(F.col(f"__told_{place}")) for place, name in enumerate(columns)]
    return rows.join(known, same, "left_anti")


def _row_by(state: TableState, frame: DataFrame) -> list[str]:
    """Return what says that two changes are of one row: its key where it lies, or all of it in a table without keys."""
    config = state.config
    if config.record_key_fields:
        fields = (*config.record_key_fields, *(each.name for each in config.partition_fields))
        return [".".join(map(quoted, name.split("."))) for name in dict.fromkeys(fields)]
    # Spark compares no maps.
    kinds = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    return [quoted(name) for name, kind in kinds.items() if name != COMMITTED and "map<" not in kind]
