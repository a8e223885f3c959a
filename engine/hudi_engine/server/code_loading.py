"""Statements and settings that would run code of their sender on the server: jars, Java classes, programs.

A guard for clients that are trusted with the tables, and no sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from pyspark.sql import SparkSession

from hudi_engine.errors import StatementError
from hudi_engine.spark.sql.statements import split_statements

_FORMATS = frozenset({"hudi", "parquet", "orc", "csv", "json", "text", "avro"})
_FORMATS_OF_EXTENSIONS = ("delta", "iceberg")
WITHOUT = "this server rejects it; it was started without --allow-code"

_PART = re.compile(
    r"""--[^\r\n]*|/\*.*?(?:\*/|\Z)|(?P<raw>\b[rR](?:'[^']*'|"[^"]*"))|'(?:[^'\\]|\\.)*'|"(?P<double>(?:[^"\\]|\\.)*)"|`(?P<name>(?:[^`]|``)*)`""",
    re.DOTALL,
)
_TEXT = "''"
CALLS_JAVA = ("reflect", "java_method", "try_reflect")
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
    (re.compile(rf"\b(?:{'|'.join(CALLS_JAVA)})\s*\("), f"{', '.join(CALLS_JAVA)} call Java"),
    (
        re.compile(
            r"\A[\s(]*(?:\w+\s*:\s*)?(?:begin|declare\s+\w+\s+\w+\s+handler)\b|\bexecute\s+immediate\b"
        ),
        "BEGIN ... END and EXECUTE IMMEDIATE hide statements; send them one by one",
    ),
    (
        re.compile(r"\bidentifier\s*\("),
        "IDENTIFIER(...) hides a name, which may be that of a function; write the name",
    ),
    (re.compile(r"\bjdbc\s*\."), "a query of jdbc runs statements in a database inside the server"),
)
# JOIN ... USING has brackets, MERGE INTO ... USING a table and CREATE INDEX ... USING a kind: every other one has a format.
_NO_FORMAT = re.compile(
    r"\bmerge\s+(?:with\s+schema\s+evolution\s+)?into\b.*?\busing\b|\A\s*create\s+index\b.*?\busing\b",
    re.DOTALL,
)
_FORMAT = re.compile(r"\busing\s+([^\s('][^\s(']*(?:\s*\.\s*[^\s('.]+)*)")
_CALL = re.compile(r"\A[\s(]*call\b")
_SET = re.compile(r"\A[\s(]*set\s([^=]*)=")
# Settings whose value is a class, or a format that is one.
_NAMES_CLASS = re.compile(
    r"(?!hoodie\.)(?:spark\.sql\.(?:catalog\..*|extensions|sources\.default|queryexecutionlisteners|cache\.serializer)"
    r"|(?:.*\.)?(?:fs\..*\.impl|io\.compression\.codecs)|.*class)"
)


def allowed_formats(spark: SparkSession) -> frozenset[str]:
    """Return the formats that clients may name after USING: Spark's of files, and those of the server's extensions."""
    configured = " ".join(
        spark.conf.get(each, "") or "" for each in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
    ).lower()
    return _FORMATS | {each for each in _FORMATS_OF_EXTENSIONS if each in configured}


def check_no_code(text: str, formats: Collection[str]) -> None:
    """Raise StatementError for statements of which one loads or runs code of its sender.

    Args:
        text: One or more statements, separated by semicolons.
        formats: What may follow USING.
    """
    if "${" in text:
        raise StatementError(
            f"${{...}} hides what a statement runs; write concat('$', '{{') for the text: {WITHOUT}"
        )
    for statement in split_statements(text):
        plain = _PART.sub(_without_texts, statement).lower()
        for pattern, reason in _LOADS:
            if pattern.search(plain):
                raise StatementError(f"{reason}: {WITHOUT}")
        for each in _FORMAT.findall(_NO_FORMAT.sub(" ", plain)):
            if each not in formats:
                raise StatementError(
                    f"USING {each} may run code; formats of this server: {', '.join(sorted(formats))}: {WITHOUT}"
                )
        if _CALL.search(plain):
            _check_arguments(statement, formats)
        setting = _SET.search(plain)
        if setting is not None:
            check_setting("".join(setting[1].split()))


def _check_arguments(call: str, formats: Collection[str]) -> None:
    """Raise StatementError for a procedure with a text, which may be a condition, that runs code."""
    for found in _PART.finditer(call):
        if found["name"] is not None or found[0].startswith(("--", "/*")):
            continue
        text = found[0].lstrip("rR")[1:-1]
        if "\\" in text:
            raise StatementError(f"a backslash hides what an argument of CALL runs; leave it out: {WITHOUT}")
        check_no_code(f"select {text}", formats)


def check_setting(key: str) -> None:
    """Raise StatementError for a setting that names a class to load, such as ``spark.sql.catalog.sales``."""
    if _NAMES_CLASS.fullmatch(key.lower()):
        raise StatementError(
            f"{key} names a class to load; give it to the server as --conf {key}=...: {WITHOUT}"
        )


def _without_texts(found: re.Match[str]) -> str:
    """Return a name without its quotes, nothing of a comment, and an empty text for a text."""
    name = found["name"]
    if name is not None:
        # one word, so that no name reads as several
        return f" {'_'.join(name.split())} "
    if found[0].startswith(("--", "/*")):
        return " "
    # with spark.sql.ansi.doubleQuotedIdentifiers it is a name
    double = found["double"]
    return f" {double} " if double is not None and double.lower() in CALLS_JAVA else _TEXT
