"""``dbt-hudi runs``, ``undo`` and ``show-config``: commands over the tables of a profile, which dbt itself does not have."""

from __future__ import annotations

import io
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any

from dbt.adapters.factory import get_adapter_by_type
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import DbtBaseException
from hudi_engine.cli.program import FAILED, as_json
from hudi_engine.errors import HudiError
from hudi_engine.table.operations import Answer, as_text

from dbt.adapters.hudi.past_runs import UndoPlan
from dbt.adapters.hudi.shell.effective_config import effective_config

_WRITING = ("run", "build", "seed", "snapshot", "clone", "retry", "run-operation")
_TABLES = ("model", "seed", "snapshot", "test")


class ProjectError(Exception):
    """The project cannot be read, or the selection names nothing."""


@contextmanager
def project(given: Namespace, options: Sequence[str]) -> Iterator[tuple[Any, frozenset[str] | None]]:
    """Give the adapter of a project, without Spark so far, and the unique ids of the nodes that are selected, None for all.

    Args:
        options: Of dbt, such as ``--target`` and ``--project-dir``.
    """
    selection = [word for name in ("select", "exclude") for word in _words(name, getattr(given, name, None))]
    kinds = [word for each in _TABLES for word in ("--resource-type", each)]
    words = ["ls", "--quiet", "--output", "json", "--output-keys", "unique_id", *kinds, *selection, *options]
    said = io.StringIO()
    with redirect_stdout(said):
        done = dbtRunner().invoke(words)
    if not done.success:
        raise ProjectError(str(done.exception or said.getvalue().strip()))
    listed = done.result if isinstance(done.result, list) else []
    nodes = frozenset(json.loads(each)["unique_id"] for each in listed)
    adapter: Any = get_adapter_by_type("hudi")  # type: ignore[no-untyped-call]
    with adapter.connection_named("dbt-hudi"):
        yield adapter, nodes if selection else None


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run one of `COMMANDS`; returns 0, or 2 when it could not be carried out."""
    given, options = parser_of(name).parse_known_args(arguments)
    try:
        with project(given, options) as (adapter, nodes):
            return COMMANDS[name](adapter, nodes, given)
    except (ProjectError, DbtBaseException, HudiError, OSError) as error:
        sys.stderr.write(f"dbt-hudi {name}: {getattr(error, 'msg', None) or error}\n")
        return FAILED


def parser_of(name: str) -> ArgumentParser:
    """Return the parser of one of `COMMANDS`; what it does not know goes to dbt."""
    parser = ArgumentParser(prog=f"dbt-hudi {name}", description=COMMANDS[name].__doc__, epilog=_OPTIONS)
    parser.add_argument("--json", action="store_true", help="print JSON")
    _DECLARE[name](parser)
    return parser


def runs(adapter: Any, nodes: frozenset[str] | None, given: Namespace) -> int:  # noqa: ARG001
    """List the dbt runs that the tables know of, from their timelines: models, rows, time."""
    show(adapter.hudi_runs(given.run, given.limit, all_schemas=given.all_schemas), given)
    return 0


def undo(adapter: Any, nodes: frozenset[str] | None, given: Namespace) -> int:
    """Take every table that a dbt run wrote back to the instant before it; tables that the run made are dropped."""
    plan = adapter.undo_plan(given.run, nodes, all_schemas=given.all_schemas)
    if given.last and not plan.way_out:
        _check_last(adapter, plan)
    if not (given.json and given.yes) or plan.problems(force=given.force):
        show(plan.answer(), given)
    plan.check(force=given.force)
    if not given.yes and not _agreed(len(plan.tables)):
        sys.stderr.write("nothing was changed; --yes takes the tables back without a question\n")
        return FAILED
    show(adapter.undo(plan, force=given.force), given)
    return 0


def _check_last(adapter: Any, plan: UndoPlan) -> None:
    """Refuse to take the last run that wrote for the last one of this project, which wrote nothing here; raises ProjectError."""
    try:
        text = Path(adapter.config.project_target_path, "run_results.json").read_text(encoding="utf-8")
        results = json.loads(text)
        meta, which = results["metadata"], results["args"].get("which")
        run, ended = (
            str(meta["invocation_id"]),
            datetime.fromisoformat(meta["generated_at"].replace("Z", "+00:00")),
        )
    except (OSError, ValueError, KeyError, AttributeError):
        return
    moments = [one.committed_at for each in plan.tables for one in each.own if one.committed_at]
    if which in _WRITING and run != plan.run and moments and ended > max(moments):
        raise ProjectError(
            f"the last run of this project, dbt {which} {run}, has written no table of this target; the newest one that has is "
            f"{plan.run}. Nothing was changed. To take that one back: dbt-hudi undo --run {plan.run[:8]}"
        )


def show_config(adapter: Any, nodes: frozenset[str] | None, given: Namespace) -> int:
    """Print the effective configs and options of nodes, each with the place that it comes from."""
    manifest = adapter.get_macro_resolver()
    found = [manifest.nodes[each] for each in sorted(nodes or ()) if not each.startswith("test.")]
    if not found:
        raise ProjectError(
            f"no model, seed or snapshot is selected by {' '.join(given.select)}; `dbt ls` lists them"
        )
    for node in found:
        show(effective_config(adapter, node, defaults=given.all), given)
    return 0


def show(answer: Answer, given: Namespace) -> None:
    """Print an answer."""
    sys.stdout.write(f"{as_json(answer, sys.stdout.encoding) if given.json else as_text(answer)}\n")
    sys.stdout.flush()


def _agreed(tables: int) -> bool:
    if not sys.stdin.isatty():
        return False
    sys.stdout.write(f"\nTake {tables} tables back? Their commits and files go for good. [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _words(name: str, values: Sequence[str] | None) -> list[str]:
    return [f"--{name}", *values] if values else []


def _of_runs(parser: ArgumentParser) -> None:
    parser.add_argument("--run", help="only this run, table by table; the beginning of its invocation id")
    parser.add_argument("--limit", type=int, default=20, help="the newest so many (0: all; default 20)")
    _of_schemas(parser)


def _of_schemas(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--all-schemas", action="store_true", help="also runs that wrote no table in a schema of the target"
    )


def _of_config(parser: ArgumentParser) -> None:
    parser.add_argument(
        "select", nargs="+", metavar="MODEL", help="a model, seed or snapshot, as dbt selects it"
    )
    parser.add_argument(
        "--all", action="store_true", help="options that nothing sets too, with their defaults"
    )


def _of_undo(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--run", help="the beginning of the run's invocation id, as `dbt-hudi runs` lists it")
    which.add_argument("--last", action="store_true", help="the run with the newest commit")
    parser.add_argument("-s", "--select", nargs="+", help="only tables of these nodes, as dbt selects them")
    parser.add_argument("--exclude", nargs="+", help="all but these")
    _of_schemas(parser)
    parser.add_argument("--force", action="store_true", help="take later commits of others back too")
    parser.add_argument("--yes", action="store_true", help="do not ask")


_OPTIONS = "Further options, such as --target prod or --project-dir DIR, go to dbt."
COMMANDS: Mapping[str, Callable[[Any, frozenset[str] | None, Namespace], int]] = {
    "runs": runs,
    "undo": undo,
    "show-config": show_config,
}
_DECLARE: Mapping[str, Callable[[ArgumentParser], None]] = {
    "runs": _of_runs,
    "undo": _of_undo,
    "show-config": _of_config,
}
