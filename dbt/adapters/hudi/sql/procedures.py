"""Hudi's SQL procedures (``CALL run_compaction(...)``), as far as the engine has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from pyspark.sql import SparkSession

from dbt.adapters.hudi.services import clean, compact, rollback
from dbt.adapters.hudi.spark.handle import Routed
from dbt.adapters.hudi.spark.warehouse import Warehouse

_CALL = re.compile(
    r"^\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*call\s+(?:[`\w]+\s*\.\s*)*`?(\w+)`?\s*\((.*)\)\s*$",
    re.IGNORECASE | re.DOTALL,
)
_ARGUMENT = re.compile(
    r"\s*(?:(\w+)\s*=>\s*)?('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|[^,'\"]+?)\s*(?:,|$)", re.DOTALL
)

Arguments = Mapping[str, str]


def _compaction(table: HudiTable, given: Arguments) -> AdapterResponse:
    op = given.get("op", "run").lower()
    if op not in ("run", "schedule", "scheduleandexecute", "execute"):
        raise DbtRuntimeError(
            f"run_compaction has op => {op!r}; legal values: run, schedule, scheduleAndExecute"
        )
    return compact(table, "schedule" if op == "schedule" else "run", {})


def _clean(table: HudiTable, given: Arguments) -> AdapterResponse:
    retain = given.get("retain_commits")
    if retain is not None and not retain.isdecimal():
        raise DbtRuntimeError(
            f"run_clean has retain_commits => {retain!r}; legal values: whole numbers of at least 1"
        )
    return clean(table, None if retain is None else int(retain), {})


def _rollback(table: HudiTable, given: Arguments) -> AdapterResponse:
    if "instant_time" not in given:
        raise DbtRuntimeError("rollback_to_instant needs instant_time")
    return rollback(table, given["instant_time"])


PROCEDURES: Mapping[str, tuple[tuple[str, ...], Callable[[HudiTable, Arguments], AdapterResponse]]] = {
    "run_compaction": (("op", "table"), _compaction),
    "run_clean": (("table", "retain_commits"), _clean),
    "rollback_to_instant": (("table", "instant_time"), _rollback),
}


def call(warehouse: Warehouse, session: SparkSession, statement: str) -> Routed:
    """Run a CALL statement.

    Raises:
        DbtRuntimeError: for a procedure that does not exist here.
    """
    matched = _CALL.match(statement)
    name = matched.group(1).lower() if matched else ""
    if matched is None or name not in PROCEDURES:
        raise DbtRuntimeError(
            f"procedure {name or statement.strip()!r} is not known; legal: {', '.join(PROCEDURES)}"
        )
    positions, procedure = PROCEDURES[name]
    given = _arguments(name, matched.group(2), positions)
    if "table" not in given:
        raise DbtRuntimeError(f"{name} needs table => 'schema.table'")
    parts = given["table"].replace("`", "").split(".")
    schema = parts[-2] if len(parts) > 1 else session.catalog.currentDatabase()
    table = warehouse.require_table(session, schema, parts[-1])
    with warehouse.one_writer(session, table.path):
        response = procedure(table, given)
        warehouse.show(session, schema, parts[-1], table)
    return Routed(response)


def _arguments(name: str, text: str, positions: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for number, matched in enumerate(_ARGUMENT.finditer(text)):
        if not matched.group(2):
            continue
        key = (matched.group(1) or (positions[number] if number < len(positions) else "")).lower()
        if key not in positions:
            raise DbtRuntimeError(f"{name} has the unknown argument {key!r}; legal: {', '.join(positions)}")
        given[key] = matched.group(2).strip().strip("'\"")
    return given
