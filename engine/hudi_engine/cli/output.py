"""Answers as JSON for programs, and characters that a stream cannot write."""

from __future__ import annotations

import json
from datetime import datetime
from io import TextIOWrapper
from typing import TextIO

from hudi_engine.table.operations import Answer


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
    notes = [*answer.notes, *([answer.reason] if answer.reason else [])]
    content: object = list(answer.rows)
    if answer.facts or notes:
        rows = {answer.rows_name: list(answer.rows)} if answer.rows else {}
        content = {**answer.facts, **rows, **({"notes": notes} if notes else {})}
    text = json.dumps(content, default=_plain, indent=2, ensure_ascii=False)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(content, default=_plain, indent=2)
    return text


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be JSON")
