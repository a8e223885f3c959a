"""The write operations, each described by a few facts; one pipeline runs them all (see pipeline.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import TableType, WriteOperation
from hudi_engine.format.config.option import Option

NOTHING, TOUCHED_PARTITIONS, WHOLE_TABLE = "nothing", "touched partitions", "whole table"


def write_action(table_type: TableType) -> str:
    """Return the timeline action of a commit that takes no file group out."""
    return "deltacommit" if table_type is TableType.MERGE_ON_READ else "commit"


@dataclass(frozen=True)
class Operation:
    """What distinguishes a write operation.

    Args:
        combine_option: Option that merges rows of the batch with the same key first; None for never.
        replaces: Which file groups the commit takes out: nothing, touched partitions or whole table.
    """

    name: WriteOperation
    lookup: bool = False
    combine_option: Option[bool] | None = None
    packing: bool = False
    delete_only: bool = False
    replaces: str = NOTHING
    bulk: bool = False

    def action(self, table_type: TableType) -> str:
        """Return timeline action of the commit."""
        if self.replaces != NOTHING:
            return "replacecommit"
        return write_action(table_type)


UPSERT = Operation(WriteOperation.UPSERT, True, WriteOptions.COMBINE_BEFORE_UPSERT, packing=True)
INSERT = Operation(WriteOperation.INSERT, False, WriteOptions.COMBINE_BEFORE_INSERT, packing=True)
BULK_INSERT = Operation(WriteOperation.BULK_INSERT, False, WriteOptions.COMBINE_BEFORE_INSERT, bulk=True)
REPLACE = Operation(WriteOperation.UPSERT, True, None, packing=True)
"""Rows that say by flags what becomes of them; nothing of them is combined."""
DELETE = Operation(WriteOperation.DELETE, True, WriteOptions.COMBINE_BEFORE_DELETE, delete_only=True)
INSERT_OVERWRITE = Operation(
    WriteOperation.INSERT_OVERWRITE,
    False,
    WriteOptions.COMBINE_BEFORE_INSERT,
    replaces=TOUCHED_PARTITIONS,
    bulk=True,
)
INSERT_OVERWRITE_TABLE = Operation(
    WriteOperation.INSERT_OVERWRITE_TABLE,
    False,
    WriteOptions.COMBINE_BEFORE_INSERT,
    replaces=WHOLE_TABLE,
    bulk=True,
)
BY_NAME: Mapping[str, Operation] = {
    each.name.value.lower(): each
    for each in (UPSERT, INSERT, BULK_INSERT, INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE, DELETE)
}
"""The operations as ``hoodie.datasource.write.operation`` spells them."""
