"""The window of commits that a model takes of an input, and its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import HistoryGapError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.changes.read import Wanted, changes_between
from hudi_engine.table.changes.checkpoint import next_window
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.changes.window import Span, check_order, position_of, start_of
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.changes.args import ChangesArgs
from dbt.adapters.hudi.run import Feed, InputWindow


def window_rows(session: SparkSession, state: TableState, taken: InputWindow, args: ChangesArgs) -> DataFrame:
    """Return the changes of a window."""
    wanted = Wanted(args.mode, known=args.begin is None, skip_insert_overwrite=args.skip_insert_overwrite)
    # an end before the first commit is the end of no commit, and before the first write that is pending nothing can be taken
    span = Span(taken.since, taken.end or taken.hole or args.end)
    frame = changes_between(session, state, resolve_options({}), span, wanted)
    if frame is None:
        raise DbtRuntimeError(f"table {state.config.name!r} has no columns yet; build it first")
    return frame


def next_input_window(
    state: TableState, feed: Feed, source: str, fresh: bool, args: ChangesArgs
) -> InputWindow:
    """Return the window that a model takes of an input."""
    noted = None if fresh else feed.noted_for(source)
    since = noted if args.begin is None else start_of(args.begin)
    if args.begin is not None and since is not None and args.end is not None:
        check_order(state, since, args.end)
    window = next_window(state, since, end=args.end, limits=args.limits)
    is_early = ends_early(state, noted, window.end)
    return InputWindow(since, window.end, window.commits, is_early, args.window, window.hole)


def window_after_gap(
    state: TableState, feed: Feed, source: str, meant: InputWindow | None, args: ChangesArgs
) -> InputWindow:
    """Return the window of which a model takes all rows, as its changes are no longer known: the later of two.

    A state before the last clean cannot be read, and an earlier one would bring the model older rows.

    Args:
        meant: The window whose changes it would have taken; None where the model's checkpoint does not count.
    """
    if source in feed.inputs:
        return replace(feed.inputs[source], since=None)
    window = next_window(state, None, end=args.end, limits=args.limits)
    if meant is not None and _place(state, window.end) < _place(state, meant.end):
        return replace(meant, since=None)
    is_early = ends_early(state, feed.noted_for(source), window.end)
    return InputWindow(None, window.end, window.commits, is_early, args.window, window.hole)


def ends_early(state: TableState, noted: str | None, end: str | None) -> bool:
    """Whether a window ends before what the model has taken already.

    Args:
        noted: Instant up to which the model has taken it, None for not at all.
        end: Last commit of the window, None for that of a table without commits.
    """
    if noted is None or (end is not None and position_of(state, end) >= position_of(state, noted)):
        return False
    try:
        check_known(state, noted)
    except HistoryGapError:
        return False  # the checkpoint is of another table
    return True


def _place(state: TableState, end: str | None) -> str:
    return "" if end is None else position_of(state, end)


def takes_nothing(taken: InputWindow, args: ChangesArgs) -> bool:
    """Whether a window ends before the first commit: at a write under way, or at the end that the model gave."""
    return taken.end is None and (taken.hole or args.end) is not None


def gap_hint(target: BaseRelation, model: dict[str, Any]) -> str:
    """Return what a model can do about a gap; a query of ``dbt show`` has no rows to compare with or to rebuild."""
    if model.get("resource_type") != "model":
        return ""
    return (
        f"\nIn the model: hudi_changes(..., on_gap='compare') compares all rows with {target.render()}, "
        "on_gap='snapshot' takes all rows as inserts; or run it with --full-refresh."
    )
