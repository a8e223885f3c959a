"""A table as it was, under the columns that its name shows."""

from __future__ import annotations

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import WRITE_ACTIONS
from hudi_engine.spark.sql.earlier_states import rows_as_of
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession


def rows_of_the_run(session: SparkSession, began: TableState, instant: str | None) -> DataFrame:
    """Return what `rows_as_of` does of a state that a run has seen at its beginning.

    A compaction that completed since, and a clean after it, may have taken the files by which the state was seen. It has its rows
    still, in other files, as long as no write came to lie within it.

    Args:
        began: The table as the run saw it first.
        instant: Its newest write, None for a table without one.

    Raises:
        TimelineError: The state is lost for the rest of the run.
        CorruptTableError: A file of it is lost.
    """
    try:
        return rows_as_of(session, began, instant)
    except (CorruptTableError, TimelineError) as error:
        now = TableState.load(began.storage)
        if instant is not None and _has_the_same_writes(began.timeline, now.timeline, instant):
            return rows_as_of(session, now, instant)
        raise TimelineError(
            f"the table at {began.storage.base!r} was restored, replaced, or written during the run, so the state 'latest' that "
            "this run began with cannot be read any more, and its other nodes have read that one. Start the run again"
        ) from error


def _has_the_same_writes(then: Timeline, now: Timeline, instant: str) -> bool:
    """Tell whether up to an instant nothing but table services has completed since, and nothing was taken back."""
    if instant not in {each.requested_time for each in now.completed_writes}:
        return False  # of what is archived, or was rebuilt in its place, no proof is left
    known = {each.requested_time for each in then.completed_writes if each.requested_time <= instant}
    late = [
        each
        for each in now.completed_writes
        if each.requested_time <= instant and each.requested_time not in known
    ]
    there = {each.requested_time for each in now.instants}
    archived = [
        each.requested_time
        for each in then.pending
        if each.action in WRITE_ACTIONS
        and each.requested_time <= instant
        and each.requested_time not in there
    ]
    return (
        all(map(now.is_committed, known))
        and not any(map(now.is_committed, archived))
        and all(now.commit_metadata(each).is_of_service for each in late)
    )
