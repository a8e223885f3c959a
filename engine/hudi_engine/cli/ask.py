"""Commands that only look, asked by a program rather than from a shell."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from hudi_engine.cli import look
from hudi_engine.cli.command import Call, Command
from hudi_engine.cli.output import as_text
from hudi_engine.cli.registry import COMMANDS
from hudi_engine.errors import ConfigError
from hudi_engine.table.table_services import TableServices

LOOKS: Mapping[str, Command] = MappingProxyType(
    {each.name: each for each in COMMANDS if each.run.__module__ == look.__name__}
)


class _Parser(ArgumentParser):
    """Takes arguments as a program gives them, and refuses them with an error rather than an exit."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


def ask(services: TableServices, name: str, given: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the lines of an answer, and whether it is yes.

    Args:
        name: A command that only looks, one of :data:`LOOKS`.
        given: Its arguments by name, such as ``{"limit": 5, "keys": True}``.

    Raises:
        ConfigError: There is no such command or argument, or a value makes no sense.
    """
    if name not in LOOKS:
        raise ConfigError(f"{name!r} is no look; legal values: {', '.join(LOOKS)}")
    words: list[str] = []
    for key, value in given.items():
        flag = f"--{key.replace('_', '-')}"
        words += [] if value is None or value is False else [flag] if value is True else [f"{flag}={value}"]
    parser = _Parser(prog=name, add_help=False)
    LOOKS[name].arguments(parser)
    arguments = parser.parse_args(words, Namespace())
    answer = LOOKS[name].run(Call(services.storage, services.options, arguments))
    return as_text(answer).splitlines(), answer.ok
