"""The program: arguments in, one answer out."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from hudi_engine import __version__
from hudi_engine.cli.commands import COMMANDS, declare, run
from hudi_engine.cli.output import as_json, escape_what_is_lacking
from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.read_only import is_refusal
from hudi_engine.table.operations import as_text
from hudi_engine.table.txn.swap import table_storage

FOUND_SOMETHING, FAILED = 1, 2
"""Exit codes other than 0: ``validate`` failed; the command could not be carried out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        arguments: The words after the program's name; None for those of this process.

    Returns:
        0 when all is well, 1 when the answer is no, 2 when the command could not be carried out.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    given = _parser(words).parse_args(words)
    name: str = given.command
    logging.basicConfig(level=logging.INFO if given.verbose else logging.WARNING, format="%(message)s")
    try:
        storage = table_storage(given.table)
        options = resolve_options(dict(_option(each) for each in (*given.option_before, *given.option)))
        TableConfig.load(storage)
        answer = run(COMMANDS[name], storage, options, given)
        text = as_json(answer, sys.stdout.encoding) if given.json else as_text(answer)
    except (HudiError, OSError) as error:
        sys.stderr.write(f"hudi-engine {name}: {_reason(error)}\n")
        return FAILED
    except KeyboardInterrupt:
        return 130
    escape_what_is_lacking(sys.stdout)
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        sys.stderr.close()
    except OSError as error:
        sys.stderr.write(f"hudi-engine {name}: the answer cannot be written: {error}\n")
        # What is left in the buffer would be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return 0 if answer.ok else FOUND_SOMETHING


def _reason(error: Exception) -> str:
    """Return the text of an error; one of a place that must not be written to has the same words wherever it came up."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__
    if cause is None or not is_refusal(cause):
        return str(error)
    place = "the table" if cause.filename is None else cause.filename
    return f"this process must not write or read {place}: {cause.strerror}; commands that only look need no right to write"


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"the option {text!r} has no value; write it as -o hoodie.key=value")
    return key.strip(), value.strip()


class _Parser(argparse.ArgumentParser):
    """A parser that names the nearest word."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments and leave."""
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found is not None:
            near = get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), n=1)
            message += f"; did you mean {near[0]!r}?" if near else ""
        super().error(message)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of a command line; only the command that is named gets its arguments, which takes time."""
    parser = _Parser(
        prog="hudi-engine",
        description="Look at an Apache Hudi table and keep it, without Spark and without a JVM.",
    )
    parser.add_argument("--version", action="version", version=f"hudi-engine {__version__}")
    _add_shared(parser, "option_before", unless_given=False)
    parser.add_argument("table", metavar="TABLE", help="base path of the table: a folder or a URI")
    shared = _Parser(add_help=False)
    _add_shared(shared, "option", unless_given=argparse.SUPPRESS)
    words = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, operation in COMMANDS.items():
        own = words.add_parser(name, help=operation.doc, description=operation.doc, parents=[shared])
        if name in given:
            declare(own, operation)
        own.set_defaults(command=name)
    return parser


def _add_shared(parser: argparse.ArgumentParser, options: str, *, unless_given: object) -> None:
    """Declare what may be given before the table and after the command.

    Args:
        options: Where options are collected: those after the command do not add to those before it.
        unless_given: Value of the switches that are not given here.
    """
    parser.add_argument("--json", action="store_true", default=unless_given, help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", default=unless_given, help="log what is done")
    parser.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        dest=options,
        metavar="KEY=VALUE",
        help="a hoodie.* option; may be repeated",
    )
