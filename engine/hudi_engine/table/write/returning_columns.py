"""Columns that come back: files know a column by its name, so one that was dropped shows its old values again.

As in Apache Hudi without schema on read. Where those values have a type that cannot be read as the new one, the table could not be
read at all, so the write is refused.
"""

from __future__ import annotations

from operator import attrgetter

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.format.schema.time_units import in_units_of
from hudi_engine.format.timeline.newest_first import newest_first
from hudi_engine.table.state import TableState
from hudi_engine.table.write.operation import NOTHING, WHOLE_TABLE


def check_returning(
    state: TableState, before: pa.Schema | None, after: pa.Schema, replaces: str = NOTHING
) -> None:
    """Refuse a new column whose name older files have in another spelling, or with a type that cannot be read as its own.

    Only a write that adds columns looks back, until the newest one that replaced all rows.

    Args:
        before: Its data columns now; None when they do not count.
        replaces: Which file groups the write takes out; of the whole table nothing is left to be read.

    Raises:
        SchemaError: There is such a column; the message names both spellings or types.
    """
    if before is None or replaces == WHOLE_TABLE:
        return
    added = {field.name.lower(): field for field in after if field.name not in before.names}
    problems = []
    writes = newest_first(state.timeline, attrgetter("requested_time")) if added else ()
    for _, metadata in writes:
        for field in avro_to_arrow(metadata.schema_json) if metadata.schema_json else ():
            wanted = added.get(field.name.lower())
            problem = None if wanted is None else _problem(field, wanted)
            if problem is not None:
                del added[field.name.lower()]
                problems.append(problem)
        if metadata.operation_type == WriteOperation.INSERT_OVERWRITE_TABLE:
            break
    if problems:
        raise SchemaError(f"{'; '.join(problems)}. Give it another name, or rebuild the table")


def _problem(dropped: pa.Field, wanted: pa.Field) -> str | None:
    """Say why a column cannot come back; None where it can."""
    if dropped.name != wanted.name:
        return (
            f"column {wanted.name!r} was dropped as {dropped.name!r}, and files written before have its values under that "
            "spelling, in which it may come back"
        )
    if not can_change(dropped.type, wanted.type):
        return (
            f"column {dropped.name!r} was dropped as {dropped.type} and would come back as {wanted.type}, which files "
            "written before cannot be read as"
        )
    if not in_units_of(wanted.type, dropped.type).equals(wanted.type):
        # files of older Hudi are read by the unit that the table says
        return (
            f"column {dropped.name!r} was dropped with times in another unit, as {dropped.type}, and would come back as "
            f"{wanted.type}, by which the times in files written before could be taken for others"
        )
    return None
