"""What one model takes of its inputs in one run: the windows, and the checkpoint that goes into its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.other_keys import CHECKPOINT, CHECKPOINT_BEFORE
from hudi_engine.table.changes.checkpoint import format_checkpoint
from pyspark.sql import DataFrame

from dbt.adapters.hudi.model.merge import ADDING
from dbt.adapters.hudi.model.plan import ModelPlan

OF_A_SAMPLE = "19700101000000000"
"""Checkpoint of a table that was built of a sample: no commit, so that no later run goes on from it."""


@dataclass(frozen=True)
class Taken:
    """The window of one input, fixed when the model starts.

    Args:
        since: Instant or moment it begins after, None for all rows.
        end: Instant up to which rows are read, None where there is nothing to take yet.
        asked: What the model asked for: begin, end and limits.
        hole: The write under way for which there is nothing to take yet, None without one.
    """

    since: str | None
    end: str | None
    commits: int
    is_early: bool = False
    asked: tuple[object, ...] = ()
    hole: str | None = None


@dataclass
class Feed:
    """The inputs of a model in one run.

    Args:
        named: The tables that the model names, by schema and name.
        is_limited: Rows are limited, so nothing counts as consumed.
        is_of_sample: What the model reads beside its inputs is a sample, of which the table is built.
        net_views: Views of net changes, each with its rows, where they begin, and the checkpoint where that is another place.
    """

    noted: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    inputs: dict[str, Taken] = field(default_factory=dict)
    is_limited: bool = False
    is_of_sample: bool = False
    tells_steps: bool = False
    net_views: dict[str, tuple[DataFrame, str, str]] = field(default_factory=dict)

    def taken_of(self, source: str, asked: tuple[object, ...]) -> Taken | None:
        """Return the window of an input that the model has named before, None for one that it has not.

        Raises:
            DbtRuntimeError: It asked for another window then, and of an input one is taken in a run.
        """
        taken = self.inputs.get(source)
        if taken is not None and taken.asked != asked:
            raise DbtRuntimeError(
                f"hudi_changes of {source} stands in the model more than once, with different windows. Of an input one window is "
                "taken in a run: give each the same begin, end, max_commits, max_rows and max_bytes"
            )
        return taken

    def noted_for(self, source: str) -> str | None:
        """Return up to where an input is consumed, None for one that is new.

        A clone has the checkpoint of its original, whose inputs lie in another schema: a table of the same name counts as that
        input, and whether it has the instant that was consumed is looked at when its changes are told. What the model still
        names is another input, whose checkpoint is its own, but where the run defers to an input that the model does not name.
        """
        table = source.rpartition(".")[2]
        is_deferred = source not in self.named
        gone = [
            name for name in self.noted if name not in self.inputs and (is_deferred or name not in self.named)
        ]
        same = [self.noted[name] for name in gone if name.rpartition(".")[2] == table]
        return self.noted.get(source) or (same[0] if len(same) == 1 else None)

    @property
    def tells_net(self) -> bool:
        """Whether all inputs tell the difference between begin and end of their windows."""
        return bool(self.inputs) and not self.tells_steps

    @property
    def brings_steps(self) -> bool:
        """Whether a window may tell several changes of a row; one that begins at nothing tells each row once."""
        return self.tells_steps and any(taken.since is not None for taken in self.inputs.values())

    @property
    def brings_nothing(self) -> bool:
        """Whether no input has a commit that the target has not consumed."""
        return bool(self.inputs) and all(
            taken.since is not None and taken.commits == 0 for taken in self.inputs.values()
        )

    @property
    def said_of_nothing(self) -> str:
        """What a run that brings nothing says."""
        since = ", ".join(f"{name} {taken.since}" for name, taken in sorted(self.inputs.items()))
        return f"0 changes since {since}"

    def check_sample(self, plan: ModelPlan, selector: str, through: str, *, rebuilds: bool) -> None:
        """Refuse rows that are made of changes and of a sample beside them, in a table that is there.

        Args:
            plan: The model's plan, whose query reads a sample.
            selector: What names the model to ``--exclude``.
            through: The view, or the table of this run, that it reads the sample through; ``""`` where it does so itself.
            rebuilds: The table is built anew, and notes that it is of a sample.

        Raises:
            DbtRuntimeError: No later run takes the changes again, so what the sample leaves out would be missing for good.
        """
        if not rebuilds and self.inputs and not self.brings_nothing:
            said, too = (f" (through {through})", f" and {through}") if through else ("", "")
            raise DbtRuntimeError(
                f"{plan.schema}.{plan.name} takes changes, and with --sample what it reads beside them{said} is a part of the "
                "rows: what the changes need of the others would be missing for good, as no later run takes them again. Leave "
                f"the model out (--exclude {selector}), run it{too} without --sample, or build it of the sample alone with "
                "--full-refresh"
            )
        self.is_of_sample = rebuilds

    def noted_in(self, plan: ModelPlan, *, rebuilds: bool) -> ModelPlan:
        """Return the plan of a write that notes the checkpoint in its commit.

        Args:
            rebuilds: The table is built anew, so what it consumed before counts no more.

        Raises:
            DbtRuntimeError: Rows of the table would become older ones, for good.
        """
        if not rebuilds:
            self._check_ends(plan)
        if (self.is_limited and not rebuilds) or not (self.inputs or (rebuilds and self.noted)):
            return plan
        consumed = {
            name: OF_A_SAMPLE if self.is_of_sample else taken.end
            for name, taken in self.inputs.items()
            # a commit takes over the note of the one before, so that of a table built of no rows says: nothing
            if taken.end is not None and not self.is_limited and (rebuilds or not taken.is_early)
        }
        checkpoint = consumed if rebuilds else {**self.noted, **consumed}
        noted = {CHECKPOINT: format_checkpoint(checkpoint)}
        if not rebuilds:
            noted[CHECKPOINT_BEFORE] = format_checkpoint(dict(self.noted))
        return replace(plan, given_options={**plan.given_options, **noted})

    def _check_ends(self, plan: ModelPlan) -> None:
        early = {name: taken.end for name, taken in self.inputs.items() if taken.is_early}
        if early and plan.merge.strategy not in ADDING:
            said = ", ".join(
                f"{name} up to {self.noted_for(name)}, and the window ends at {end or 'nothing'}"
                for name, end in early.items()
            )
            raise DbtRuntimeError(
                f"{plan.schema}.{plan.name} has taken {said}: its rows would become older ones, and rows that were deleted later "
                "would stay. Leave end (or the limit) out, so that the window goes on to the newest commit, or build the model "
                "with --full-refresh"
            )
