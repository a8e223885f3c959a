"""The columns in which a plan that is on the timeline already reads its slices and writes them anew.

Its new base files stand under the instant of the plan. States between the plan and its run are read from them too, and so is the
table when a later change of its columns is taken back.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.table_reader import table_schema
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.table.state import TableState


def as_planned(state: TableState, read: ReadContext, instant: str) -> ReadContext:
    """Return how the slices of a plan are read: no value is left out, or widened, that a state since the plan may be asked for."""
    history = read.schema_history
    if history is not None:
        known = history.up_to(instant)
        if known == history:
            return read
        # by the instant of a file readers look up which ids its columns have
        read = replace(read, schema_history=known)
        columns = table_schema(state.config, state.timeline, instant)
    else:
        columns = _columns_since(state, instant)
    return replace(read, schema=with_meta_columns(columns, operation=state.config.keeps_operations))


def _columns_since(state: TableState, instant: str) -> pa.Schema:
    """Return the columns at an instant and those that came later: of one that was dropped before, older files have values.

    Each has its first type, which can be read as every later one. A name in another case is no second column.
    """
    columns = table_schema(state.config, state.timeline, instant)
    known = {name.lower() for name in columns.names}
    for write in state.timeline.completed_writes:
        if write.requested_time <= instant:
            continue
        if state.timeline.commit_metadata(write).operation_type == WriteOperation.INSERT_OVERWRITE_TABLE:
            break  # its columns, and those after it, need not fit what stood before
        for field in table_schema(state.config, state.timeline, write.requested_time):
            if field.name.lower() not in known:
                known.add(field.name.lower())
                columns = columns.append(field)
    return columns
