"""The operations on a table, each described once: what the command line, ``CALL`` and dbt run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hudi_engine.table.operations import table_operations
from hudi_engine.table.operations.operation import Answer, Arg, Call, Operation, as_line, as_text

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {each.name: each for each in vars(table_operations).values() if isinstance(each, Operation)}
)

__all__ = ["OPERATIONS", "Answer", "Arg", "Call", "Operation", "as_line", "as_text"]
