"""What a command is: a function from a table and its arguments to an answer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

Row = Mapping[str, Any]
"""Column to value, as JSON can hold it."""


@dataclass(frozen=True)
class Answer:
    """What a command says.

    Args:
        rows: A table, one mapping a line; the first one gives the columns.
        ok: Whether the exit code is 0; False makes it 1.
    """

    rows: Sequence[Row] = ()
    facts: Row = field(default_factory=dict)
    notes: Sequence[str] = ()
    ok: bool = True
    rows_name: str = "rows"


@dataclass(frozen=True)
class Call:
    """One call of a command.

    Args:
        options: ``hoodie.*`` options given with ``-o``.
    """

    storage: Storage
    options: Options
    given: Namespace

    @cached_property
    def state(self) -> TableState:
        """The table as this call finds it."""
        return TableState.load(self.storage)

    @property
    def services(self) -> TableServices:
        """The table's services, in threads of this process."""
        return TableServices(self.storage, self.options)


def no_arguments(parser: ArgumentParser) -> None:
    """Take no further arguments."""


@dataclass(frozen=True)
class Command:
    """A word after the table."""

    name: str
    help: str
    run: Callable[[Call], Answer]
    arguments: Callable[[ArgumentParser], None] = no_arguments
