"""The arguments of ``hudi_changes``, checked at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError
from hudi_engine.table.changes.checkpoint import LIMIT_NAMES, WindowLimits
from hudi_engine.table.changes.window import MODES, NET

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
            f"{name} is no argument; legal are {', '.join(_LEGAL)}" for name in given if name not in _LEGAL
        ]
        problems += [
            f"{name} is {given[name]!r}; legal are {', '.join(legal)}"
            for name, legal in (("mode", MODES), ("on_gap", ON_GAP))
            if given.get(name, legal[0]) not in legal
        ]
        limits = WindowLimits()
        try:
            limits = WindowLimits(*(given.get(name) for name in LIMIT_NAMES))
        except ConfigError as error:
            problems += error.problems
        problems += [
            f"{name} is {given[name]!r}; legal are true and false"
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
