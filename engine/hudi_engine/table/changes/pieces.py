"""What one Spark task tells of the changes of a table, in the source of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_engine.format.schema.casting import cast_table
from hudi_engine.table.changes.columns import task_schema
from hudi_engine.table.changes.group import TASK_BYTES, Comparison, as_newest, meet
from hudi_engine.table.changes.plan import ChangePlan


@dataclass(frozen=True)
class Piece:
    """What one Spark task tells.

    Args:
        units: File groups: several small ones, or all of a partition between which rows may have moved.
        newest: The rows that are there are told, as updates all.
    """

    plan: ChangePlan
    units: tuple[Comparison, ...]
    columns: pa.Schema
    newest: bool

    def rows(self) -> pa.Table:
        """Read the slices and return the changes, in the columns of the reader."""
        parts = [task_schema(self.plan.read.schema).empty_table(), *map(self.plan.compare, self.units)]
        found = pa.concat_tables(parts)
        if any(unit.meets_others for unit in self.units):
            found = meet(found, self.plan.mode)
        if self.newest:
            found = as_newest(found)
        return cast_table(found, self.columns)


def units_of_tasks(units: Sequence[Comparison]) -> Iterator[tuple[Comparison, ...]]:
    """Yield what one task tells: small file groups together, and those of a partition between which rows may have moved."""
    together: dict[str, list[Comparison]] = {}
    small: list[Comparison] = []
    for unit in units:
        if unit.meets_others:
            together.setdefault(unit.partition, []).append(unit)
            continue
        if small and sum(each.size for each in (*small, unit)) > TASK_BYTES:
            yield tuple(small)
            small = []
        small.append(unit)
    yield from map(tuple, filter(None, (small, *together.values())))
