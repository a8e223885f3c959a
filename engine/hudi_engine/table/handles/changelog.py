"""Changelog mode: what a batch does to a slice, as the records that its log keeps.

A change is an image of the row before it (``-U``, or ``D`` for a delete) and one after it (``U``, or ``I`` for a new row),
marked by ``_hoodie_operation`` (Hudi table format, meta columns). Readers that ignore operations see the records
in order, so the image after a change comes last, and a delete block follows the image of a deleted row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import DataError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.delete_marker import ordering_values
from hudi_engine.format.merge.entries import plain_entries
from hudi_engine.format.merge.merge_rows import merge_rows
from hudi_engine.format.merge.modes.fold import key_codes
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import read_slice, scan_logs
from hudi_engine.format.schema.meta_fields import (
    DELETED,
    INSERTED,
    META_FIELDS,
    OPERATION,
    OPERATIONS,
    RECORD_KEY,
    UPDATED_FROM,
    UPDATED_TO,
)
from hudi_engine.table.handles.append import LogDeletes
from hudi_engine.table.handles.updates import replace_columns
from hudi_engine.table.handles.write_context import WriteContext

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LoggedChanges:
    """Records for a slice's log: key, operation and data columns in the order of the changes, and the keys finally deleted."""

    rows: pa.Table
    deletes: LogDeletes | None
    inserted: int
    updated: int


def changes_of(
    context: WriteContext,
    file_slice: FileSlice,
    rows: pa.Table,
    deletes: pa.Array | None,
    *,
    delete_always: bool = False,
    update_columns: tuple[str, ...] | None = None,
) -> LoggedChanges:
    """Compare a batch with the rows of a slice.

    Args:
        deletes: Which of the rows delete, None for none.
        delete_always: All of them are keys to delete, whatever the ordering values.
        update_columns: Only these columns of a stored row are replaced; None for all.
    """
    stored = read_slice(context.read, file_slice)
    keys = rows.column(RECORD_KEY).combine_chunks()
    places = pc.fill_null(pc.index_in(stored.column(RECORD_KEY), value_set=keys), -1)
    hits = np.flatnonzero(np.asarray(places) >= 0)
    picks = np.asarray(places)[hits].astype(np.int64)
    before = taken(stored, hits)
    if delete_always:
        parts = [_images(context, before, picks, [DELETED] * len(picks))]
        return _logged(parts, taken(rows, np.unique(picks)), None, 0, 0)
    marks = None if deletes is None else deletes.fill_null(False)
    after = taken(rows, picks)
    if update_columns is not None:
        after = replace_columns(after, before, update_columns)
    names = [RECORD_KEY, *_data_names(context)]
    outcome = merge_rows(
        before.select(names),
        after.select(names),
        context.config,
        None if marks is None else marks.take(pa.array(picks)),
    )
    gone = np.asarray(outcome.deleted).astype(bool)
    changed = np.asarray(outcome.changed).astype(bool) | gone
    operations = np.where(gone, DELETED, UPDATED_FROM)[changed].tolist()
    _, firsts = np.unique(picks, return_index=True)
    updates = np.intersect1d(firsts, np.flatnonzero(changed & ~gone))
    fresh = _effective_inserts(context, file_slice, rows, picks, marks)
    parts = [
        _images(context, before.filter(pa.array(changed)), picks[changed], operations),
        _images(context, taken(outcome.rows, updates), picks[updates], [UPDATED_TO] * len(updates)),
        _images(context, taken(rows, fresh), fresh, [INSERTED] * len(fresh)),
    ]
    deleted = taken(rows, np.unique(picks[gone]))
    # Release 0 lets a late delete take the stored row, but not the image of it in the log, and remembers no delete.
    ordering = None if context.config.merges_as_release_0 else ordering_values(deleted, context.config)
    return _logged(parts, deleted, ordering, inserted=len(fresh), updated=len(updates))


def _data_names(context: WriteContext) -> list[str]:
    return [name for name in context.schema.names if name not in META_FIELDS and name != OPERATION]


def _images(
    context: WriteContext, rows: pa.Table, numbers: npt.NDArray[np.int64], operations: list[str]
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return rows with their operation, and the number of the incoming row that each belongs to."""
    picked = rows.select([RECORD_KEY, *_data_names(context)])
    return picked.add_column(1, OPERATION, pa.array(operations, pa.string())), numbers


def _logged(
    parts: list[tuple[pa.Table, npt.NDArray[np.int64]]],
    deleted: pa.Table,
    ordering: pa.Array | None,
    inserted: int,
    updated: int,
) -> LoggedChanges:
    """Put the images of each incoming row together; those before a change come before those after it."""
    order = np.argsort(np.concatenate([numbers for _, numbers in parts]), kind="stable")
    schema = parts[0][0].schema
    rows = taken(pa.concat_tables([part.cast(schema) for part, _ in parts]), order)
    gone = LogDeletes(deleted.column(RECORD_KEY).combine_chunks(), ordering) if deleted.num_rows else None
    return LoggedChanges(rows, gone, inserted, updated)


def _effective_inserts(
    context: WriteContext,
    file_slice: FileSlice,
    rows: pa.Table,
    known: npt.NDArray[np.int64],
    marks: pa.Array | None,
) -> npt.NDArray[np.int64]:
    """Return numbers of the rows that are in the slice afterwards and were not before."""
    fresh = np.ones(rows.num_rows, dtype=bool)
    fresh[known] = False
    if marks is not None:
        fresh &= ~np.asarray(marks).astype(bool)
    numbers = np.flatnonzero(fresh)
    if not len(numbers) or not file_slice.log_files:
        return numbers
    logs = scan_logs(context.read, file_slice, columns=[RECORD_KEY]).winners
    keys = rows.column(RECORD_KEY).take(pa.array(numbers))
    places = np.asarray(pc.fill_null(pc.index_in(keys, value_set=logs.keys.combine_chunks()), -1))
    in_logs = np.flatnonzero(places >= 0)
    old = logs.take(places[in_logs].astype(np.int64))
    fields = [name for name in context.config.ordering_fields if name in old.rows.column_names]
    arriving = taken(rows, numbers[in_logs])
    new = plain_entries(arriving, arriving.column(RECORD_KEY), None, None)
    # A row that arrives after a delete with a greater ordering value stays deleted.
    lost = in_logs[~merge_rule(context.config).in_logs.first(old, new, fields)]
    return np.delete(numbers, lost)


def check_operations(rows: pa.Table) -> pa.Table:
    """Return the rows with ``_hoodie_operation`` as text; raises DataError for a value that is null or none of Hudi's."""
    place = rows.schema.get_field_index(OPERATION)
    given = rows.column(place).cast(pa.string())
    wrong = pc.unique(given.filter(pc.invert(pc.is_in(given, value_set=pa.array(OPERATIONS))))).to_pylist()
    if wrong:
        raise DataError(
            f"column {OPERATION!r} holds {', '.join(map(repr, wrong[:5]))}; legal values: {', '.join(OPERATIONS)}. Correct "
            "the rows, or leave the column out, so that the writer finds the operation of each row"
        )
    return rows.set_column(place, pa.field(OPERATION, pa.string()), given)


def given_changes(context: WriteContext, rows: pa.Table) -> LoggedChanges:
    """Return changes that the rows name themselves, in their order; raises DataError where a key ends with ``-U``."""
    last = _last_states(rows)
    gone = last.filter(pc.equal(last.column(OPERATION), DELETED))
    images = rows.select([RECORD_KEY, OPERATION, *_data_names(context)])
    deletes = None
    if gone.num_rows:
        deletes = LogDeletes(gone.column(RECORD_KEY).combine_chunks(), ordering_values(gone, context.config))
    operations = rows.column(OPERATION)
    count = {name: pc.sum(pc.equal(operations, name)).as_py() or 0 for name in (INSERTED, UPDATED_TO)}
    return LoggedChanges(images, deletes, count[INSERTED], count[UPDATED_TO])


def settled_rows(rows: pa.Table) -> pa.Table:
    """Return what is left of new keys after all their changes; raises DataError where a key ends with ``-U``."""
    last = _last_states(rows)
    return last.filter(pc.not_equal(last.column(OPERATION), DELETED)).drop_columns([OPERATION])


def _last_states(rows: pa.Table) -> pa.Table:
    """Return the last row of each key; a final ``-U`` is refused, as some readers make a delete of it and others a row."""
    codes, distinct = key_codes(rows.column(RECORD_KEY))
    last = np.empty(distinct, np.int64)
    last[codes] = np.arange(rows.num_rows)
    states = taken(rows, np.sort(last))
    open_ends = states.filter(pc.equal(states.column(OPERATION), UPDATED_FROM)).column(RECORD_KEY)
    if len(open_ends):
        raise DataError(
            f"the changes of {len(open_ends)} key(s), among them {open_ends[0].as_py()!r}, end with {OPERATION}={UPDATED_FROM!r}, "
            f"the row before an update; give the row after it ({UPDATED_TO!r}) in the same batch and partition, or "
            f"{DELETED!r} for a row that goes"
        )
    return states
