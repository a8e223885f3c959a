"""Charts as inline SVG with their words in HTML, so that letters keep their size on a narrow screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hudi_engine.table.report.markup import NOTHING, Markup, glued, number, tag

WIDTH, HEIGHT, LANE = 720, 180, 14
MOST_COLUMNS = 120
_WIDEST_COLUMN = 36

T = TypeVar("T")


@dataclass(frozen=True)
class Series:
    """One part of stacked columns.

    Args:
        ink: Class that colours it: ``ink1`` (accent), ``ink2`` (its tint) or ``ink3`` (neutral).
    """

    name: str
    ink: str
    values: Sequence[float]


def runs(items: Sequence[T]) -> list[Sequence[T]]:
    """Return consecutive runs of items, so few that each can be a column; all but the last are of one length."""
    length = max(1, math.ceil(len(items) / MOST_COLUMNS))
    return [items[start : start + length] for start in range(0, len(items), length)]


def columns(
    title: str,
    series: Sequence[Series],
    under: Sequence[str],
    *,
    shown: Callable[[float], str] = number,
    tips: Sequence[str] = (),
) -> Markup:
    """Return stacked columns.

    Args:
        title: What is shown and in which unit.
        under: Words below the plot, spread from left to right.
        tips: What a column says when pointed at.
    """
    totals = [sum(column) for column in zip(*(each.values for each in series))]
    top = round_up(max(totals, default=0))
    slot = WIDTH / max(1, len(totals))
    wide = min(slot * 0.84, _WIDEST_COLUMN)
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
    """Return one bar that is shared by parts, with a legend that says how; each series has one value."""
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
