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
from hudi_engine.table.report.markup import size
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

Row = tuple[Any, ...]
"""A row of a procedure, in the order of its columns."""
_FLAGS: Mapping[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True)
class Arg:
    """What an annotation adds to the type of an argument."""

    doc: str = ""  # one line of help
    legal: tuple[str, ...] = ()  # legal values; () for any
    minimum: int = 1  # smallest legal number
    is_word: bool = False  # the command line takes it as a word after the command instead of as ``--name``
    flag: str = ""  # another spelling of ``--name`` on the command line
    switches: tuple[str, ...] = ()  # values with a switch of their own, ``--schedule`` for ``schedule``
    refused: str = ""  # which legal value of Hudi is refused here, for the help of a procedure


@dataclass(frozen=True)
class Argument:
    """One argument of an operation."""

    name: str
    types: frozenset[type]  # ``str``, ``int``, ``bool``, ``tuple`` (names), or ``str`` and ``tuple``
    default: Any  # ``inspect.Parameter.empty`` for one that must be given
    about: Arg

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    def parse(self, value: Any) -> Any:
        """Return a value of Python, YAML, SQL or the command line in the argument's type."""
        if bool in self.types:
            found = _FLAGS.get(str(value).strip().lower())
            return self._checked(value, found is not None, found, "true, false")
        if int in self.types:
            number, least, legal = _number(value), self.about.minimum, self.about.legal
            is_legal = number is not None and (str(number) in legal if legal else number >= least)
            words = ", ".join(legal) or f"whole numbers of at least {least}"
            return self._checked(value, is_legal, number, words)
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
        """Return the table's options with ``key=value`` pairs on them, which have commas between."""
        chosen: dict[str, object] = dict(more or {})
        for part in split_names(pairs):
            key, equals, value = part.partition("=")
            if not equals:
                raise ConfigError(f"options has {part!r}; legal values: key=value pairs with commas between")
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

    def __call__(self, *given: Any) -> Answer:
        """Run one that is no procedure, with arguments in their types."""
        answer: Answer = self.run(*given)
        return answer

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
        """Return arguments in their types; None and what is not given is left to the default."""
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


def operation(**about: Any) -> Callable[[Callable[..., Any]], Operation]:
    """Return a decorator that makes an operation of a function; arguments as of `Operation`."""
    return lambda run: Operation(run, **about)


def procedure(columns: str, **about: Any) -> Callable[[Callable[..., Any]], Operation]:
    """Return a decorator that makes a procedure with these columns of a function; arguments as of `Operation`."""
    return operation(columns=columns, **about)


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


Cells = Mapping[str, Any]
"""Column to value, as JSON can hold it."""


@dataclass(frozen=True)
class Answer:
    """What an operation answers."""

    rows: Sequence[Cells] = ()  # a table, one mapping a line; the first one gives the columns
    facts: Cells = field(default_factory=dict)
    notes: Sequence[str] = ()
    reason: str = ""
    ok: bool = True  # false when the answer is no, as of a validation that failed
    of_table: bool = False  # rows and columns are those of the table, and are shown as they are
    rows_name: str = "rows"


def as_text(answer: Answer) -> str:
    """Return an answer as lines: facts, a table with numbers to the right, notes."""
    parts = []
    if answer.facts:
        width = max(map(len, answer.facts))
        lines = (f"{_words(key):{width}}  {shown(key, value)}" for key, value in answer.facts.items())
        parts.append("\n".join(lines))
    if answer.rows:
        parts.append(_table(answer.rows, answer.of_table))
    notes = [*answer.notes, *([answer.reason] if answer.reason else [])]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts) if parts else "nothing"


def as_line(answer: Answer) -> str:
    """Return the facts of an answer in one line."""
    if answer.reason:
        return f"nothing to do: {answer.reason}"
    facts = (f"{_words(key)} {shown(key, value)}" for key, value in answer.facts.items() if value is not None)
    return ", ".join(facts)


def shown(key: str, value: Any) -> str:
    """Return a value as people read it: bytes in units, shares in percent, moments in UTC to the second."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if "bytes" in key:
        return size(value)
    if key.endswith("share"):
        return f"{value:.1%}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value)


def _as_it_is(_: str, value: Any) -> str:
    return "null" if value is None else str(value)


def _table(rows: Sequence[Cells], as_they_are: bool) -> str:
    """Return rows as a text table, numbers to the right."""
    columns = list(rows[0])
    heads = columns if as_they_are else [_words(name) for name in columns]
    text = _as_it_is if as_they_are else shown
    cells = [[text(name, row[name]) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells)]
    right = [
        all(isinstance(row[name], (int, float)) or row[name] is None for row in rows) for name in columns
    ]

    def line(values: Sequence[str]) -> str:
        padded = (
            f"{value:>{width}}" if to_right else f"{value:{width}}"
            for value, width, to_right in zip(values, widths, right)
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line(heads), *map(line, cells)])


def _words(name: str) -> str:
    return name.replace("_", " ")
