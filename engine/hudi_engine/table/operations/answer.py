"""What an operation answers, and how people read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hudi_engine.table.report.markup import size

Cells = Mapping[str, Any]
"""Column to value, as JSON can hold it."""


@dataclass(frozen=True)
class Answer:
    """What an operation answers.

    Args:
        rows: A table, one mapping a line; the first one gives the columns.
        facts: Figures of the whole.
        reason: Why there was nothing to do.
        ok: False when the answer is no, as of a validation that failed.
    """

    rows: Sequence[Cells] = ()
    facts: Cells = field(default_factory=dict)
    notes: Sequence[str] = ()
    reason: str = ""
    ok: bool = True
    rows_name: str = "rows"


def as_text(answer: Answer) -> str:
    """Return an answer as lines: facts, a table with numbers to the right, notes."""
    parts = []
    if answer.facts:
        width = max(map(len, answer.facts))
        lines = (f"{_words(key):{width}}  {shown(key, value)}" for key, value in answer.facts.items())
        parts.append("\n".join(lines))
    if answer.rows:
        parts.append(_table(answer.rows))
    notes = [*answer.notes, *([answer.reason] if answer.reason else [])]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts) if parts else "nothing"


def as_line(answer: Answer) -> str:
    """Return the facts of an answer in one line."""
    if answer.reason:
        return f"nothing to do: {answer.reason}"
    facts = (f"{_words(key)} {shown(key, value)}" for key, value in answer.facts.items() if value is not None)
    return ", ".join(facts)


def shown(key: str, value: Any) -> str:
    """Return a value as people read it: bytes in units, shares in percent, moments in UTC to the second."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if "bytes" in key:
        return size(value)
    if key.endswith("share"):
        return f"{value:.1%}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value)


def _table(rows: Sequence[Cells]) -> str:
    """Return rows as a text table, numbers to the right."""
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
