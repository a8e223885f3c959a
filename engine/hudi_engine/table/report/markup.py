"""HTML that cannot be broken by what it shows: text is escaped unless it was made here.

Names and values in tables are written by anybody, so every text is taken for hostile. Characters that show nothing or turn
the direction of writing are shown by their numbers.
"""

from __future__ import annotations

import html
from datetime import datetime

LONGEST_TEXT = 300


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


NOTHING = Markup("")


def text(value: object) -> Markup:
    """Return a value as HTML text, safe in elements and in quoted attributes."""
    if isinstance(value, Markup):
        return value
    raw = str(value)
    if len(raw) > LONGEST_TEXT:
        raw = f"{raw[:LONGEST_TEXT]}… ({len(raw):,} characters)"
    shown = raw if raw.isprintable() else "".join(map(_visible, raw))
    return Markup(html.escape(shown))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element.

    Args:
        attributes: Underscores stand for hyphens, one at the end is dropped; None leaves an attribute out.
    """
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
