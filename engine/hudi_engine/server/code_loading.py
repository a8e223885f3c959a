"""Statements that would run code of their sender on the server: jars, Java classes, programs."""

from __future__ import annotations

import re

from hudi_engine.errors import StatementError

_PART = re.compile(
    r"""--[^\r\n]*|/\*.*?(?:\*/|\Z)|(?P<raw>\b[rR](?:'[^']*'|"[^"]*"))|'(?:[^'\\]|\\.)*'|"(?P<double>(?:[^"\\]|\\.)*)"|`(?P<name>(?:[^`]|``)*)`""",
    re.DOTALL,
)
_TEXT = "''"
_CALLS_JAVA = ("reflect", "java_method", "try_reflect")
_FUNCTION = re.compile(
    r"\bcreate\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?function\b(?:(?:(?!\breturn\b).)*\Z|.*\bas\s+'')",
    re.DOTALL,
)
_LOADS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\badd\s+(?:jar|file|archive)s?\b"), "ADD JAR, FILE and ARCHIVE load code"),
    (
        _FUNCTION,
        "CREATE FUNCTION of a class or a program loads code; functions of SQL, CREATE FUNCTION ... RETURN ..., are allowed",
    ),
    (re.compile(r"\busing\s+''"), "TRANSFORM ... USING runs a program"),
    (re.compile(rf"\b(?:{'|'.join(_CALLS_JAVA)})\s*\("), f"{', '.join(_CALLS_JAVA)} call Java"),
    (
        re.compile(r"\A[\s(]*(?:begin|declare\s+\w+\s+\w+\s+handler)\b"),
        "BEGIN ... END hides statements; send them one by one",
    ),
)


def check_no_code(statement: str) -> None:
    """Raise StatementError for a statement that loads or runs code of its sender."""
    plain = _PART.sub(_without_texts, statement).lower()
    for pattern, reason in _LOADS:
        if pattern.search(plain):
            raise StatementError(f"{reason}: this server rejects it; it was started without --allow-code")


def _without_texts(found: re.Match[str]) -> str:
    """Return a name without its quotes, nothing of a comment, and an empty text for a text."""
    name = found["name"]
    if name is not None:
        return f" {name} "
    if found[0].startswith(("--", "/*")):
        return " "
    # with spark.sql.ansi.doubleQuotedIdentifiers it is a name
    double = found["double"]
    return f" {double} " if double is not None and double.lower() in _CALLS_JAVA else _TEXT
