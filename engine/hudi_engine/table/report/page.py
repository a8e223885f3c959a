"""The page: one file that loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from statistics import median

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.inspect import (
    CommitFacts,
    InstantFacts,
    Snapshot,
    archived_commit_facts,
    cells_of,
    commit_cells,
    commit_facts,
    instant_facts,
)
from hudi_engine.table.report.markup import (
    MAX_ROWS,
    NOTHING,
    Markup,
    Series,
    bar,
    columns,
    cut,
    glued,
    lane,
    moment,
    names,
    number,
    plural,
    runs,
    share,
    size,
    split,
    table,
    tag,
    text,
)
from hudi_engine.table.services.due import TableStats, Upcoming, table_stats, upcoming
from hudi_engine.table.state import TableState

MAX_COMMITS = 10_000
"""Commits that are looked at, the newest."""


@dataclass(frozen=True)
class Facts:
    """A table at a moment."""

    base: str
    config: TableConfig
    stats: TableStats
    snapshot: Snapshot
    instants: Sequence[InstantFacts]
    commits: Sequence[CommitFacts]  # what writes did, newest first, archived ones last
    upcoming: Sequence[Upcoming]
    small_limit: int
    seen_at: datetime


def gather(state: TableState, options: Options, *, count_rows: bool = False) -> Facts:
    """Look at a table."""
    snapshot = Snapshot.of(state)
    instants = instant_facts(state)
    commits = commit_facts(state, MAX_COMMITS, instants)
    commits += archived_commit_facts(state, MAX_COMMITS - len(commits))
    return Facts(
        base=state.storage.base,
        config=state.config,
        stats=table_stats(state, options, count_rows=count_rows, snapshot=snapshot),
        snapshot=snapshot,
        instants=instants,
        commits=commits,
        upcoming=upcoming(state, options, snapshot),
        small_limit=options[FileOptions.SMALL_FILE_LIMIT],
        seen_at=datetime.now(timezone.utc),
    )


def rows_over_time(facts: Facts) -> list[int]:
    """Return the rows of the table after each commit, oldest first, as far back as commits allow.

    It goes back from the rows there are now. It ends before a commit that took out file groups, as their number of rows is not
    known, unless it only moved rows.
    """
    if facts.stats.rows is None:
        return []
    found = [facts.stats.rows]
    for commit in facts.commits:
        before = found[-1] - commit.rows_inserted + commit.rows_deleted
        if before < 0 or (commit.groups_replaced and not commit.is_service):
            break
        found.append(before)
    return found[::-1]


def history_charts(facts: Facts) -> list[Markup]:
    """Return the instants by kind along time, the rows of the table, and rows and bytes by commit."""
    if not facts.commits:
        return [tag("p", "There is no commit yet.")]
    return [_lanes(facts), _rows_chart(facts), *_changes(facts.commits[::-1])]


def tables(facts: Facts) -> list[Markup]:
    """Return what is under way, and what each commit did."""
    shown = facts.commits[:MAX_ROWS]
    rows = [
        {**commit_cells(each), "operation": operation(each) + ", archived" * each.archived} for each in shown
    ]
    return [_pending(facts), cut(len(shown), len(facts.commits), "newest commits"), table("Commits", rows)]


def operation(each: CommitFacts) -> str:
    """Return what a commit did in words, its action when it does not say."""
    return (
        each.action if each.operation == WriteOperation.UNKNOWN else each.operation.lower().replace("_", " ")
    )


def _pending(facts: Facts) -> Markup:
    rows = [
        cells_of(each, "instant", "action", "state", "requested_at")
        for each in facts.instants
        if each.completed_at is None and each.state != "COMPLETED"
    ]
    if not rows:
        return NOTHING
    shown = table("Pending instants", rows[-MAX_ROWS:])
    return tag("div", tag("h3", "Under way, or left behind"), shown)


def _lanes(facts: Facts) -> Markup:
    """Draw a line of dots along time for each kind of instant, most frequent first."""
    by_kind: dict[str, list[datetime]] = defaultdict(list)
    for commit in facts.commits:
        if commit.committed_at is not None:
            by_kind[operation(commit)].append(commit.committed_at)
    for each in facts.instants:
        if each.action in ("clean", "rollback", "restore", "savepoint") and each.completed_at is not None:
            by_kind[each.action].append(each.completed_at)
    times = [each for found in by_kind.values() for each in found]
    if not times:
        return NOTHING
    first, last = min(times), max(times)
    span = (last - first).total_seconds() or 1.0
    lanes = [
        lane(kind, [(each - first).total_seconds() / span for each in found], number(len(found)))
        for kind, found in sorted(by_kind.items(), key=lambda item: -len(item[1]))
    ]
    head = tag("figcaption", "Instants by kind, along time (UTC)")
    ends = tag("div", *(tag("span", moment(each)) for each in (first, last)), class_="under laned")
    return tag("figure", head, *lanes, ends, class_="chart wide")


def _rows_chart(facts: Facts) -> Markup:
    rows = rows_over_time(facts)
    if not rows:
        reason = "Rows over time are not known without merging the logs: set count."
        return tag("p", reason, class_="note")
    newest = facts.commits[: len(rows)][::-1]
    # The state before the oldest commit has no commit of its own.
    rows = rows[-len(newest) :]
    groups = runs(list(zip(newest, rows)))
    values = [group[-1][1] for group in groups]
    tips = [f"{group[-1][0].instant}: {plural(group[-1][1], 'row')}" for group in groups]
    title = "Rows in the table after each commit"
    return columns(title, [Series("rows", "ink1", values)], _under(newest), shown=_whole, tips=tips)


def _changes(commits: Sequence[CommitFacts]) -> list[Markup]:
    """Draw rows changed and bytes written, commits taken together where there are more than columns."""
    groups = runs(commits)
    every = f"every {len(groups[0]):,} commits" if len(groups[0]) > 1 else "each commit"
    kinds = (
        Series("inserted", "ink1", [sum(each.rows_inserted for each in group) for group in groups]),
        Series("updated", "ink2", [sum(each.rows_updated for each in group) for group in groups]),
        Series("deleted", "ink3", [sum(each.rows_deleted for each in group) for group in groups]),
    )
    tips = [
        f"{_named(group)}: {a:,} inserted, {b:,} updated, {c:,} deleted"
        for group, a, b, c in zip(groups, *(each.values for each in kinds))
    ]
    written = [sum(each.bytes_written for each in group) for group in groups]
    return [
        columns(f"Rows changed by {every}", kinds, _under(commits), shown=_whole, tips=tips),
        columns(
            f"Bytes written by {every}",
            [Series("bytes", "ink1", written)],
            _under(commits),
            shown=size,
            tips=[f"{_named(group)}: {size(count)}" for group, count in zip(groups, written)],
        ),
    ]


def _named(group: Sequence[CommitFacts]) -> str:
    if len(group) == 1:
        return f"{group[0].instant} {operation(group[0])}"
    return f"{group[0].instant} to {group[-1].instant}"


def _under(commits: Sequence[CommitFacts]) -> list[str]:
    """Return when the first, the middle and the last of some commits were, oldest first."""
    if len(commits) == 1:
        return ["", _when(commits[0]), ""]
    middle = [_when(commits[len(commits) // 2])] if len(commits) > 4 else []
    return [_when(commits[0]), *middle, _when(commits[-1])]


def _when(commit: CommitFacts) -> str:
    return commit.instant if commit.committed_at is None else f"{commit.committed_at:%Y-%m-%d %H:%M}"


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


_SIZES = ("100 kB", "1 MB", "4 MB", "16 MB", "32 MB", "64 MB", "128 MB", "256 MB", "512 MB", "1 GB")
_UNITS = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_EDGES = [int(number) * _UNITS[unit] for number, unit in map(str.split, _SIZES)]


def file_charts(facts: Facts) -> list[Markup]:
    """Return sizes of base files, the share of logs, and rows over file groups."""
    if not facts.snapshot.slices:
        return [tag("p", "There is no file yet.")]
    return [_sizes(facts), _logs(facts), _groups(facts)]


def partitions(facts: Facts) -> list[Markup]:
    """Return the partitions with their files; those with most bytes where there are too many."""
    small = Counter(base.partition for base in facts.snapshot.bases if base.size < facts.small_limit)
    rows: Counter[str] = Counter()
    for base in facts.snapshot.bases:
        rows[base.partition] += facts.snapshot.base_rows[base.path]
    found = facts.stats.partitions
    chosen = sorted(found, key=lambda each: -(each.base_bytes + each.log_bytes))[:MAX_ROWS]
    lines = [
        {
            "partition": each.partition or "(not partitioned)",
            "base_rows": rows[each.partition],
            "small_files": small[each.partition],
            "mean_base_bytes": each.base_bytes // max(1, each.base_files),
            **cells_of(each, "file_groups", "base_files", "base_bytes", "log_files", "log_bytes"),
        }
        for each in sorted(chosen, key=lambda each: each.partition)
    ]
    return [cut(len(lines), len(found), "largest partitions"), table("Partitions", lines)]


def _sizes(facts: Facts) -> Markup:
    sizes = [base.size for base in facts.snapshot.bases]
    if not sizes:
        return NOTHING
    counts = Counter(bisect_right(_EDGES, each) for each in sizes)
    first, last = min(counts), max(counts)
    most = max(counts.values())
    bars = [
        bar(_between(place), counts[place], most, number(counts[place])) for place in range(first, last + 1)
    ]
    head = tag("figcaption", "Base files by size (number of files)")
    small = facts.stats.small_files
    note = (
        f"{plural(small, 'file is', 'files are')} below the limit of small files, {size(facts.small_limit)}: "
    )
    note += "new rows fill those first. " if small else "nothing to fill up. "
    note += f"Median {size(median(sizes))}, largest {size(max(sizes))}."
    return tag("figure", head, *bars, tag("p", note, class_="note"), class_="chart")


def _between(place: int) -> str:
    if place == 0:
        return f"below {_SIZES[0]}"
    if place == len(_SIZES):
        return f"{_SIZES[-1]} and more"
    return f"{_SIZES[place - 1]} to {_SIZES[place]}"


def _logs(facts: Facts) -> Markup:
    stats = facts.stats
    parts = (
        Series(f"base files {size(stats.base_bytes)}", "ink1", [stats.base_bytes]),
        Series(f"log files {size(stats.log_bytes)}", "ink2", [stats.log_bytes]),
    )
    with_logs = sum(bool(each.log_files) for each in facts.snapshot.slices)
    note = f"{share(stats.log_share)} of the bytes are in logs; {with_logs:,} of {plural(stats.file_groups, 'file group')} "
    note += "have logs that readers merge."
    head = tag("figcaption", "Bytes in base files and in logs")
    return tag("figure", head, split(parts), tag("p", note, class_="note"), class_="chart")


def _groups(facts: Facts) -> Markup:
    """Draw the rows of file groups and say how evenly they are spread."""
    rows = sorted((facts.snapshot.base_rows[base.path] for base in facts.snapshot.bases), reverse=True)
    if not rows:
        return NOTHING
    groups = runs(rows)
    each = f"the largest of every {len(groups[0]):,}" if len(groups[0]) > 1 else "each"
    shown = columns(
        f"Rows a file group ({each}, most rows first, base files)",
        [Series("rows", "ink1", [group[0] for group in groups])],
        ["most rows", "fewest"] if len(rows) > 1 else ["", "the only file group", ""],
        shown=_whole,
        tips=[plural(group[0], "row") for group in groups],
    )
    middle = median(rows)
    note = f"Most {rows[0]:,}, median {middle:,.0f}, fewest {rows[-1]:,}."
    if middle and rows[0] > 2 * middle:
        note += f" The fullest has {rows[0] / middle:,.1f} times the median: the rows are spread unevenly."
    return tag("div", shown, tag("p", note, class_="note"), class_="wide")


def sections(facts: Facts) -> Markup:
    """Return everything between the head of the page and its foot."""
    return glued(
        [
            _header(facts),
            _figures(facts),
            _section("Services", "services", [_services(facts)]),
            _section("History", "history", history_charts(facts)),
            _section("Commits", "commits", tables(facts)),
            _section("Files", "files", file_charts(facts)),
            _section("Partitions", "partitions", partitions(facts)),
        ]
    )


def _section(title: str, name: str, content: list[Markup]) -> Markup:
    return tag("section", tag("h2", title), *content, id=name)


def _header(facts: Facts) -> Markup:
    config, stats = facts.config, facts.stats
    keys = ", ".join(config.record_key_fields) or "generated"
    shown = [
        ("Type", stats.table_type.lower().replace("_", " ")),
        ("Table version", stats.version),
        ("Record key", keys),
        ("Partitioned by", ", ".join(each.name for each in config.partition_fields) or "nothing"),
        ("Newest commit", stats.instant or "none"),
        ("Seen at", f"{moment(facts.seen_at)} UTC"),
    ]
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in shown]
    place = tag("p", tag("code", facts.base), class_="place")
    return tag("header", tag("h1", stats.name), place, tag("dl", *pairs))


def _figures(facts: Facts) -> Markup:
    """Return the tiles with the sizes of the table."""
    stats = facts.stats
    archived = sum(each.archived for each in facts.commits)
    rows = ("rows", number(stats.rows), "in a snapshot")
    if stats.rows is None:
        rows = ("rows in base files", number(stats.base_rows), "set count to merge the logs")
    shown = [
        rows,
        ("on storage", size(stats.base_bytes + stats.log_bytes), "in the newest file slices"),
        ("file groups", number(stats.file_groups), f"in {plural(len(stats.partitions), 'partition')}"),
        (
            "small files",
            number(stats.small_files),
            f"of {plural(stats.base_files, 'base file')}, below {size(facts.small_limit)}",
        ),
        ("in logs", share(stats.log_share), f"of the bytes, {plural(stats.log_files, 'log file')}"),
        (
            "commits",
            number(stats.commits + archived),
            f"{number(archived)} of them archived, {number(stats.pending)} pending",
        ),
    ]
    tiles = [
        tag("div", tag("b", value), tag("span", name), tag("small", note)) for name, value, note in shown
    ]
    return tag("div", *tiles, class_="figures")


def _services(facts: Facts) -> Markup:
    coming = {each.service: each for each in facts.upcoming}
    cards = []
    for due in facts.stats.services:
        badge = tag("span", "due" if due.due else "not due", class_="badge due" if due.due else "badge")
        next_ = coming[due.service]
        if not next_.items:
            takes = tag("p", f"Run now it would take nothing: {next_.reason}.")
        else:
            takes = names(_cost(due.service, len(next_.items), next_.bytes), next_.items)
        cards.append(
            tag("article", tag("h3", due.service, badge), tag("p", due.reason, class_="note"), takes)
        )
    return tag("div", *cards, class_="cards") if cards else NOTHING


def _cost(service: str, count: int, taken: int) -> str:
    return {
        "compaction": f"Run now it would merge {plural(count, 'file group')}, reading {size(taken)}",
        "clean": f"Run now it would delete {plural(count, 'file')}, {size(taken)}",
        "archive": f"Run now it would move {plural(count, 'instant')} to the archive",
    }[service]


_FOLDER = files("hudi_engine.table.report")
CSS = _FOLDER.joinpath("page.css").read_text("utf-8")
SCRIPT = _FOLDER.joinpath("page.js").read_text("utf-8")


def page(facts: Facts) -> str:
    """Return a table's report as HTML."""
    foot = tag("footer", "Made by hudi-engine. Times are in UTC, sizes in decimal units.")
    return document(f"{facts.stats.name}: Hudi table", [sections(facts), foot])


def document(
    title: str, content: Sequence[Markup], script: str = "", *, allowed: str = "form-action 'none'"
) -> str:
    """Return a page of the report's look; the policy in its head lets nothing run or load but its own style and script.

    Args:
        script: What runs behind the script that sorts tables.
        allowed: What the policy has besides.
    """
    whole = SCRIPT + script
    policy = (
        f"default-src 'none'; style-src {_hash(CSS)}; script-src {_hash(whole)}; base-uri 'none'; {allowed}"
    )
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Markup(CSS)),
    ]
    body = [tag("main", *content), tag("script", Markup(whole))]
    shown = tag("html", tag("head", *head), tag("body", *body), lang="en")
    return text(Markup(f"<!DOCTYPE html>\n{shown}\n"))


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@dataclass(frozen=True)
class Report:
    """A page that was written."""

    path: Path
    bytes: int


def default_name(table: str) -> str:
    """Return a file name for the report of a table; what is no plain letter or digit in its name becomes an underscore."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', table)[:100] or 'table'}-report.html"


def write_report(
    state: TableState, options: Options, output: str | Path | None = None, *, count_rows: bool = False
) -> Report:
    """Write the report to a file, which is replaced as a whole; None for ``<table>-report.html`` in the working directory."""
    try:
        path = Path(output or default_name(state.config.name)).expanduser().resolve()
    except RuntimeError as error:
        raise ConfigError(
            f"the report cannot be written to {str(output)!r}: {error} Name another file"
        ) from error
    base = state.storage.base
    if "://" not in base and path.is_relative_to(Path(base).resolve()):
        raise ConfigError(f"the report would lie in the table, at {str(path)!r}; name a file outside of it")
    if path.is_dir():
        raise ConfigError(f"the report cannot be written to {str(path)!r}, which is a folder; name a file")
    if not path.parent.is_dir():
        raise ConfigError(
            f"the report cannot be written to {str(path)!r}: there is no folder {str(path.parent)!r}; make it, or name another"
        )
    body = page(gather(state, options, count_rows=count_rows)).encode("utf-8")
    LocalStorage(str(path.parent)).replace(path.name, body)
    return Report(path, len(body))
