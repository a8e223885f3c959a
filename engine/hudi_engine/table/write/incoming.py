"""Rows of a write with their keys, on their way into files: here those in memory, which threads of this process write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.avro_change import columns_with_nulls
from hudi_engine.format.schema.evolution import cast_table
from hudi_engine.format.schema.meta_fields import PARTITION_PATH
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.across_partitions import resolve_globally
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.table.txn.planned import PlannedTransaction
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.driver_path import write_on_driver

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Incoming:
    """Rows with their keys.

    Args:
        schema: Data columns of the table after the write.
        columns: Data columns of the rows.
        table: The rows, with key columns and flags after the data columns; None where they are elsewhere.
        index: Index of the write, None for the one the options name.
    """

    schema: pa.Schema
    columns: pa.Schema
    table: pa.Table | None = None
    index: IndexKind | None = None

    def release(self) -> None:
        """Free every cache."""

    @property
    def rows(self) -> int | None:
        """How many rows came, None when they were not counted."""
        return None if self.table is None else int(self.table.num_rows)

    @property
    def partitions(self) -> list[str] | None:
        """Partition paths of the rows, None when they are not known yet."""
        if self.table is None:
            return None
        return [str(value) for value in pc.unique(self.table.column(PARTITION_PATH)).to_pylist()]

    def refitted(self, came: pa.Schema, schema: pa.Schema) -> Self:
        """Return the rows in other columns of the table.

        Args:
            came: Those of the data columns that came with the rows.
            schema: The data columns to be.
        """
        assert self.table is not None
        table = fit_table(self.table, came, schema, self.columns.names)
        return replace(self, schema=schema, columns=schema, table=table)

    def null_columns(self, record: Mapping[str, Any]) -> set[str]:
        """Return the columns of an Avro record in which rows have nulls, or may have."""
        assert self.table is not None
        return columns_with_nulls(self.table, record)

    def write(
        self,
        context: WriteContext,
        plan: UnitPlan,
        units: Mapping[str, PartitionUnit],
        transaction: WriteTransaction | PlannedTransaction,
    ) -> tuple[str, list[WriteStat]]:
        """Write the files of a transaction that has begun; returns the name of the way taken, and what was written.

        Args:
            units: What is known of the partitions of the batch, or of all.
        """
        assert self.table is not None
        return write_on_driver(
            context, *settled_globally(context, plan, units, self.table), units, transaction
        )


def settled_globally(
    context: WriteContext, plan: UnitPlan, units: Mapping[str, PartitionUnit], table: pa.Table
) -> tuple[UnitPlan, pa.Table]:
    """Return rows in the partitions where their keys are, where a key is unique in the whole table, and the plan for them."""
    if not (plan.index.is_global and (plan.lookup or plan.combine)):
        return plan, table
    if plan.lookup:
        table = resolve_globally(context, plan, units, table)
    else:
        table = combine_batch(table, context.config)
    return replace(plan, combine=False), table


def fit_table(table: pa.Table, came: pa.Schema, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return rows in the columns of a table; other columns of theirs, such as keys, follow.

    Args:
        came: Those of the data columns to take, whatever the case of their names.
        names: Data columns of the rows.
    """
    spelled = spellings(schema.names)
    data = table.select(came.names).rename_columns([spelled[name] for name in came.names])
    data = cast_table(data, schema)
    for name in table.column_names:
        if name not in names:
            data = data.append_column(name, table.column(name))
    return data
