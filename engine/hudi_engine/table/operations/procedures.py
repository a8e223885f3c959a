"""Apache Hudi's SQL procedures under Hudi's own names, arguments and columns.

Names and columns are those of Apache Hudi 0.15, and of 1.2 for procedures that came later.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.table.operations import hudi_files as files
from hudi_engine.table.operations import hudi_metadata as metadata
from hudi_engine.table.operations import hudi_repairs as repairs
from hudi_engine.table.operations import hudi_services as services
from hudi_engine.table.operations.operation import Answer, Operation
from hudi_engine.table.table_services import TableServices

PROCEDURES: Mapping[str, Operation] = MappingProxyType(
    {
        each.name: each
        for module in (files, metadata, services, repairs)
        for each in vars(module).values()
        if isinstance(each, Operation)
    }
)


def find_procedure(name: str) -> Operation:
    """Return a procedure by Hudi's name, in whatever case."""
    found = PROCEDURES.get(name.lower())
    if found is None and "metadata_table" in name.lower():
        legal = ", ".join(
            sorted(each for each in PROCEDURES if "metadata_" in each and "logfile" not in each)
        )
        raise ConfigError(
            f"procedure {name!r} is about the metadata table, and writes keep that up to date by themselves; legal of these: "
            f"{legal}"
        )
    if found is None:
        raise ConfigError(
            f"there is no procedure {name!r}; {did_you_mean(name, PROCEDURES)}there are: {', '.join(sorted(PROCEDURES))}"
        )
    return found


def call_procedure(procedure: Operation, services: TableServices, given: Mapping[str, Any]) -> Answer:
    """Run a procedure, and return its rows by column."""
    names = [column.rpartition(" ")[0].strip("`") for column in procedure.columns.split(", ")]
    return Answer([dict(zip(names, row)) for row in procedure.call(services, given)])


def help_text(command: str | None = None) -> str:
    """Return what the procedures do, a line each, or arguments and columns of one."""
    if command is None:
        known = sorted(PROCEDURES.values(), key=lambda each: each.name)
        lines = [f"call {each.name}(...): {each.doc}" for each in known]
        return "\n".join([*lines, "call help(cmd => 'show_commits') names arguments and columns of one"])
    found = find_procedure(command.strip())
    notes = {each.name: each.about.refused for each in found.arguments.values()}
    notes |= dict.fromkeys(("table", *found.required), "required")
    arguments = ", ".join(f"{name} ({notes[name]})" if notes[name] else name for name in found.names)
    return f"{found.name}\narguments: {arguments}\ncolumns: {found.columns}"
