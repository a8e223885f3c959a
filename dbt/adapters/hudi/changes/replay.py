"""A model that asks for a window of its own, in place of the one after its checkpoint."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.changes.columns import ALL, LATEST, NET
from hudi_engine.changes.gaps import check_known
from hudi_engine.changes.read import Wanted, changes_between
from hudi_engine.changes.window import Span, position_of
from hudi_engine.config.options import resolve_options
from hudi_engine.errors import HistoryGapError
from hudi_engine.schema.any_case import spellings
from hudi_engine.schema.fit import quoted
from hudi_engine.table_state import TableState
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.hudi.changes.asked import Asked
from dbt.adapters.hudi.changes.feed import Taken
from dbt.adapters.hudi.logs import logger


def knows(state: TableState, noted: str) -> bool:
    """Tell whether a checkpoint is a state that the input had; it is none after the input was built anew or taken back."""
    try:
        check_known(state, noted)
    except HistoryGapError:
        return False
    return True


def check_begin(
    state: TableState, source: str, noted: str, begin: str | None, *, only_compiles: bool
) -> None:
    """Refuse a window that leaves out changes which the model has not taken.

    Args:
        state: The input.
        source: Its name.
        noted: Instant up to which the model has taken it.
        begin: Where the window begins, None for the first commit.
        only_compiles: Nothing is run, so it is only warned of: an error would end the command for every other node too.

    Raises:
        DbtRuntimeError: It begins later than that.
    """
    if begin is None or not knows(state, noted) or position_of(state, begin) <= position_of(state, noted):
        return
    told = (
        f"begin is {begin}, but the model has taken {source} up to {noted} only: what changed in between would never reach "
        "it. Leave begin out, or give an earlier one. To leave those changes out on purpose: dbt run-operation "
        f"hudi_checkpoint --args '{{table: ..., input: {source}, set: \"{begin}\"}}'"
    )
    if not only_compiles:
        raise DbtRuntimeError(told)
    logger.warning("{}. A run will fail", told)


def ends_early(state: TableState, noted: str, end: str | None) -> bool:
    """Tell whether a window ends before what the model has taken already.

    Args:
        state: The input.
        noted: Instant up to which the model has taken it.
        end: Last commit of the window, None for that of a table without commits.
    """
    return knows(state, noted) and (end is None or position_of(state, end) < position_of(state, noted))


def with_later_changes(
    session: SparkSession, state: TableState, frame: DataFrame, taken: Taken, noted: str, wish: Asked
) -> DataFrame:
    """Return the rows of a window that begins before the checkpoint, and what changed after the checkpoint.

    Net changes tell no delete of a row that came after their begin. A model that has taken such a row would keep it.

    Args:
        session: The session.
        state: The input.
        frame: The rows of the window.
        taken: The window.
        noted: Instant up to which the model has taken the input.
        wish: What the model asks for.
    """
    tells_all = wish.mode == NET or (wish.mode == ALL and taken.since is None)
    names = spellings(frame.columns)
    config = state.config
    keys = [*config.record_key_fields, *(each.name for each in config.partition_fields)]
    known = [names[key.lower()] for key in keys if key.lower() in names]
    if (
        not tells_all
        or wish.mode == LATEST
        or taken.is_early
        or not config.record_key_fields
        or len(known) < len(keys)
    ):
        return frame
    wanted = Wanted(known=True, skip_insert_overwrite=wish.skip_insert_overwrite)
    try:
        later = changes_between(session, state, resolve_options({}), Span(noted, taken.end), wanted)
    except HistoryGapError as gap:
        logger.warning(
            "{}. Rows that were deleted since stay in the model; on_gap='compare' takes them out", str(gap)
        )
        return frame
    assert later is not None, "the table has columns"
    told = frame.select(
        *(F.col(quoted(name)).alias(f"__told_{place}") for place, name in enumerate(known))
    ).distinct()
    same = [F.col(quoted(name)).eqNullSafe(F.col(f"__told_{place}")) for place, name in enumerate(known)]
    return frame.unionByName(later.join(told, same, "left_anti"))
