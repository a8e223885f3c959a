"""Hudi's SQL procedures (``CALL run_compaction(...)``), as the engine has them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession

from hudi_engine.errors import StatementError
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.spark.sql.statement import StatementResult, is_of_another_catalog, is_set_up_beside, own_name
from hudi_engine.spark.sql.statements import closing_bracket, split_outside, split_statements
from hudi_engine.spark.sql.warehouse import Warehouse
from hudi_engine.table.operations.procedures import PROCEDURES, find_procedure, help_text

_COMMENTS = r"(?:/\*.*?\*/\s*|--[^\n]*(?:\n\s*|$))*"
_CALL = re.compile(
    rf"^\s*{_COMMENTS}call\s+((?:[`\w]+\s*\.\s*)*)`?(\w+)`?\s*(?=\()",
    re.IGNORECASE | re.DOTALL,
)
_ARGUMENT = re.compile(
    rf"{_COMMENTS}(?:(\w+)\s*=>\s*)?"
    r"('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|(?:(?!=>|--|/\*)[^'\"])+)"
    rf"\s*{_COMMENTS}",
    re.DOTALL,
)
_ESCAPED: Mapping[str, str] = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",
}
"""What Spark takes a character behind a backslash for, where that is not the character."""


def call(warehouse: Warehouse, session: SparkSession, statement: str) -> StatementResult | None:
    """Run a CALL statement; None leaves a procedure of another catalog to Spark."""
    matched = _CALL.match(statement)
    if matched is not None and _is_of_another_catalog(session, matched):
        return None
    called, text = _parts(statement, matched)
    if called.lower() == "help":
        command = given_arguments("help", text, ("cmd",)).get("cmd")
        texts = [(help_text(command),)]
        return StatementResult(session.createDataFrame(texts, "result string"), name="CALL help")
    procedure = find_procedure(called)
    given = given_arguments(procedure.name, text, procedure.names)
    named_table = given.pop("table", None)
    if named_table is None:
        hint = "; a path alone is not taken" if "path" in given else ""
        raise StatementError(f"{procedure.name} needs table => 'schema.table'{hint}")
    parts = named_table.replace("`", "").split(".")
    named = own_name(session, parts)
    if named is None:
        raise StatementError(f"{'.'.join(parts)} is a table of another catalog; name one of spark_catalog")
    if len(parts) == 1:
        named = _in_schema(warehouse, session, named)
    table = warehouse.require_table(session, *named)
    if procedure.changes:
        with warehouse.one_writer(session, table.path):
            rows = procedure.call(table.services(), given)
            warehouse.show(session, *named, table)
    else:
        rows = procedure.call(table.services(), given)
    return StatementResult(session.createDataFrame(rows, procedure.columns), name=f"CALL {procedure.name}")


def _in_schema(warehouse: Warehouse, session: SparkSession, named: tuple[str, str]) -> tuple[str, str]:
    """Return a name without a schema as Spark has it, or else in the target's schema where Spark's is ``default``."""
    schema, name = named
    if schema.lower() == "default" and warehouse.entry(session, *named) is None:
        schema = warehouse.target_schema
    if warehouse.hudi_base(session, schema, name) is None:
        raise StatementError(
            f"{schema}.{name} is not a Hudi table: a name without a schema is of Spark's current one, or, where that is "
            f"default and has none such, of the target's; write table => 'schema.{name}'"
        )
    return schema, name


def _parts(statement: str, matched: re.Match[str] | None) -> tuple[str, str]:
    """Return the name of what is called and the text in its brackets; a comment may follow them."""
    if matched is None:
        return statement.strip(), ""
    end = closing_bracket(statement, matched.end())
    if statement[end - 1] != ")" or split_statements(statement[end:]):
        return statement.strip(), ""
    return matched.group(2), statement[matched.end() + 1 : end - 1]


def _is_of_another_catalog(session: SparkSession, matched: re.Match[str]) -> bool:
    """Tell whether a procedure is called by the name of another catalog, or unknown here while such a one is used."""
    first = [part.strip(" `\n\t") for part in matched.group(1).split(".")[:-1]][:1]
    if first and is_set_up_beside(session, first[0]):
        return True
    called = matched.group(2).lower()
    return called not in {"help", *PROCEDURES} and is_of_another_catalog(session, [*first, called])


def given_arguments(name: str, text: str, positions: tuple[str, ...]) -> dict[str, str]:
    """Return the arguments of a call by name; ``positions`` are the names of all arguments in order."""
    given: dict[str, str] = {}
    for number, (start, end) in enumerate(split_outside(text, 0, len(text), ",")):
        piece = text[start:end].strip()
        if not piece:
            continue
        matched = _ARGUMENT.fullmatch(piece)
        if matched is None:
            raise StatementError(
                f"{name} has the argument {piece}; write name => value, with quotes around a text"
            )
        key = (matched.group(1) or (positions[number] if number < len(positions) else "")).lower()
        if key not in positions:
            raise StatementError(
                f"{name} has the unknown argument {key!r}; {did_you_mean(key, positions)}legal: {', '.join(positions)}"
            )
        given[key] = _value(matched.group(2).strip())
    return given


def _value(text: str) -> str:
    """Return a value as it is meant: without the quotes around it and the escapes within them."""
    quote = text[0]
    if quote not in "'\"":
        return text
    return re.sub(
        rf"\\(.)|{quote}{quote}",
        lambda found: quote if found[1] is None else _ESCAPED.get(found[1], found[1]),
        text[1:-1],
        flags=re.DOTALL,
    )
