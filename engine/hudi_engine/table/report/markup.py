"""HTML that cannot be broken by what it shows: text is escaped unless it was made here.

Names and values in tables are written by anybody, so every text is taken for hostile. Characters that show nothing or turn
the direction of writing are shown by their numbers.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypeVar

MAX_TEXT = 300


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


NOTHING = Markup("")


def text(value: object) -> Markup:
    """Return a value as HTML text, safe in elements and in quoted attributes."""
    if isinstance(value, Markup):
        return value
    raw = str(value)
    if len(raw) > MAX_TEXT:
        raw = f"{raw[:MAX_TEXT]}… ({len(raw):,} characters)"
    shown = raw if raw.isprintable() else "".join(map(_visible, raw))
    return Markup(html.escape(shown))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element; underscores of attributes are hyphens, one at the end is dropped, None leaves one out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{''.join(map(text, children))}</{name}>")


def glued(parts: list[Markup]) -> Markup:
    """Return pieces of markup after each other."""
    return Markup("".join(parts))


def number(value: float | None) -> str:
    """Return a number with thousands separators, a dash for None."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def size(count: float) -> str:
    """Return bytes in decimal units."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def share(part: float) -> str:
    """Return a share in percent; what is small but there is not rounded to nothing."""
    return f"{part:.1%}" if part == 0 or part >= 0.001 else "< 0.1%"


def moment(value: datetime | None) -> str:
    """Return a moment in UTC to the second, a dash for None."""
    return "–" if value is None else f"{value:%Y-%m-%d %H:%M:%S}"


def plural(count: int, singular: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def _visible(character: str) -> str:
    return character if character.isprintable() else f"\\u{ord(character):04x}"


MAX_ROWS = 500
MAX_NAMES = 100


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
    """Return the sentence that a table was cut, nothing when it was not."""
    if shown >= total:
        return NOTHING
    return tag("p", f"The {shown:,} {what} of {total:,} are shown.", class_="note")


def names(summary: str, items: Sequence[str]) -> Markup:
    """Return a folded list of names, cut when it is long."""
    left = len(items) - MAX_NAMES
    more = tag("p", f"… and {left:,} more", class_="note") if left > 0 else NOTHING
    listed = tag("ul", *(tag("li", tag("code", each)) for each in items[:MAX_NAMES]))
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


WIDTH, HEIGHT, LANE = 720, 180, 14
MAX_COLUMNS = 120
_MAX_COLUMN_WIDTH = 36

T = TypeVar("T")


@dataclass(frozen=True)
class Series:
    """One part of stacked columns."""

    name: str
    ink: str  # class that colours it: ``ink1`` (accent), ``ink2`` (its tint) or ``ink3`` (neutral)
    values: Sequence[float]


def runs(items: Sequence[T]) -> list[Sequence[T]]:
    """Return consecutive runs of items, so few that each can be a column; all but the last are of one length."""
    length = max(1, math.ceil(len(items) / MAX_COLUMNS))
    return [items[start : start + length] for start in range(0, len(items), length)]


def columns(
    title: str,
    series: Sequence[Series],
    under: Sequence[str],
    *,
    shown: Callable[[float], str] = number,
    tips: Sequence[str] = (),
) -> Markup:
    """Return stacked columns."""
    totals = [sum(column) for column in zip(*(each.values for each in series))]
    top = round_up(max(totals, default=0))
    slot = WIDTH / max(1, len(totals))
    wide = min(slot * 0.84, _MAX_COLUMN_WIDTH)
    bars = []
    for place in range(len(totals)):
        left, level = place * slot + (slot - wide) / 2, float(HEIGHT)
        parts = []
        for each in series:
            tall = each.values[place] / top * HEIGHT
            level -= tall
            parts += [_box(left, level, wide, tall, each.ink)] if tall > 0 else []
        tip = tag("title", tips[place]) if tips else NOTHING
        bars.append(tag("g", tip, *parts) if parts else NOTHING)
    grid = [_line(HEIGHT * part) for part in (0.0, 0.5, 1.0)]
    plot = _svg(HEIGHT, title, [*grid, *bars])
    scale = tag("div", *(tag("span", shown(top * part)) for part in (1.0, 0.5, 0.0)), class_="scale")
    below = tag("div", *(tag("span", word) for word in under), class_="under")
    legend = _legend(series) if len(series) > 1 else NOTHING
    drawn = tag("div", scale, tag("div", plot, below), class_="plot")
    return tag("figure", tag("figcaption", title), drawn, legend, class_="chart")


def bar(label: str, value: float, most: float, shown: str) -> Markup:
    """Return one line of a list of bars: its label, the bar, and its value in words."""
    wide = value / most * WIDTH if most else 0
    box = _box(0, 1, max(wide, 3), LANE - 2, "ink1") if value else NOTHING
    return _lane(label, [box], shown)


def lane(label: str, places: Sequence[float], shown: str) -> Markup:
    """Return one line with a mark at each place, 0 to 1 from left to right."""
    slots = sorted({min(int(place * WIDTH / 4), WIDTH // 4 - 1) for place in places})
    return _lane(label, [_box(slot * 4, 1, 3.2, LANE - 2, "ink1") for slot in slots], shown)


def split(parts: Sequence[Series]) -> Markup:
    """Return one bar that is shared by parts, with a legend; each series has one value."""
    total = sum(each.values[0] for each in parts)
    left, boxes = 0.0, []
    for each in parts:
        wide = each.values[0] / total * WIDTH if total else 0
        boxes += [_box(left, 0, wide, LANE, each.ink)] if wide else []
        left += wide
    return tag("div", _svg(LANE, "", boxes), _legend(parts), class_="split")


def round_up(value: float) -> float:
    """Return the next number that is easy to halve, 1 for nothing."""
    if value <= 0:
        return 1.0
    unit = float(10 ** math.floor(math.log10(value)))
    return next(unit * step for step in (1, 2, 4, 6, 8, 10) if unit * step >= value * 0.9999999)


def _lane(label: str, boxes: Sequence[Markup], shown: str) -> Markup:
    drawn = _svg(LANE, "", boxes)
    return tag("div", tag("span", label), drawn, tag("span", shown, class_="n"), class_="lane")


def _svg(height: int, title: str, content: Sequence[Markup], kind: str | None = None) -> Markup:
    return tag(
        "svg",
        glued(list(content)),
        viewBox=f"0 0 {WIDTH} {height}",
        preserveAspectRatio="none",
        role="img" if title else None,
        aria_label=title or None,
        aria_hidden=None if title else "true",
        class_=kind,
    )


def _box(left: float, top: float, wide: float, tall: float, ink: str) -> Markup:
    return Markup(
        f'<rect class="{ink}" x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{max(tall, 0.5):.1f}"/>'
    )


def _line(level: float) -> Markup:
    return Markup(f'<line x1="0" x2="{WIDTH}" y1="{level:.0f}" y2="{level:.0f}"/>')


def _legend(series: Sequence[Series]) -> Markup:
    swatch = f"0 0 {LANE} {LANE}"
    return tag(
        "span",
        *(
            tag("span", tag("svg", _box(0, 0, LANE, LANE, each.ink), viewBox=swatch), each.name)
            for each in series
        ),
        class_="legend",
    )
