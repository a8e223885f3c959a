"""``dbt-hudi plan``: what a dbt run would write, in rows, before it runs."""

from __future__ import annotations

import math
import operator
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dbt.adapters.factory import get_adapter_by_type
from dbt.cli.main import dbtRunner
from hudi_engine.cli.program import FAILED, FOUND_SOMETHING, json_text
from hudi_engine.errors import HudiError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.table.report.markup import Cell, size
from hudi_engine.table.services.due import table_stats
from hudi_engine.table.state import TableState
from hudi_engine.table.write.result import WriteResult

from dbt.adapters.hudi.preview import PREVIEW, PlannedNode
from dbt.adapters.hudi.run import RUNS
from dbt.adapters.hudi.shell.plan_page import plan_page

_COUNTS = {
    "read": "rows_read",
    "inserted": "rows_inserted",
    "updated": "rows_updated",
    "deleted": "rows_deleted",
    "unchanged": "rows_unchanged",
    "file_groups": "file_groups",
    "bytes": "bytes_to_rewrite",
}
"""Words of the command, and the names of the counts in results and plans of writes."""
_OF_ROWS = ("read", "inserted", "updated", "deleted", "unchanged")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|>|<|=)\s*(\d+(?:\.\d+)?)\s*(%?)\s*")
_KINDS = ("model", "seed", "snapshot")
_DID: Mapping[str, str] = {
    WriteOperation.BULK_INSERT.value: "build",
    WriteOperation.INSERT_OVERWRITE_TABLE.value: "replace all",
}


@dataclass(frozen=True)
class Condition:
    """A limit of a plan, such as ``deleted > 1 %``: of the rows that each table has; without ``%`` a number."""

    text: str
    word: str
    compare: Callable[[float, float], bool]
    limit: float
    is_share: bool

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition; raises ValueError with the legal ones."""
        found = _CONDITION.fullmatch(text)
        words = (*_COUNTS, "unknown")
        if found is None or found[1] not in words:
            raise ValueError(
                f"--fail-if is {text!r}; legal values: {', '.join(words)}, then >, >=, <, <= or =, then a number, which counts the "
                "percent of the table's rows with % behind it, such as 'deleted > 1 %'"
            )
        if found[4] and found[1] not in _OF_ROWS:
            raise ValueError(
                f"--fail-if is {text!r}; % is of the table's rows, and goes with {', '.join(_OF_ROWS)}"
            )
        return cls(text.strip(), found[1], _COMPARE[found[2]], float(found[3]), bool(found[4]))

    def broken_by(self, node: Node) -> bool:
        """Whether a node's plan fulfils it."""
        if self.word == "unknown":
            return self.compare(int(bool(node.unknown)), self.limit)
        if node.unknown or self.word not in node.counts:
            return False
        count = float(node.counts[self.word])
        if self.is_share:
            whole = node.rows_before or 0
            count = count * 100 / whole if whole else (math.inf if count else 0.0)
        return self.compare(count, self.limit)


@dataclass(frozen=True)
class Node:
    """A node as the command shows it; ``rows_before`` are the rows of its table, None where they were not asked for."""

    name: str
    unique_id: str
    does: str
    counts: Mapping[str, int] = field(default_factory=dict)
    partitions: Sequence[str] = ()
    columns: Sequence[str] = ()
    services: Sequence[str] = ()
    seconds: float | None = None
    set_aside: int = 0
    hooks_left_out: Sequence[str] = ()
    tests_left_out: Sequence[str] = ()
    unknown: str = ""
    failed: bool = False
    examples: Sequence[Mapping[str, Any]] = ()
    downstream: Sequence[str] = ()
    rows_before: int | None = None

    @property
    def changes(self) -> bool:
        """Whether rows or columns change, as far as it is known."""
        return bool(self.columns or any(self.counts.get(each) for each in ("inserted", "updated", "deleted")))


def plan(arguments: Sequence[str]) -> int:
    """Plan a dbt run; returns 1 where a condition of --fail-if holds, 2 where a node fails or the run cannot be planned."""
    parser = ArgumentParser(prog="dbt-hudi plan", description=plan.__doc__, epilog=_OPTIONS)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="FILE", help="write the plan as a page too")
    parser.add_argument(
        "--sample-rows", type=int, default=0, metavar="N", help="show N rows of each kind of change"
    )
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help="such as 'deleted > 1 %%'; may be given again",
    )
    given, options = parser.parse_known_args(arguments)
    try:
        conditions = [Condition.parse(each) for each in given.fail_if]
    except ValueError as error:
        parser.error(str(error))
    if given.html and not Path(given.html).absolute().parent.is_dir():
        parser.error(f"--html is {given.html!r}; its folder is not there")
    words = ["build", *options, "--exclude-resource-type", "test", "--exclude-resource-type", "unit_test"]
    words += ["--no-write-json", "--log-level", "none"]
    with PREVIEW.of_run(max(0, given.sample_rows)):
        done = dbtRunner().invoke(words)
        results = list(getattr(done.result, "results", None) or ())
        if not results:
            why = getattr(done.exception, "msg", None) or done.exception
            why = why or "no model, seed or snapshot is selected; `dbt ls` lists them"
            sys.stderr.write(f"dbt-hudi plan: {why}\n")
            return FAILED
        adapter: Any = get_adapter_by_type("hudi")  # type: ignore[no-untyped-call]
        wants_rows = any(each.is_share for each in conditions)
        manifest = adapter.get_macro_resolver()
        manifest.build_parent_and_child_maps()
        nodes = list(_nodes(results, manifest, count=wants_rows))
    broken = [f"{each.name}: {limit.text}" for limit in conditions for each in nodes if limit.broken_by(each)]
    if given.html:
        try:
            Path(given.html).write_text(_as_page(nodes, broken), encoding="utf-8")
        except OSError as error:
            sys.stderr.write(f"dbt-hudi plan: the page cannot be written: {error}\n")
            return FAILED
    sys.stdout.write(_as_json(nodes, broken) if given.json else "\n".join(_as_text(nodes, broken)) + "\n")
    sys.stdout.flush()
    return FAILED if any(each.failed for each in nodes) else FOUND_SOMETHING if broken else 0


def _nodes(results: Iterable[Any], manifest: Any, *, count: bool) -> Iterator[Node]:
    """Give what each node would do, in the order in which dbt ran them."""
    found = {each.node.unique_id: each for each in results if str(each.node.resource_type) in _KINDS}
    for unique_id, each in found.items():
        planned = PREVIEW.nodes.get(unique_id, PlannedNode())
        status, name = str(each.status), each.node.name
        kind = each.node.config.materialized or each.node.resource_type
        if status in ("error", "partial success") and not planned.unknown:
            yield Node(name, unique_id, kind, unknown=str(each.message or "").strip(), failed=True)
        elif status == "skipped":
            yield Node(name, unique_id, kind, unknown="a node that it depends on is not known")
        elif planned.unknown or not (planned.writes or planned.does):
            yield Node(
                name, unique_id, kind, unknown=planned.unknown or str(each.message or "nothing is written")
            )
        else:
            yield _node(name, unique_id, planned, manifest, found, count=count)


def _node(
    name: str, unique_id: str, planned: PlannedNode, manifest: Any, known: Mapping[str, Any], *, count: bool
) -> Node:
    """Return what a node does whose writes are planned, all batches of a microbatch model together."""
    writes = planned.writes
    plans = [each.plan for each in writes if each.plan is not None]
    counts = {
        word: sum(getattr(each if hasattr(each, count) else each.plan, count) for each in writes)
        for word, count in _COUNTS.items()
        if writes or planned.rows_deleted
    }
    if planned.rows_deleted:
        counts["deleted"] = planned.rows_deleted
    seconds = [each.seconds for each in plans if each.seconds is not None]
    node = Node(
        name,
        unique_id,
        planned.does or " ".join(dict.fromkeys(map(_did, writes))),
        counts,
        sorted({partition for each in plans for partition in each.partitions}),
        tuple(dict.fromkeys(column for each in plans for column in each.columns)),
        tuple(dict.fromkeys(service for each in plans for service in each.services)),
        round(sum(seconds), 1) if seconds else None,
        planned.set_aside,
        planned.left_out,
        _tests_of(unique_id),
        examples=[asdict(example) for each in plans for example in each.examples],
        rows_before=_rows_before(unique_id) if count else None,
    )
    return replace(node, downstream=_downstream(unique_id, manifest, known)) if node.changes else node


def _did(write: WriteResult) -> str:
    """Return what a write does in words; a bulk insert makes a table, or one in the place of another."""
    does = _DID.get(write.operation, write.operation.lower())
    return "rebuild" if write.operation == WriteOperation.BULK_INSERT.value and write.rows_deleted else does


def _tests_of(unique_id: str) -> list[str]:
    """Return the names of the tests that run before a node's commit."""
    plan = RUNS.of(unique_id).planned
    return [] if plan is None else [each.name for each in plan.tests]


def _rows_before(unique_id: str) -> int:
    """Return the rows of a node's table by its base files, those of logs left out; 0 for one that is not there."""
    run = RUNS.of(unique_id)
    if run.planned is None:
        return 0
    try:
        return int(
            table_stats(TableState.load(open_storage(run.planned.base)), resolve_options({})).base_rows
        )
    except HudiError:
        return 0


def _downstream(unique_id: str, manifest: Any, known: Mapping[str, Any]) -> list[str]:
    """Return the names of the models and snapshots outside of the run that read a node, also through others."""
    met, waiting = set[str](), [unique_id]
    while waiting:
        below = {
            each for each in manifest.child_map[waiting.pop()] if each.startswith(("model.", "snapshot."))
        }
        waiting += below - met
        met |= below
    return sorted(manifest.nodes[each].name for each in met - known.keys())


# --- what is shown --------------------------------------------------------------------------------------------------

_HEAD = (
    "",
    "does",
    "read",
    "inserted",
    "updated",
    "deleted",
    "unchanged",
    "partitions",
    "file groups",
    "rewrites",
    "about",
)


def _as_json(nodes: Sequence[Node], broken: Sequence[str]) -> str:
    shown = []
    for node in nodes:
        values = {key: value for key, value in vars(node).items() if key != "counts"}
        shown.append({"name": node.name, "does": node.does, **node.counts, **values})
    content = {"nodes": shown, "broken": list(broken), "statements_left_out": PREVIEW.left_out}
    return json_text(content, sys.stdout.encoding) + "\n"


def _as_text(nodes: Sequence[Node], broken: Sequence[str]) -> Iterator[str]:
    """Give the lines of a plan: a table of the nodes, and what else there is to know of them."""
    planned = [each for each in nodes if not each.unknown]
    yield from _aligned([_HEAD, *(_row(each) for each in planned), *([_total(planned)] if planned else [])])
    for title, lines in _remarks(nodes, broken):
        yield from ("", f"{title}:", *(f"  {each}" for each in lines)) if lines else ("", title)
    yield from ("", "Nothing was written.")


def _as_page(nodes: Sequence[Node], broken: Sequence[str]) -> str:
    rows = [_figures(each) for each in nodes if not each.unknown]
    return plan_page(rows, list(_remarks(nodes, broken)))


def _figures(node: Node) -> dict[str, Cell]:
    counts = {word.replace("_", " "): node.counts.get(word) for word in _COUNTS}
    named = {"node": node.name, "does": node.does}
    return {**named, **counts, "partitions": len(node.partitions), "about seconds": node.seconds}


def _remarks(nodes: Sequence[Node], broken: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Give what else there is to know of the nodes: titles, and the lines below them."""
    for title, texts in (
        ("columns", [", ".join(each.columns) for each in nodes]),
        ("services", [", ".join(each.services) for each in nodes]),
        ("to the error table", [f"{each.set_aside:,} rows" if each.set_aside else "" for each in nodes]),
        ("not run after it, hooks", [", ".join(each.hooks_left_out) for each in nodes]),
        ("not run before its commit, tests", [", ".join(each.tests_left_out) for each in nodes]),
        ("read by, and not in this plan", [", ".join(each.downstream) for each in nodes]),
        ("not known", ["" if each.failed else each.unknown for each in nodes]),
        ("failed", [each.unknown if each.failed else "" for each in nodes]),
    ):
        lines = [f"{node.name}: {text}" for node, text in zip(nodes, texts, strict=True) if text]
        yield from [(title, lines)] if lines else []
    for node in nodes:
        yield from [(f"rows of {node.name}", list(map(_example, node.examples)))] if node.examples else []
    if PREVIEW.left_out:
        count = len(PREVIEW.left_out)
        yield f"{count} statement(s) outside of nodes are not run by a plan, nor are hooks", []
    yield from [("--fail-if holds", list(broken))] if broken else []


def _row(node: Node) -> Sequence[str]:
    if not node.counts:
        return (node.name, node.does, *[""] * (len(_HEAD) - 2))
    *counts, groups, rewritten = node.counts.values()
    about = "" if node.seconds is None else f"{node.seconds:,.0f} s"
    numbers = [*counts, len(node.partitions), groups]
    return (node.name, node.does, *(f"{each:,}" for each in numbers), size(rewritten), about)


def _total(nodes: Sequence[Node]) -> Sequence[str]:
    written = [each for each in nodes if each.counts]
    *counts, groups, rewritten = (sum(each.counts[word] for each in written) for word in _COUNTS)
    numbers = [*counts, sum(len(each.partitions) for each in written), groups]
    known = [each.seconds for each in written if each.seconds is not None]
    about = f"{sum(known):,.0f} s" if known else ""
    return ("total", "", *(f"{each:,}" for each in numbers), size(rewritten), about)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give rows as lines: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        if number in (1, len(rows) - 1) and len(rows) > 1:
            yield "-" * (sum(widths) + 2 * (len(widths) - 1))
        words = (
            text.ljust(width) if place < 2 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(words).rstrip()


def _example(example: Mapping[str, Any]) -> str:
    """Return a changed row as a line: of an update the columns that change, and those that say which row it is."""
    before, after = example["before"], example["after"]
    if before is None or after is None:
        sign = "+" if before is None else "-"
        row = after if before is None else before
        return f"{sign} {', '.join(f'{key}: {value}' for key, value in (row or {}).items())}"
    parts = [
        f"{key}: {before[key]} to {value}" if key in before and before[key] != value else f"{key}: {value}"
        for key, value in after.items()
    ]
    return f"~ {', '.join(parts)}"


_OPTIONS = (
    "Further options go to dbt: --select, --exclude, --full-refresh, --vars, --target and so on, as for `dbt build`, without its "
    "tests. Hooks, and statements that write, are not run."
)
