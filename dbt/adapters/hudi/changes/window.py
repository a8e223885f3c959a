"""The window of commits that a model takes of an input, and its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError, HistoryGapError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.spark.changes.read import changes_between
from hudi_engine.table.changes.checkpoint import LIMIT_NAMES, WindowLimits, next_window
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.changes.read import Wanted
from hudi_engine.table.changes.window import (
    ALL,
    CHANGE_TYPE,
    COMMITTED,
    DELETE,
    LATEST,
    MODES,
    NET,
    Span,
    check_order,
    position_of,
    start_of,
)
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.hudi.changes.consume import untimed_deletes
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.run import Feed, InputWindow

FAIL, COMPARE, SNAPSHOT = ON_GAP = ("fail", "compare", "snapshot")

_ALWAYS_SKIPPED = ("skip_compaction", "skip_clustering")
_FLAGS = (*_ALWAYS_SKIPPED, "skip_insert_overwrite")
_LEGAL = ("mode", "on_gap", "begin", "end", *LIMIT_NAMES, *_FLAGS, "keep_for")
_TIME = re.compile(r"(\d+)\s*(hour|day)s?")


@dataclass(frozen=True)
class ChangesArgs:
    """The arguments of ``hudi_changes``.

    Args:
        mode: ``net``, ``all`` or ``latest``.
        on_gap: What is done when the changes are no longer known: ``fail``, ``compare`` or ``snapshot``.
        begin: Instant or moment in place of the checkpoint.
        end: Instant or moment up to which is read.
        limits: How much is taken at most.
        keep_hours: How long clean and archive of the input keep what the model has not taken; None for no registration.
    """

    mode: str = NET
    on_gap: str = FAIL
    begin: str | None = None
    end: str | None = None
    limits: WindowLimits = field(default_factory=WindowLimits)
    skip_insert_overwrite: bool = False
    keep_hours: float | None = None

    @property
    def window(self) -> tuple[object, ...]:
        """The arguments that decide which commits are taken."""
        return (self.begin, self.end, self.limits)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ChangesArgs:
        """Check the arguments of the macro."""
        problems = [
            f"{name} is no argument; {did_you_mean(name, _LEGAL)}legal arguments: {', '.join(_LEGAL)}"
            for name in given
            if name not in _LEGAL
        ]
        problems += [
            f"{name} is {given[name]!r}; legal values: {', '.join(legal)}"
            for name, legal in (("mode", MODES), ("on_gap", ON_GAP))
            if given.get(name, legal[0]) not in legal
        ]
        limits = WindowLimits()
        try:
            limits = WindowLimits(*(given.get(name) for name in LIMIT_NAMES))
        except ConfigError as error:
            problems += error.problems
        problems += [
            f"{name} is {given[name]!r}; legal values: true and false"
            for name in _FLAGS
            if not isinstance(given.get(name, True), bool)
        ]
        problems += [
            f"{name} is false; compaction and clustering change no row, so there is nothing of them to read: leave it out"
            for name in _ALWAYS_SKIPPED
            if given.get(name) is False
        ]
        kept = given.get("keep_for")
        found = None if kept is None else _TIME.fullmatch(str(kept).strip().lower())
        if kept is not None and (found is None or int(found[1]) == 0):
            problems.append(f"keep_for is {kept!r}; legal is a number of hours or days, such as '7 days'")
        if problems:
            raise DbtRuntimeError("hudi_changes: " + "; ".join(problems))
        points = {name: None if given.get(name) is None else str(given[name]) for name in ("begin", "end")}
        return cls(
            given.get("mode", NET),
            given.get("on_gap", FAIL),
            points["begin"],
            points["end"],
            limits,
            bool(given.get("skip_insert_overwrite", False)),
            None if found is None else int(found[1]) * (24.0 if found[2] == "day" else 1.0),
        )


def check_relation(macro: str, relation: Any) -> None:
    """Raise DbtRuntimeError for the argument of a macro that is no relation of dbt's."""
    if not isinstance(relation, BaseRelation):
        raise DbtRuntimeError(
            f"{macro}: {relation!r} is no relation; give ref('orders') or source('raw', 'orders'), "
            "or api.Relation.create(schema='raw', identifier='orders') for a table that dbt does not know"
        )


def check_begin(state: TableState, source: str, noted: str, begin: str | None, *, compiles: bool) -> None:
    """Refuse a window that leaves out changes which the model has not taken.

    Args:
        begin: Where the window begins, None for the first commit.
    """
    check_known(state, noted)
    if begin is None or position_of(state, begin) <= position_of(state, noted):
        return
    problem = (
        f"begin is {begin}, but the model has taken {source} up to {noted} only: what changed in between would never reach "
        "it. Leave begin out, or give an earlier one. To leave those changes out on purpose: dbt run-operation "
        f"hudi_checkpoint --args '{{table: ..., input: {source}, set: \"{begin}\"}}'"
    )
    if not compiles:
        raise DbtRuntimeError(problem)
    logger.warning("{}. A run will fail", problem)


def with_later_changes(
    session: SparkSession,
    state: TableState,
    frame: DataFrame,
    taken: InputWindow,
    noted: str,
    args: ChangesArgs,
) -> DataFrame:
    """Return the rows of a window that begins before the checkpoint, and what changed after the checkpoint.

    Net changes have no delete of a row that came after their begin, so a model that has taken such a row would keep it.
    """
    has_steps = args.mode == ALL and taken.since is not None
    if has_steps or args.mode == LATEST or taken.is_early:
        return frame
    wanted = Wanted(known=True, skip_insert_overwrite=args.skip_insert_overwrite)
    later = changes_between(session, state, resolve_options({}), Span(noted, taken.end), wanted)
    assert later is not None, "the table has columns"
    columns = _row_by(state, frame)
    later = untimed_deletes(later, noted)
    # a row of the model that no longer exists is deleted as it was when the model took it, which no ordering value outruns
    frame = _without(frame, later.where(F.col(CHANGE_TYPE) == DELETE), columns)
    return frame.unionByName(_without(later, frame, columns))


def _without(rows: DataFrame, others: DataFrame, columns: list[str]) -> DataFrame:
    """Return the changes of rows that other changes do not have."""
    known = others.select(
        *(F.col(name).alias(f"__other_{place}") for place, name in enumerate(columns))
    ).distinct()
    same = [F.col(name).eqNullSafe(F.col(f"__other_{place}")) for place, name in enumerate(columns)]
    return rows.join(known, same, "left_anti")


def _row_by(state: TableState, frame: DataFrame) -> list[str]:
    """Return the columns that identify a row: its key and partition, or all of them in a table without keys."""
    config = state.config
    if config.record_key_fields:
        fields = (*config.record_key_fields, *(each.name for each in config.partition_fields))
        return [".".join(map(quoted, name.split("."))) for name in dict.fromkeys(fields)]
    # Spark compares no maps.
    kinds = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    return [quoted(name) for name, kind in kinds.items() if name != COMMITTED and "map<" not in kind]


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
