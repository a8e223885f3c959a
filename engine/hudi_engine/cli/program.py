"""The program: arguments in, one answer out."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn, TextIO
from uuid import UUID

from hudi_engine import __version__
from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import split_names
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.read_only import is_refusal
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.operations import OPERATIONS, Answer, Arg, Call, Operation, as_text
from hudi_engine.table.operations.operation import Argument
from hudi_engine.table.services import RunLarge
from hudi_engine.table.services.clustering.write_group import ClusteringContext, GroupTask
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.swap import table_storage

FOUND_SOMETHING, FAILED = 1, 2
"""Exit codes other than 0: ``validate`` failed; the command could not be carried out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

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
    return f"this process may not read or write {place}: {cause.strerror}; commands that only look need no right to write"


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


def escape_what_is_lacking(stream: TextIO) -> None:
    """Let a stream write a character that its encoding lacks as an escape of hexadecimal digits instead of failing."""
    # another rule than the strict one was chosen by the user
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


def as_json(answer: Answer, encoding: str | None = None) -> str:
    """Return an answer as JSON; an answer of rows alone is a list."""
    notes = [*answer.notes, *([answer.reason] if answer.reason else [])]
    content: object = list(answer.rows)
    if answer.facts or notes:
        rows = {answer.rows_name: list(answer.rows)} if answer.rows else {}
        content = {**answer.facts, **rows, **({"notes": notes} if notes else {})}
    return json_text(content, encoding)


def json_text(content: object, encoding: str | None) -> str:
    """Return JSON, with escapes for all characters outside of ASCII where an encoding lacks one of the text."""
    text = json.dumps(content, default=_plain, indent=2, ensure_ascii=False)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(content, default=_plain, indent=2)
    return text


def _plain(value: object) -> object:
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, timedelta, UUID)):
        return str(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be JSON")


def call(
    table: Call,
    procedure: Annotated[str, Arg("such as show_commits; `help` lists them", is_word=True)],
    arguments: Annotated[tuple[str, ...], Arg("such as limit=5", is_word=True)] = (),
) -> Answer:
    """Run one of Apache Hudi's CALL procedures."""
    from hudi_engine.table.operations.procedures import call_procedure, find_procedure, help_text

    given = dict(_pair(each) for each in arguments)
    if procedure.lower() == "help":
        return Answer(notes=[help_text(given.get("cmd"))])
    return call_procedure(find_procedure(procedure), table.services, given)


COMMANDS: dict[str, Operation] = {
    each.name.replace("_", "-"): each for each in (*OPERATIONS.values(), Operation(call, changes=True))
}


def declare(parser: ArgumentParser, operation: Operation) -> None:
    """Declare the arguments of an operation; they are parsed by the operation itself."""
    for each in operation.arguments.values():
        _declare(parser, each)


def run(operation: Operation, storage: Storage, options: Options, given: Namespace) -> Answer:
    """Run a command."""
    chosen = {name: value for name, value in vars(given).items() if name in operation.arguments}
    for name, value in chosen.items():
        if isinstance(value, list) and not operation.arguments[name].about.is_word:
            chosen[name] = [part for each in value for part in split_names(each)]
    services = replace(TableServices(storage, options), run_large=_in_local_spark())
    answer: Answer = operation.execute(Call(services, options.raw), **operation.bind(chosen))
    return answer


def _declare(parser: ArgumentParser, argument: Argument) -> None:
    """Declare one argument: a word, switches for its values, or ``--name``."""
    about, name = argument.about, argument.name
    text = "; ".join(part for part in (about.doc, ", ".join(about.legal)) if part)
    is_list = argument.types == {tuple}
    if about.is_word:
        several = "*" if is_list else None if argument.is_required else "?"
        parser.add_argument(name, nargs=several, help=text, metavar=name.upper())
        return
    if about.switches:
        group = parser.add_mutually_exclusive_group()
        for value in about.switches:
            group.add_argument(
                f"--{value}",
                dest=name,
                action="store_const",
                const=value,
                default=SUPPRESS,
                help=f"{name}: {value}",
            )
        return
    flags = [f"--{name.replace('_', '-')}", *([about.flag] if about.flag else [])]
    flags += ["-n"] if name == "limit" else []
    if bool in argument.types:
        parser.add_argument(*flags, action="store_true", dest=name, help=text)
        return
    more: dict[str, Any] = {"action": "append"} if is_list else {}
    default = f" (default {argument.default})" if isinstance(argument.default, int) else ""
    parser.add_argument(*flags, dest=name, metavar=name.upper(), help=f"{text}{default}", **more)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"the argument {text!r} has no value; write it as name=value")
    return name.strip().lower(), value.strip()


def _in_local_spark() -> RunLarge:
    """Return what sorts a group that is too large for a task, in a Spark of this machine."""

    def run_large(context: ClusteringContext, task: GroupTask) -> list[WriteStat]:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise ConfigError(
                f"a group of {task.size} bytes is sorted by Spark, and PySpark is not installed; install pyspark, or raise "
                "hoodie.engine.clustering.task.bytes"
            ) from error
        from hudi_engine.spark.services.clustering import run_large_in_spark

        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.variable.substitute": "false",
        }
        builder = SparkSession.builder.master("local[*]").appName("hudi-engine")
        for key, value in settings.items():
            builder = builder.config(key, value)
        return run_large_in_spark(builder.getOrCreate())(context, task)

    return run_large
