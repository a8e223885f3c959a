"""Tables that can be sorted, and lists that fold; long ones are cut with a sentence that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from hudi_engine.table.report.markup import NOTHING, Markup, glued, moment, number, size, tag, text

MOST_ROWS = 500
MOST_NAMES = 100


@dataclass(frozen=True)
class Bytes:
    """A number of bytes, shown in units and sorted as a number."""

    count: int


Cell: TypeAlias = str | int | float | Bytes | datetime | None


def table(label: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Markup:
    """Return a table; numbers stand to the right, and a click or the Enter key on a head sorts by it."""
    right = [
        all(isinstance(row[place], (int, float, Bytes, type(None))) for row in rows)
        for place in range(len(heads))
    ]
    titles = [
        tag("th", tag("button", head, type="button"), scope="col", class_="n" if to_right else None)
        for head, to_right in zip(heads, right)
    ]
    body = [glued([_cell(cell, to_right) for cell, to_right in zip(row, right)]) for row in rows]
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


def _cell(value: Cell, to_right: bool) -> Markup:
    kind = ' class="n"' if to_right else ""
    if isinstance(value, Bytes):
        return Markup(f'<td{kind} data-v="{value.count}">{size(value.count)}</td>')
    if isinstance(value, (int, float)):
        return Markup(f'<td{kind} data-v="{value}">{number(value)}</td>')
    if value is None:
        return Markup(f'<td{kind} data-v="-1">–</td>')
    return Markup(f"<td{kind}>{text(moment(value) if isinstance(value, datetime) else value)}</td>")
