"""What a model is told of an input: the window of changes, and its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.changes.read import Wanted, changes_between
from hudi_engine.table.changes.checkpoint import next_window
from hudi_engine.table.changes.window import Span, check_order, position_of, start_of
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.changes.asked import Asked
from dbt.adapters.hudi.changes.feed import Feed, Taken
from dbt.adapters.hudi.changes.replay import ends_early


def told_rows(session: SparkSession, state: TableState, taken: Taken, wish: Asked) -> DataFrame:
    """Return the changes of a window.

    Raises:
        DbtRuntimeError: The input has no columns yet.
    """
    wanted = Wanted(wish.mode, known=wish.begin is None, skip_insert_overwrite=wish.skip_insert_overwrite)
    # an end before the first commit is the end of no commit, and before the first write that is pending nothing can be taken
    span = Span(taken.since, taken.end or taken.hole or wish.end)
    frame = changes_between(session, state, resolve_options({}), span, wanted)
    if frame is None:
        raise DbtRuntimeError(f"table {state.config.name!r} has no columns yet; build it first")
    return frame


def next_taken(state: TableState, feed: Feed, source: str, fresh: bool, wish: Asked) -> Taken:
    """Return the window that a model takes of an input.

    Args:
        fresh: The model is built anew, so all rows are taken.
    """
    noted = None if fresh else feed.noted_for(source)
    since = noted if wish.begin is None else start_of(wish.begin)
    if wish.begin is not None and since is not None and wish.end is not None:
        check_order(state, since, wish.end)
    window = next_window(state, since, end=wish.end, limits=wish.limits)
    is_early = ends_early(state, noted, window.end)
    return Taken(since, window.end, window.commits, is_early, wish.window, window.hole)


def taken_beyond_gap(state: TableState, feed: Feed, source: str, meant: Taken | None, wish: Asked) -> Taken:
    """Return the window of which a model takes all rows, where the changes cannot be told: a first run's, or the one it meant.

    A state that clean has passed cannot be read, and of two that can the later one brings the model no older rows.

    Args:
        meant: The window whose changes it would have taken; None where what the model has says nothing.
    """
    if source in feed.inputs:
        return replace(feed.inputs[source], since=None)
    window = next_window(state, None, end=wish.end, limits=wish.limits)
    if meant is not None and _place(state, window.end) < _place(state, meant.end):
        return replace(meant, since=None)
    is_early = ends_early(state, feed.noted_for(source), window.end)
    return Taken(None, window.end, window.commits, is_early, wish.window, window.hole)


def _place(state: TableState, end: str | None) -> str:
    return "" if end is None else position_of(state, end)


def takes_nothing(taken: Taken, wish: Asked) -> bool:
    """Tell whether a window ends before the first commit there is: at a write under way, or at an end that is asked for."""
    return taken.end is None and (taken.hole or wish.end) is not None


def way_of_a_model(target: BaseRelation, model: dict[str, Any]) -> str:
    """Return what else a model can do about a gap; a query of ``dbt show`` has no rows to compare with or to build anew."""
    if model.get("resource_type") != "model":
        return ""
    return (
        f"\nIn the model: hudi_changes(..., on_gap='compare') compares all rows with {target.render()}, "
        "on_gap='snapshot' takes all rows as inserts; or run it with --full-refresh."
    )
