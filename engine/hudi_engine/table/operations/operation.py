"""What an operation is: a function of a table whose signature describes its arguments.

The command line, ``CALL``, dbt's macros and the tables of the docs are views of it: names, defaults, legal values and help
come from the signature and the docstring, and every view binds what it was given with :meth:`Operation.bind`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

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
"""A row of a procedure, in the order of its columns."""
_FLAGS: Mapping[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True)
class Arg:
    """What an annotation adds to the type of an argument.

    Args:
        doc: One line of help.
        legal: Legal values; () for any.
        minimum: Smallest legal number.
        is_word: The command line takes it as a word after the command instead of as ``--name``.
        flag: Another spelling of ``--name`` on the command line.
        switches: Values with a switch of their own on the command line, ``--schedule`` for ``schedule``.
        refused: Which legal value of Hudi is refused here, for the help of a procedure.
    """

    doc: str = ""
    legal: tuple[str, ...] = ()
    minimum: int = 1
    is_word: bool = False
    flag: str = ""
    switches: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class Argument:
    """One argument of an operation.

    Args:
        types: What it is: ``str``, ``int``, ``bool``, ``tuple`` (names), or ``str`` and ``tuple``.
        default: ``inspect.Parameter.empty`` for one that must be given.
    """

    name: str
    types: frozenset[type]
    default: Any
    about: Arg

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    def parse(self, value: Any) -> Any:
        """Return a value of Python, YAML, SQL or the command line in the argument's type.

        Raises:
            ConfigError: It has another type, or is not legal.
        """
        if bool in self.types:
            found = _FLAGS.get(str(value).strip().lower())
            return self._checked(value, found is not None, found, "true, false")
        if int in self.types:
            least = self.about.minimum
            number = _number(value)
            legal = f"whole numbers of at least {least}"
            return self._checked(value, number is not None and number >= least, number, legal)
        if tuple in self.types and not isinstance(value, str):
            several = isinstance(value, Iterable) and not isinstance(value, Mapping)
            return self._legal(tuple(map(str, value)) if several else (str(value),))
        if isinstance(value, (Mapping, list, tuple, bool)):
            raise ConfigError(f"{self.name} is {value!r}; give a text")
        if tuple in self.types and str not in self.types:
            return self._legal(split_names(value))
        return self._legal((str(value),))[0]

    def _legal(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return values as they are spelled among the legal ones."""
        if not self.about.legal:
            return values
        spelled = {each.lower(): each for each in self.about.legal}
        wrong = [each for each in values if each.lower() not in spelled]
        self._checked(wrong[0] if wrong else "", not wrong, None, ", ".join(self.about.legal))
        return tuple(spelled[each.lower()] for each in values)

    def _checked(self, value: Any, is_legal: bool, found: Any, legal: str) -> Any:
        if not is_legal:
            raise ConfigError(f"{self.name} is {value!r}; legal values: {legal}")
        return found


@dataclass(frozen=True)
class Call:
    """The table of a call.

    Args:
        given: ``hoodie.*`` options of this call; ``services`` have them already.
    """

    services: TableServices
    given: Mapping[str, object] = field(default_factory=dict)

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

    def options(self, pairs: str, more: Mapping[str, object] | None = None) -> Options:
        """Return the table's options with ``key=value`` pairs on them, which have commas between.

        Args:
            more: Options of other arguments, which the pairs overrule.

        Raises:
            ConfigError: Something is no pair, or no option.
        """
        chosen: dict[str, object] = dict(more or {})
        for part in split_names(pairs):
            key, equals, value = part.partition("=")
            if not equals:
                raise ConfigError(f"options has {part!r}; legal are key=value pairs with commas between")
            chosen[key.strip()] = value.strip()
        return self.services.options.merged(chosen)


@dataclass(frozen=True)
class Operation:
    """One operation on a table.

    Args:
        run: Takes a `Call` and the arguments; its name, signature and docstring describe the operation. It returns an
            `Answer`, or the rows of a procedure.
        columns: Columns of a procedure as Spark's DDL, ``commit_time string, ...``.
        changes: Whether it changes what readers see, unless ``dry_run`` is true or ``op`` is ``show``.
        is_service: Whether a failure leaves the commits of the table as good as they were, so that a hook may go on.
        table_at: Place of the table among the arguments.
        before: Parameters of `run` before the arguments.
    """

    run: Callable[..., Any]
    columns: str = ""
    changes: bool = False
    is_service: bool = False
    table_at: int = 0
    before: int = 1

    @property
    def name(self) -> str:
        """The name, with underscores."""
        return self.run.__name__

    @property
    def doc(self) -> str:
        """What it does, in one line."""
        return (self.run.__doc__ or "").partition("\n")[0].rstrip(".")

    @cached_property
    def arguments(self) -> Mapping[str, Argument]:
        """The arguments after the table, in order."""
        hints = get_type_hints(self.run, include_extras=True)
        found = list(inspect.signature(self.run).parameters.values())[self.before :]
        arguments: dict[str, Argument] = {}
        for each in found:
            hint = hints[each.name]
            if is_dataclass(hint):
                types = get_type_hints(hint, include_extras=True)
                several = {
                    one.name: _argument(one.name, types[one.name], one.default) for one in fields(hint)
                }
                arguments.update(several)
            else:
                arguments[each.name] = _argument(each.name, hint, each.default)
        return arguments

    @property
    def required(self) -> tuple[str, ...]:
        """Arguments that must be given."""
        return tuple(name for name, each in self.arguments.items() if each.is_required)

    @property
    def names(self) -> tuple[str, ...]:
        """All arguments with the table, in order."""
        own = tuple(self.arguments)
        return (*own[: self.table_at], "table", *own[self.table_at :])

    def bind(
        self, given: Mapping[str, Any], called: str | None = None, more: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return arguments in their types; None and what is not given is left to the default.

        Args:
            called: The name under which the caller knows the operation.
            more: Further arguments of the caller.

        Raises:
            ConfigError: An argument is unknown, missing or not legal.
        """
        called, legal = called or self.name, (*self.names, *more)
        unknown = [name for name in given if name not in self.arguments]
        if unknown:
            raise ConfigError(
                f"{called} has no argument {unknown[0]!r}; {did_you_mean(unknown[0], legal)}its arguments: {', '.join(legal)}"
            )
        missing = [name for name in self.required if given.get(name) is None]
        if missing:
            raise ConfigError(f"{called} needs {missing[0]}; its arguments: {', '.join(legal)}")
        return {name: self.arguments[name].parse(value) for name, value in given.items() if value is not None}

    def execute(self, target: Any, *first: Any, **bound: Any) -> Any:
        """Run it with arguments that `bind` gave; a parameter that is a dataclass gets its own of them."""
        hints = get_type_hints(self.run)
        for each in list(inspect.signature(self.run).parameters)[self.before :]:
            if is_dataclass(hints[each]):
                own = {one.name: bound.pop(one.name) for one in fields(hints[each]) if one.name in bound}
                bound[each] = hints[each](**own)
        return self.run(target, *first, **bound)

    def only_looks(self, bound: Mapping[str, Any]) -> bool:
        """Tell whether a call with these arguments leaves the table as it is for readers."""
        dry_run = self.arguments.get("dry_run")
        is_dry = dry_run is not None and bound.get("dry_run", dry_run.default)
        return not self.changes or is_dry or bound.get("op") == "show"

    def call(self, services: TableServices, given: Mapping[str, Any]) -> Any:
        """Run it with what a caller gave; raises ConfigError as `bind` does."""
        return self.execute(Call(services), **self.bind(given))


def _argument(name: str, hint: Any, default: Any) -> Argument:
    about = Arg()
    if get_origin(hint) is Annotated:
        hint, about = get_args(hint)
    kinds = [hint] if get_origin(hint) in (None, tuple) else get_args(hint)
    types = frozenset(get_origin(kind) or kind for kind in kinds if kind is not NoneType)
    return Argument(name, types, default, about)


def _number(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdigit() else None
