"""Hudi's SQL procedures (``CALL run_compaction(...)``), as the engine has them."""

from __future__ import annotations

import re

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.procedures import find_procedure, help_text
from hudi_engine.spelling import did_you_mean
from pyspark.sql import SparkSession

from dbt.adapters.hudi.spark.handle import Routed
from dbt.adapters.hudi.spark.warehouse import Warehouse
from dbt.adapters.hudi.sql.targets import own_name

_CALL = re.compile(
    r"^\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*call\s+(?:[`\w]+\s*\.\s*)*`?(\w+)`?\s*\((.*)\)\s*$",
    re.IGNORECASE | re.DOTALL,
)
_ARGUMENT = re.compile(
    r"\s*(?:(\w+)\s*=>\s*)?('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|[^,'\"]+?)\s*(?:,|$)", re.DOTALL
)


def call(warehouse: Warehouse, session: SparkSession, statement: str) -> Routed:
    """Run a CALL statement.

    Raises:
        ConfigError: for a procedure or an argument that does not exist here.
    """
    matched = _CALL.match(statement)
    if matched and matched.group(1).lower() == "help":
        asked = _arguments("help", matched.group(2), ("cmd",))
        told = [(help_text(asked.get("cmd")),)]
        return Routed(AdapterResponse("CALL help"), session.createDataFrame(told, "result string"))
    procedure = find_procedure(matched.group(1) if matched else statement.strip())
    given = _arguments(procedure.name, matched.group(2) if matched else "", procedure.arguments)
    if "table" not in given:
        raise DbtRuntimeError(f"{procedure.name} needs table => 'schema.table'")
    parts = given["table"].replace("`", "").split(".")
    named = own_name(session, parts)
    if named is None:
        raise DbtRuntimeError(f"{'.'.join(parts)} is a table of another catalog; name one of spark_catalog")
    table = warehouse.require_table(session, *named)
    if procedure.changes:
        with warehouse.one_writer(session, table.path):
            rows = procedure.call(table.services(), given)
            warehouse.show(session, *named, table)
    else:
        rows = procedure.call(table.services(), given)
    return Routed(AdapterResponse(f"CALL {procedure.name}"), session.createDataFrame(rows, procedure.columns))


def _arguments(name: str, text: str, positions: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for number, matched in enumerate(_ARGUMENT.finditer(text)):
        if not matched.group(2):
            continue
        key = (matched.group(1) or (positions[number] if number < len(positions) else "")).lower()
        if key not in positions:
            raise DbtRuntimeError(
                f"{name} has the unknown argument {key!r}; {did_you_mean(key, positions)}legal: {', '.join(positions)}"
            )
        given[key] = matched.group(2).strip().strip("'\"")
    return given
