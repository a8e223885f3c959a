"""Answers as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from io import TextIOWrapper
from typing import Any, TextIO

from hudi_engine.cli.command import Answer, Row
from hudi_engine.table.report.markup import size


def escape_what_is_lacking(stream: TextIO) -> None:
    """Let a stream write a character that its encoding lacks as an escape of hexadecimal digits instead of failing."""
    # with another rule than the strict one somebody has chosen what becomes of such characters
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


def as_json(answer: Answer, encoding: str | None = None) -> str:
    """Return an answer as JSON; an answer of rows alone is a list.

    Args:
        encoding: What it will be written in; where that lacks a character JSON's own escapes are used.
    """
    if not answer.facts and not answer.notes:
        content: object = list(answer.rows)
    else:
        content = {
            **answer.facts,
            **({answer.rows_name: list(answer.rows)} if answer.rows else {}),
            **({"notes": list(answer.notes)} if answer.notes else {}),
        }
    text = json.dumps(content, default=_plain, indent=2, ensure_ascii=False)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(content, default=_plain, indent=2)
    return text


def as_text(answer: Answer) -> str:
    """Return an answer as lines: facts, a table, notes; numbers stand to the right."""
    parts = []
    if answer.facts:
        width = max(map(len, answer.facts))
        parts.append(
            "\n".join(f"{_words(key):{width}}  {shown(key, value)}" for key, value in answer.facts.items())
        )
    if answer.rows:
        parts.append(_table(answer.rows))
    if answer.notes:
        parts.append("\n".join(answer.notes))
    return "\n\n".join(parts) if parts else "nothing"


def shown(key: str, value: Any) -> str:
    """Return a value as people read it: bytes in units, shares in percent, moments in UTC to the second, lists with commas."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if key.endswith("bytes") or key == "size":
        return size(value)
    if key.endswith("share"):
        return f"{value:.1%}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value)


def _table(rows: Sequence[Row]) -> str:
    """Return rows as text in columns, numbers to the right."""
    columns = list(rows[0])
    cells = [[shown(name, row[name]) for name in columns] for row in rows]
    heads = [_words(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells)]
    right = [
        all(isinstance(row[name], (int, float)) or row[name] is None for row in rows) for name in columns
    ]

    def line(values: Sequence[str]) -> str:
        padded = (
            f"{value:>{width}}" if to_right else f"{value:{width}}"
            for value, width, to_right in zip(values, widths, right)
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line(heads), *map(line, cells)])


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be JSON")
