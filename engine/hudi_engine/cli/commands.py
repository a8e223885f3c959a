"""The commands: the operations on a table, and what only a shell has, a server of the report and calls of procedures."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from dataclasses import replace
from typing import Annotated, Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.operations import OPERATIONS, Answer, Arg, Call, Operation
from hudi_engine.table.operations.operation import Argument
from hudi_engine.table.services import RunLarge
from hudi_engine.table.services.clustering.write_group import ClusteringContext, GroupTask
from hudi_engine.table.table_services import TableServices


def serve_report(
    call: Call,
    host: Annotated[
        str | None,
        Arg("listen at this address; whoever reaches it sees the page (default: this machine alone)"),
    ] = None,
    port: Annotated[int, Arg("listen at this port (default: one that is free)", minimum=0)] = 0,
    count: Annotated[bool, Arg("merge logs, so that the rows of a merge-on-read table are known")] = False,
) -> Answer:
    """Show the report to browsers, made for each request, until the process is interrupted."""
    from hudi_engine.table.report import serve

    services = call.services
    server = serve.serve_report(
        services.storage, services.options, host=host or serve.LOOPBACK, port=port, count_rows=count
    )
    # On the error stream, so that the answer at the end is the only text on the other one.
    sys.stderr.write(f"report at {server.url} until Ctrl+C\n")
    sys.stderr.flush()
    server.run()
    return Answer(facts={"served": server.url})


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
    each.name.replace("_", "-"): each
    for each in (*OPERATIONS.values(), Operation(serve_report), Operation(call, changes=True))
}


def declare(parser: ArgumentParser, operation: Operation) -> None:
    """Declare the arguments of an operation; they are parsed by the operation itself."""
    for each in operation.arguments.values():
        _declare(parser, each)


def run(operation: Operation, storage: Storage, options: Options, given: Namespace) -> Answer:
    """Run a command.

    Raises:
        ConfigError: An argument is not legal.
    """
    chosen = {name: value for name, value in vars(given).items() if name in operation.arguments}
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
                f"a group of {task.size_bytes} bytes is sorted by Spark, and PySpark is not installed; install pyspark, or raise "
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
