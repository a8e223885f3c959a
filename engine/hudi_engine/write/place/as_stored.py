"""What the file groups that are there say of the index by which a write places its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_engine.config.enums import WriteOperation
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.index.lookup.bucket_form import with_bucket_form
from hudi_engine.index.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.schema.meta_fields import RECORD_KEY
from hudi_engine.table_state import TableState


def as_stored(
    plan: UnitPlan,
    state: TableState,
    context: WriteContext,
    table: pa.Table | None,
    units: Mapping[str, PartitionUnit],
) -> UnitPlan:
    """Return the plan with buckets of the form that the table's are of.

    Args:
        plan: How rows are treated.
        state: The table.
        context: The write.
        table: The batch, None when its rows are not in this process.
        units: The partitions that are written to.

    Raises:
        ConfigError: Stored keys are in other buckets than the options say.
    """
    # An overwrite of the whole table leaves nothing behind that could be in other buckets.
    anew = context.operation == WriteOperation.INSERT_OVERWRITE_TABLE.value
    keys = None if table is None else table.column(RECORD_KEY)
    index = with_bucket_form(
        plan.index,
        context.read,
        context.options,
        keys,
        () if anew else [each for unit in units.values() for each in unit.slices],
        lambda: () if anew else state.view().latest_slices(),
    )
    return replace(plan, index=index)
