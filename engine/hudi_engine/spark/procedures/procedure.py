"""What a procedure is: arguments in, rows out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import Options
from hudi_engine.format.layout.layout import split_names
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.format.timeline.clock import format_instant
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.inspect import instant_facts
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

Row = tuple[Any, ...]
_TRUTH: Mapping[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True)
class Call:
    """One call of a procedure.

    Args:
        given: Arguments by name in small letters, without ``table``.
    """

    services: TableServices
    given: Mapping[str, str]

    @cached_property
    def state(self) -> TableState:
        """The table as this call finds it."""
        return TableState.load(self.services.storage)

    @cached_property
    def _completed(self) -> Mapping[tuple[str, str], datetime | None]:
        return {(each.instant, each.action): each.completed_at for each in instant_facts(self.state)}

    def completed_at(self, instant: Instant) -> str | None:
        """Return when an instant of the active timeline completed, as Hudi writes times; None where that is not known."""
        moment = self._completed[instant.requested_time, instant.action]
        return None if moment is None else format_instant(moment, self.state.timeline.zone)

    def text(self, name: str, default: str = "") -> str:
        """Return an argument."""
        return self.given.get(name, default)

    def number(self, name: str, default: int) -> int:
        """Return a whole number of at least 1; raises ConfigError for anything else."""
        raw = self.given.get(name)
        if raw is None:
            return default
        if not raw.isdecimal() or int(raw) < 1:
            raise ConfigError(f"{name} is {raw!r}; legal values: whole numbers of at least 1")
        return int(raw)

    def truth(self, name: str, default: bool) -> bool:
        """Return true or false; raises ConfigError for anything else."""
        raw = self.given.get(name, str(default)).lower()
        if raw not in _TRUTH:
            raise ConfigError(f"{name} is {raw!r}; legal values: true, false")
        return _TRUTH[raw]

    def options(self, more: Mapping[str, object] | None = None) -> Options:
        """Return the table's options with the argument ``options`` on them, ``key=value`` pairs with commas between.

        Args:
            more: Options of other arguments, which the pairs overrule.

        Raises:
            ConfigError: Something is no pair, or no option.
        """
        pairs: dict[str, object] = dict(more or {})
        for part in split_names(self.text("options")):
            key, equals, value = part.partition("=")
            if not equals:
                raise ConfigError(f"options has {part!r}; legal are key=value pairs with commas between")
            pairs[key.strip()] = value.strip()
        return self.services.options.merged(pairs)


@dataclass(frozen=True)
class Procedure:
    """One of Hudi's procedures.

    Args:
        columns: Its columns as Spark's DDL, ``commit_time string, ...``.
        run: What it does; it returns rows in the order of the columns.
        arguments: All arguments in Hudi's order, ``table`` among them.
        required: Those that must be given beside ``table``.
    """

    name: str
    columns: str
    run: Callable[[Call], Sequence[Row]]
    arguments: tuple[str, ...] = ("table", "limit")
    required: tuple[str, ...] = ()
    changes: bool = False

    def call(self, services: TableServices, given: Mapping[str, str]) -> list[Row]:
        """Run it.

        Args:
            given: Arguments by name, ``table`` among them or not.

        Raises:
            ConfigError: An argument is unknown, missing or makes no sense.
        """
        unknown = sorted(set(given) - set(self.arguments))
        if unknown:
            legal = ", ".join(self.arguments)
            raise ConfigError(
                f"{self.name} has the unknown argument {unknown[0]!r}; {did_you_mean(unknown[0], self.arguments)}legal: {legal}"
            )
        missing = [name for name in self.required if name not in given]
        if missing:
            raise ConfigError(
                f"{self.name} needs {missing[0]}; its arguments are {', '.join(self.arguments)}"
            )
        return list(self.run(Call(services, given)))
