"""Tables that can be sorted, and lists that fold; long ones are cut with a sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from hudi_engine.table.report.markup import NOTHING, Markup, glued, moment, number, size, tag, text

MOST_ROWS = 500
MOST_NAMES = 100


Cell: TypeAlias = str | int | float | datetime | None


def table(label: str, rows: Sequence[Mapping[str, Cell]]) -> Markup:
    """Return a table whose columns are those of the first row; a click or the Enter key on a head sorts by it."""
    names = list(rows[0]) if rows else []
    right = [all(isinstance(row[name], (int, float, type(None))) for row in rows) for name in names]
    titles = [
        tag("th", tag("button", _head(name), type="button"), scope="col", class_="n" if to_right else None)
        for name, to_right in zip(names, right)
    ]
    body = [glued([_cell(name, row[name], to_right) for name, to_right in zip(names, right)]) for row in rows]
    lines = glued([tag("tr", cells) for cells in body])
    inner = tag("table", tag("thead", tag("tr", *titles)), tag("tbody", lines))
    return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=label)


def cut(shown: int, total: int, what: str) -> Markup:
    """Return the sentence that a table was cut, nothing when it was not.

    Args:
        what: What was kept, such as ``newest commits``.
    """
    if shown >= total:
        return NOTHING
    return tag("p", f"The {shown:,} {what} of {total:,} are shown.", class_="note")


def names(summary: str, items: Sequence[str]) -> Markup:
    """Return a folded list of names, cut when it is long."""
    left = len(items) - MOST_NAMES
    more = tag("p", f"… and {left:,} more", class_="note") if left > 0 else NOTHING
    listed = tag("ul", *(tag("li", tag("code", each)) for each in items[:MOST_NAMES]))
    return tag("details", tag("summary", summary), listed, more)


def _head(name: str) -> str:
    words = name.removesuffix("_at").replace("_", " ").capitalize()
    return f"{words} (UTC)" if name.endswith("_at") else words


def _cell(name: str, value: Cell, to_right: bool) -> Markup:
    kind = ' class="n"' if to_right else ""
    if isinstance(value, (int, float)):
        words = size(value) if "bytes" in name else number(value)
        return Markup(f'<td{kind} data-v="{value}">{words}</td>')
    if value is None:
        return Markup(f'<td{kind} data-v="-1">–</td>')
    return Markup(f"<td{kind}>{text(moment(value) if isinstance(value, datetime) else value)}</td>")
