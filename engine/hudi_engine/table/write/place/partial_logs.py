"""Updates of some columns in logs: partial blocks, in which stored rows have the assigned columns and no others.

Source: Hudi table format, log files, header ``IS_PARTIAL``. A row that is not stored any more has to be whole, as there is nothing
to take its other columns from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.merge.delete_marker import can_delete
from hudi_engine.format.merge.log_scanner import scan_slice
from hudi_engine.format.merge.modes.registry import COMMIT_TIME, EVENT_TIME, merge_rule
from hudi_engine.format.schema.meta_fields import META_FIELDS, RECORD_KEY
from hudi_engine.table.handles.merge import compose_partial
from hudi_engine.table.lookup.kinds import index_kind

if TYPE_CHECKING:
    from hudi_engine.format.filegroup.file_slice import FileSlice
    from hudi_engine.table.handles.write_context import WriteContext
    from hudi_engine.table.lookup.unit import UnitPlan

Mask = npt.NDArray[np.bool_]


def may_hold_deletes(context: WriteContext, file_slice: FileSlice) -> bool:
    """Tell whether the logs of a slice may delete rows, by the headers of their blocks."""
    if not file_slice.log_files:
        return False
    return can_delete(context.read.schema, context.config) or scan_slice(context.read, file_slice).has_deletes


def partial_columns(context: WriteContext, plan: UnitPlan, file_slice: FileSlice) -> list[str] | None:
    """Return the columns that stored rows have in the log of a slice: the assigned and ordering ones; None for whole rows.

    Merge modes that look at all columns, and change data, which has whole rows, need whole rows. So do tables with a column that
    marks deletes, which Apache Hudi 1.2.0 looks for at its place among all columns, and those with a global index, whose look-up of
    Hudi does not merge partial blocks. And so do logs with whole rows: one that is older than the base file's row, by the ordering
    fields, would lend its values to the columns that a partial block lacks.
    """
    config = context.config
    if plan.assigned is None or not config.table_version.has_partial_blocks or config.cdc_enabled:
        return None
    if not context.options[WriteOptions.PARTIAL_UPDATES] or can_delete(context.read.schema, config):
        return None
    if merge_rule(config) not in (COMMIT_TIME, EVENT_TIME) or index_kind(context.options).is_global:
        return None
    if (
        config.ordering_fields
        and file_slice.log_files
        and scan_slice(context.read, file_slice).has_whole_rows
    ):
        return None
    data = [name for name in context.schema.names if name not in META_FIELDS]
    wanted = {name.lower() for name in (*plan.assigned, *config.ordering_fields)}
    found = [name for name in data if name.lower() in wanted]
    return found if 0 < len(found) < len(data) else None


def composed(
    context: WriteContext, plan: UnitPlan, file_slice: FileSlice, rows: pa.Table, columns: list[str] | None
) -> tuple[pa.Table, Mask]:
    """Return rows for a log as far as it needs them, and which of them are stored.

    Stored columns that the update leaves alone are read only where the log has whole rows, or the sidecar of the write needs them.

    Args:
        columns: The `partial_columns` of the slice.
    """
    stored = np.ones(rows.num_rows, dtype=bool)
    if plan.update_columns is None:
        return rows, stored
    if columns is None or plan.sidecars is not None:
        return compose_partial(context, file_slice, rows, plan.update_columns)
    taken = {name.lower() for name in plan.update_columns}
    kept = [name for name in columns if name.lower() not in taken]
    if not kept and not may_hold_deletes(context, file_slice):
        return rows, stored
    return compose_partial(context, file_slice, rows, plan.update_columns, [RECORD_KEY, *kept])
