"""The operations on a table, each described once: what the command line, ``CALL`` and dbt run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hudi_engine.table.operations import table_operations as table
from hudi_engine.table.operations.answer import Answer, as_line, as_text
from hudi_engine.table.operations.operation import Arg, Call, Operation

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        each.name: each
        for each in (
            Operation(table.timeline),
            Operation(table.commits),
            Operation(table.files),
            Operation(table.partitions),
            Operation(table.stats),
            Operation(table.validate),
            Operation(table.report),
            Operation(table.savepoints),
            Operation(table.savepoint),
            Operation(table.delete_savepoint),
            Operation(table.compact, changes=True, is_service=True),
            Operation(table.compactions),
            Operation(table.cluster, changes=True, is_service=True),
            Operation(table.clusterings),
            Operation(table.clean, changes=True, is_service=True),
            Operation(table.archive, changes=True, is_service=True),
            Operation(table.rollback, changes=True),
            Operation(table.restore, changes=True),
            Operation(table.upgrade, changes=True),
            Operation(table.downgrade, changes=True),
            Operation(table.delete_partitions, changes=True),
            Operation(table.repair, changes=True),
            Operation(table.clone, changes=True),
        )
    }
)

__all__ = ["OPERATIONS", "Answer", "Arg", "Call", "Operation", "as_line", "as_text"]
