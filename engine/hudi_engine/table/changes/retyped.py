"""Rows from before a table was built anew with other columns: what cannot be read in the columns of now is a gap.

A table that is replaced in one commit keeps its history. Where that commit gave a column a type to which no table's column
may go, the older files are still there, and their values may be none of the new type.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_engine.errors import HistoryGapError, SchemaError
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.casting import cast_array
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.format.schema.nested import paired_parts
from hudi_engine.table.changes.gaps import gap_of_column
from hudi_engine.table.changes.group import Comparison
from hudi_engine.table.changes.window import Point
from hudi_engine.table.state import TableState


def check_types(
    state: TableState,
    read: ReadContext,
    points: Sequence[tuple[Point, Point, object]],
    units: Sequence[Comparison],
    start: str,
) -> None:
    """Refuse slices of a time when a column had a type that cannot be read as the one of now.

    Args:
        points: State before and state after each step, and its writes.

    Raises:
        HistoryGapError: Naming the column, and the commit that gave it its type.
    """
    if read.schema_history is not None:
        return  # columns are found by their ids, and such a table is never built anew where it is
    needed = {
        point.newest
        for unit in units
        for point, file_slice in zip(points[unit.step][:2], (unit.before, unit.after), strict=True)
        if file_slice is not None and point.newest is not None
    }
    known: set[str | None] = set()
    for newest in sorted(needed):
        text = state.schema_json(newest)
        then = None if text in known else state.data_schema(newest)
        known.add(text)
        for field in then or ():
            place = read.schema.get_field_index(field.name)
            if place >= 0 and not _is_readable_as(field.type, read.schema.field(place).type):
                raise _gap(state, read, field, newest, start)


def _is_readable_as(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether values of a type can be read as another one, but for those that are too large for it."""
    if can_change(stored, wanted):
        return True
    if pa.types.is_nested(stored) or pa.types.is_nested(wanted):
        pairs = paired_parts(stored, wanted)
        # a field that only one struct has is left out, or null
        return pairs is not None and all(
            one is None or other is None or _is_readable_as(one, other) for _, one, other in pairs
        )
    try:
        cast_array(_sample(stored), wanted)
    except SchemaError:
        return False
    return True


def _sample(kind: pa.DataType) -> pa.Array:
    """Return a value of a type that a narrower one would not have: no number as text, no round one."""
    if pa.types.is_floating(kind):
        return pa.array([1.5], kind)
    if pa.types.is_decimal(kind):
        return (
            pa.array([1], pa.int64())
            .cast(pa.decimal128(38, 0))
            .view(pa.decimal128(38, kind.scale))
            .cast(kind)
        )
    if pa.types.is_timestamp(kind):
        return pa.array([1], pa.int64()).view(kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([b"a"], pa.binary()).cast(kind)
    return pa.array([1], pa.int32()).cast(kind) if pa.types.is_integer(kind) else pa.nulls(1, kind)


def _gap(state: TableState, read: ReadContext, field: pa.Field, newest: str, start: str) -> HistoryGapError:
    """Return what is said of a column, with the first commit that has its type of now."""
    now = read.schema.field(field.name).type
    later = [each.requested_time for each in state.timeline.completed_writes if each.requested_time > newest]
    since = next((each for each in later if _type_at(state, field.name, each) == now), None)
    by = "" if since is None else f" since commit {since}, which built the table anew"
    lost = f"column {field.name!r} was {field.type} and is {now}{by}, and the rows of before cannot be read as that"
    return gap_of_column(state, start, lost, since)


def _type_at(state: TableState, name: str, instant: str) -> pa.DataType | None:
    schema = state.data_schema(instant)
    place = -1 if schema is None else schema.get_field_index(name)
    return None if schema is None or place < 0 else schema.field(place).type
