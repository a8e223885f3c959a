"""The run of one node: its plan, the inputs whose changes it takes, its query; and the registry of all nodes of a command."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.own_keys import CHECKPOINT, CHECKPOINT_BEFORE
from hudi_engine.table.changes.checkpoint import format_checkpoint
from hudi_engine.table.changes.new_files import TakenFiles, is_note_of_files
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.model.merge import ADDING
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.source import SourcePlace

OF_A_SAMPLE = "19700101000000000"
"""Checkpoint of a table that was built of a sample: no commit, so that no later run continues from it."""
UNFILTERED = "a ref or source without the config event_time, of which dbt gives every batch all rows"
_KINDS = ("model", "seed", "snapshot")


@dataclass(frozen=True)
class NewFiles:
    """The new files of a folder that a model takes in one run.

    Args:
        frame: Their rows.
        waiting: How many the limits leave for later runs.
        bad: Those that cannot be read and go to the error table, each with the reason.
    """

    frame: DataFrame
    taken: int
    waiting: int = 0
    bad: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class InputWindow:
    """The window of one input, fixed when the model starts.

    Args:
        since: Instant or moment it begins after, None for all rows.
        end: Instant up to which rows are read, None where there is nothing to take yet.
        is_early: It ends before what the model has taken already.
        args: What the model gave: begin, end and limits.
        hole: The write under way for which there is nothing to take yet, None without one.
        files: The new files, where the input is a folder of files: then ``end`` is the note of all that were taken, and
            ``commits`` the number of the new ones.
    """

    since: str | None
    end: str | None
    commits: int
    is_early: bool = False
    args: tuple[object, ...] = ()
    hole: str | None = None
    files: NewFiles | None = None


@dataclass
class Feed:
    """The inputs whose changes a model takes in one run.

    Args:
        noted: The checkpoint of the model's table: the last instant taken of each input.
        named: The tables that the model names, by schema and name.
        is_limited: Rows are limited, so nothing counts as consumed.
        is_of_sample: What the model reads besides its inputs is a sample, of which the table is built.
        every_commit: The inputs give the changes of each commit (``mode='all'``), and not the difference of two states.
    """

    noted: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    inputs: dict[str, InputWindow] = field(default_factory=dict)
    is_limited: bool = False
    is_of_sample: bool = False
    every_commit: bool = False

    def add(self, source: str, window: InputWindow, *, every_commit: bool) -> None:
        """Note the window of an input; the rows of a key can be ordered only where all inputs have one mode."""
        if self._changed and self.every_commit != every_commit:
            raise DbtRuntimeError(
                f"hudi_changes of {', '.join(sorted({*self._changed, source}))} in one model: mode='all' and another mode; deletes "
                "of one have no order among the rows of the other. Give all inputs of a model the same mode"
            )
        self.inputs[source], self.every_commit = window, every_commit

    def window_of(
        self, source: str, args: tuple[object, ...], macro: str = "hudi_changes"
    ) -> InputWindow | None:
        """Return the window of an input that the model has named before, None for one that it has not."""
        window = self.inputs.get(source)
        if window is not None and window.args != args:
            raise DbtRuntimeError(
                f"{macro} of {source} is in the model more than once, with different windows. Of an input one window is "
                "taken in a run: give each the same begin and end, or start_after, and the same limits"
            )
        return window

    @property
    def _changed(self) -> list[str]:
        """The inputs whose changes are taken, and not their new files."""
        return [name for name, window in self.inputs.items() if window.files is None]

    @property
    def files(self) -> list[NewFiles]:
        """The new files of the inputs that are folders of files."""
        return [window.files for window in self.inputs.values() if window.files is not None]

    def noted_for(self, source: str) -> str | None:
        """Return up to where an input is consumed, None for one that is new.

        A clone has the checkpoint of its original, whose inputs lie in another schema: a noted table of the same name counts,
        unless the model still names that one too and the run does not defer to an input that the model does not name.
        """
        table = source.rpartition(".")[2]
        is_deferred = source not in self.named
        unused = [
            name for name in self.noted if name not in self.inputs and (is_deferred or name not in self.named)
        ]
        same = [self.noted[name] for name in unused if name.rpartition(".")[2] == table]
        found = self.noted.get(source) or (same[0] if len(same) == 1 else None)
        return None if found is None or is_note_of_files(found) else found

    def taken_files(self, source: str) -> TakenFiles | None:
        """Return the files of an input that are taken, None for one that is new."""
        noted = self.noted.get(source)
        if noted == OF_A_SAMPLE:
            raise DbtRuntimeError(
                f"the model was built with --sample, so which rows it lacks of {source} is not known; run it with --full-refresh"
            )
        return TakenFiles.parse(noted) if noted is not None and is_note_of_files(noted) else None

    @property
    def is_net(self) -> bool:
        """Whether all inputs give the difference between begin and end of their windows."""
        return bool(self._changed) and not self.every_commit

    @property
    def brings_steps(self) -> bool:
        """Whether a window may have several changes of a row; one without a begin has each row once."""
        return self.every_commit and any(self.inputs[name].since is not None for name in self._changed)

    @property
    def brings_nothing(self) -> bool:
        """Whether no input has a commit that the target has not consumed."""
        return bool(self.inputs) and all(
            window.since is not None and window.commits == 0 for window in self.inputs.values()
        )

    @property
    def empty_message(self) -> str:
        """The message of a run that brings nothing."""
        since = ", ".join(f"{name} {window.since}" for name, window in sorted(self.inputs.items()))
        return f"0 changes since {since}" if self._changed else f"0 new files since {since}"

    def noted_in(self, plan: ModelPlan, *, rebuilds: bool) -> ModelPlan:
        """Return the plan of a write that notes the checkpoint in its commit."""
        if not rebuilds:
            self._check_ends(plan)
        if (self.is_limited and not rebuilds) or not (self.inputs or (rebuilds and self.noted)):
            return plan
        consumed = {
            name: OF_A_SAMPLE if self.is_of_sample else window.end
            for name, window in self.inputs.items()
            # a commit inherits the note of the one before, so that of a table built of no rows is empty
            if window.end is not None and not self.is_limited and (rebuilds or not window.is_early)
        }
        checkpoint = consumed if rebuilds else {**self.noted, **consumed}
        noted = {CHECKPOINT: format_checkpoint(checkpoint)}
        if not rebuilds:
            noted[CHECKPOINT_BEFORE] = format_checkpoint(dict(self.noted))
        return replace(plan, given_options={**plan.given_options, **noted})

    def _check_ends(self, plan: ModelPlan) -> None:
        early = {name: window.end for name, window in self.inputs.items() if window.is_early}
        if early and plan.merge.strategy not in ADDING:
            listed = ", ".join(
                f"{name} up to {self.noted_for(name)}, and the window ends at {end or 'nothing'}"
                for name, end in early.items()
            )
            raise DbtRuntimeError(
                f"{plan.schema}.{plan.name} has taken {listed}: its rows would become older ones, and rows that were deleted later "
                "would stay. Leave end (or the limit) out, so that the window goes on to the newest commit, or build the model "
                "with --full-refresh"
            )


@dataclass
class ModelRun:
    """One run of one node, or of one batch of a microbatch model.

    Args:
        node: The node as dbt gives it to a materialization.
        planned: Its checked config; None before ``hudi_plan``, and for a node that becomes no table.
        feed: The changes that its query takes, begun while dbt compiles it.
        rebuilds: The run makes the whole table.
        begins: Nothing allows the run to replace rows: a table that it did not know of when it started stays.
        evaluate: Has Spark analyse the query again, under the name under which it is staged.
        base: The table as it was before the query read rows of it; None where it reads none.
        hook: The hook under way, as its errors name it.
        unfiltered: A batch has failed because of rows outside of its window.
        builds: Whether this command's first batch built the table; None before the first one.
        sources: The sources that the node uses.
        unseen: Those of them that Spark has not been shown since.
        uses: How often the query reads a source as a table of all its rows.
        ephemerals: The ephemeral models that it selects from.
        inputs: The newest instant of each Hudi table that it refers to, when it started; None before it was looked up.
    """

    node: Mapping[str, Any] = field(default_factory=dict)
    planned: ModelPlan | None = None
    feed: Feed = field(default_factory=Feed)
    rebuilds: bool = False
    begins: bool = False
    evaluate: Callable[[SparkSession], None] | None = None
    base: TableState | None = None
    hook: str = ""
    unfiltered: bool = False
    builds: bool | None = None
    sources: dict[tuple[str, str], SourcePlace] = field(default_factory=dict)
    unseen: dict[tuple[str, str], SourcePlace] = field(default_factory=dict)
    uses: Counter[tuple[str, str]] = field(default_factory=Counter)
    ephemerals: set[str] = field(default_factory=set)
    inputs: Mapping[str, str] | None = None

    @property
    def plan(self) -> ModelPlan:
        """The checked config of a node that becomes a table."""
        assert self.planned is not None, "hudi_plan comes first"
        return self.planned

    def is_kind(self, *kinds: str) -> bool:
        """Whether the node is materialized as one of some kinds."""
        return (self.node.get("config") or {}).get("materialized") in kinds


class Runs:
    """The nodes of one dbt command, by unique id, ``""`` for work of no node; safe to use from all of dbt's threads."""

    def __init__(self) -> None:
        self._runs: dict[str, ModelRun] = {}
        self._selected: dict[str, Any] = {}
        self._lock = threading.RLock()

    def clear(self) -> None:
        """Forget the nodes of an earlier command in this process."""
        with self._lock:
            self._runs.clear()
            self._selected.clear()

    def of(self, unique_id: str) -> ModelRun:
        """Return the run of a node, begun by whoever comes first."""
        with self._lock:
            return self._runs.setdefault(unique_id, ModelRun())

    def current(self) -> ModelRun:
        """Return the run of the node that dbt is at in this thread."""
        return self.of(_current_node())

    def begin(self, node: Mapping[str, Any], plan: ModelPlan) -> ModelRun:
        """Return the run of a node, or of its next batch, with what was found out while dbt compiled it."""
        unique_id = str(node.get("unique_id") or "")
        with self._lock:
            run = replace(self.of(unique_id), node=node, planned=plan, evaluate=None, base=None, hook="")
            self._runs[unique_id] = run
        return run

    # --- sources ------------------------------------------------------------------------------------------------

    def note_source(self, place: SourcePlace) -> None:
        """Note a use of a source by the node dbt is at; the last place given for it counts."""
        with self._lock:
            self._use(place)

    def note_ephemeral(self, unique_id: str) -> None:
        """Note that the node dbt is at selects from an ephemeral model, and so uses its sources.

        dbt has compiled the model as a node of its own, or does so as a part of the first node that selects from it.
        """
        with self._lock:
            self.current().ephemerals.add(unique_id)
            for place in [*self.of(unique_id).sources.values()]:
                self._use(place)

    def _use(self, place: SourcePlace) -> None:
        name, run = (place.schema.lower(), place.name.lower()), self.current()
        run.unseen[name] = place
        run.uses[name] += 1
        for each in (run, *map(self.of, run.ephemerals)):
            each.sources[name] = place

    def source(self, schema: str, name: str) -> SourcePlace | None:
        """Return the place of a source, None when no node of the command has used it."""
        key = (schema.lower(), name.lower())
        with self._lock:
            return next((run.sources[key] for run in self._runs.values() if key in run.sources), None)

    def take_files(self, schema: str, name: str) -> SourcePlace | None:
        """Return the place of a source of which the node dbt is at reads new files alone, so that this use needs no table."""
        key = (schema.lower(), name.lower())
        with self._lock:
            run = self.current()
            run.uses[key] -= 1
            if run.uses[key] <= 0:
                run.unseen.pop(key, None)
            return run.sources.get(key)

    def unseen_sources(self, *, of_node: bool) -> Iterable[SourcePlace]:
        """Return the sources used since this was last called, by the node dbt is at or outside of nodes."""
        if of_node and not _current_node():
            return ()
        with self._lock:
            run = self.current() if of_node else self.of("")
            found, run.unseen = tuple(run.unseen.values()), {}
        return found

    # --- nodes of the command -----------------------------------------------------------------------------------

    def note_selected(self, node: Any) -> None:
        """Note a node that dbt names outside of any node's own work, as it does with all of a command to make their schemas."""
        # a node of another command, as in `dbt clone`, has no id here: that command checked its configs
        unique_id = getattr(node, "unique_id", None)
        if unique_id and getattr(node, "resource_type", None) in _KINDS and not _current_node():
            with self._lock:
                self._selected[unique_id] = node

    def take_selected(self) -> list[Any]:
        """Return the nodes noted since this was last called, and forget them."""
        with self._lock:
            found, self._selected = list(self._selected.values()), {}
        return found


def _current_node() -> str:
    return str(get_node_info().get("unique_id") or "")


RUNS = Runs()


def hook_text(when: str, number: int, of: int) -> str:
    """Return which hook it is, and what an error of it leaves; ``""`` for none."""
    left = (
        "the model was not run"
        if when == "pre-hook"
        else "what the model wrote before is committed and stays, and append, insert or bulk_insert would add it again"
    )
    return f"in {when} {number} of {of}; {left}" if when else ""


def name_hook(error: DbtRuntimeError) -> None:
    """Put the hook that is under way before an error's text, once."""
    run = RUNS.current()
    if run.hook:
        error.msg, run.hook = f"{run.hook}:\n{error.msg}", ""


def say_once(error: DbtRuntimeError) -> None:
    """Shorten the error of a batch that fails for the same reason as an earlier one of its model."""
    run = RUNS.current()
    if UNFILTERED in error.msg:
        if run.unfiltered:
            error.msg = "the query gives rows outside of the batch, as in the first batch that failed; its error has the way out"
        run.unfiltered = True
