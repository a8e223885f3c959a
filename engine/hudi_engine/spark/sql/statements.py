"""Splits SQL text into statements, knowing Spark's quotes and comments.

Spark runs one statement at a time; dbt's hooks, tests and packages send several separated by ``;``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ORDER_KEY = re.compile(r"(?is)\A\s*(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*\Z")
# As Spark has it: a backslash at its end continues it on the next line.
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*\r?\n?")
_WORD = re.compile(r"\w+")
_QUOTES = frozenset("'\"`")
QUERIES = frozenset(("select", "with", "from", "values", "table"))
"""First words of queries; one of `with` or `from` may insert too."""


def split_statements(sql: str) -> list[str]:
    """Return the statements of a text, cut at semicolons outside quotes and comments; empty ones are left out."""
    pieces: list[str] = []
    start = 0
    has_code = False
    for index, is_code in _significant(sql):
        if is_code and sql[index] == ";":
            if has_code:
                pieces.append(sql[start:index].strip())
            start, has_code = index + 1, False
        else:
            has_code = True
    if has_code:
        pieces.append(sql[start:].strip())
    return pieces


def first_keyword(sql: str) -> str:
    """Return the first word of a statement in lower case, past blanks, comments and opening brackets."""
    word = _WORD.match(sql, first_word(sql))
    return "" if word is None else word[0].lower()


def first_word(sql: str) -> int:
    """Return the position of the first word, past blanks, comments and opening brackets; the end where there is none."""
    return next((index for index, _ in _significant(sql) if sql[index] != "("), len(sql))


def without_comments(sql: str) -> str:
    """Return SQL with one blank for each stretch of blanks and comments."""
    pieces, end = [], 0
    for index, is_code in _significant(sql):
        if index > end:
            pieces.append(" ")
        end = index + 1 if is_code else _end_of_quote(sql, index)
        pieces.append(sql[index:end])
    return "".join(pieces)


def closing_bracket(sql: str, start: int) -> int:
    """Return the position behind the bracket that closes the first one after ``start``; the end without brackets."""
    depth = 0
    for index, is_code in _significant(sql):
        if index >= start and is_code and sql[index] in "()":
            depth += 1 if sql[index] == "(" else -1
            if depth == 0:
                return index + 1
    return len(sql)


def clause_after(sql: str, keyword: str) -> tuple[int, int] | None:
    """Return start and end of the text after ``where`` or ``set`` outside brackets; None without the keyword."""
    start = None
    for position, word in outer_words(sql):
        if start is not None and word in ("where", "set"):
            return start, position
        if start is None and word == keyword:
            start = position + len(word)
    return None if start is None else (start, len(sql))


def split_outside(sql: str, start: int, end: int, separator: str) -> list[tuple[int, int]]:
    """Return start and end of each piece of a stretch, cut at a character outside brackets, quotes and comments."""
    pieces, depth, begin = [], 0, start
    for index, is_code in _significant(sql):
        if not start <= index < end or not is_code:
            continue
        depth += (sql[index] in "([") - (sql[index] in ")]")
        if depth == 0 and sql[index] == separator:
            pieces.append((begin, index))
            begin = index + 1
    pieces.append((begin, end))
    return pieces


def without_leading_dot(sql: str, name: str) -> str:
    """Return SQL with a blank for the dot in front of a name with nothing before it: an empty database."""
    pieces, position = [], 0
    for index, is_code in _significant(sql):
        follows = sql[index + 1 : index + 1 + len(name)].lower() == name
        if is_code and sql[index] == "." and follows and sql[index - 1 : index].isspace():
            pieces += [sql[position:index], " "]
            position = index + 1
    return "".join([*pieces, sql[position:]])


def order_keys(clause: str) -> list[dict[str, str | bool]]:
    """Return the keys of an ORDER BY: ``expression``, ``descending`` and ``nulls_last``, with Spark's defaults."""
    text = re.sub(r"(?i)\A\s*order\s+by\s+", "", clause)
    found: list[dict[str, str | bool]] = []
    for start, end in split_outside(text, 0, len(text), ","):
        matched = _ORDER_KEY.match(text[start:end])
        expression, order, nulls = matched.groups() if matched else ("", None, None)
        if expression:
            descending = (order or "").lower() == "desc"
            nulls_last = descending if nulls is None else nulls.lower() == "last"
            found.append({"expression": expression, "descending": descending, "nulls_last": nulls_last})
    return found


def outer_words(sql: str) -> Iterator[tuple[int, str]]:
    """Give the words outside brackets and quotes, in lower case, with their positions."""
    depth, skip_to = 0, 0
    for index, is_code in _significant(sql):
        if index < skip_to or not is_code:
            continue
        char = sql[index]
        depth += (char in "([") - (char in ")]")
        word = _WORD.match(sql, index) if depth == 0 and not char.isdigit() else None
        if word is not None:
            skip_to = word.end()
            if index == 0 or sql[index - 1] != ".":
                yield index, word[0].lower()


def _significant(sql: str) -> Iterator[tuple[int, bool]]:
    """Positions of characters that are neither blank nor comment; the flag is False inside quotes."""
    index = 0
    while index < len(sql):
        char = sql[index]
        if sql.startswith("--", index):
            index = _LINE_COMMENT.match(sql, index).end()  # type: ignore[union-attr]  # it matches any
        elif sql.startswith("/*", index):
            index = _end_of_block_comment(sql, index)
        elif char in _QUOTES:
            end = _end_of_quote(sql, index)
            yield index, False
            index = end
        else:
            if not char.isspace():
                yield index, True
            index += 1


def _end_of_block_comment(sql: str, start: int) -> int:
    """Spark's bracketed comments nest."""
    depth, index = 1, start + 2
    while index < len(sql) and depth:
        if sql.startswith("/*", index):
            depth, index = depth + 1, index + 2
        elif sql.startswith("*/", index):
            depth, index = depth - 1, index + 2
        else:
            index += 1
    return index


def _end_of_quote(sql: str, start: int) -> int:
    """Return the index after a quoted text, minding backslashes where they count."""
    quote = sql[start]
    # a raw literal r'...' takes backslashes as they are
    raw = (
        quote != "`"
        and start > 0
        and sql[start - 1] in "rR"
        and not (start > 1 and (sql[start - 2].isalnum() or sql[start - 2] == "_"))
    )
    index = start + 1
    while index < len(sql):
        if sql[index] == "\\" and quote != "`" and not raw:
            index += 2
        elif sql[index] == quote:
            return index + 1
        else:
            index += 1
    return index
