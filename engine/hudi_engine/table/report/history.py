"""What commits did, as charts over time and as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.table.inspect import CommitFacts, cells_of, commit_cells
from hudi_engine.table.report.charts import Series, columns, lane, runs
from hudi_engine.table.report.facts import Facts, rows_over_time
from hudi_engine.table.report.markup import NOTHING, Markup, moment, number, plural, size, tag
from hudi_engine.table.report.tables import MOST_ROWS, cut, table


def history_charts(facts: Facts) -> list[Markup]:
    """Return the instants by kind along time, the rows of the table, and rows and bytes by commit."""
    if not facts.commits:
        return [tag("p", "There is no commit yet.")]
    return [_lanes(facts), _rows_chart(facts), *_changes(facts.commits[::-1])]


def tables(facts: Facts) -> list[Markup]:
    """Return what is under way, and what each commit did."""
    shown = facts.commits[:MOST_ROWS]
    rows = [{**commit_cells(each), "operation": _operation_cell(each)} for each in shown]
    return [
        _pending(facts),
        cut(len(shown), len(facts.commits), "newest commits"),
        table("Commits", rows),
    ]


def _operation_cell(each: CommitFacts) -> str:
    return operation(each) + (", archived" if each.archived else "")


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
    shown = table("Pending instants", rows[-MOST_ROWS:])
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
