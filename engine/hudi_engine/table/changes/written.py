"""The rows of a file group that writes have touched, read without the others; runs in a Spark task, with Arrow alone.

Where a write rewrites a base file, the rows that it leaves alone keep the commit time they had. So rows of the new file
with a commit time that the state before does not know are those written since, and the counts of both files tell whether
others went. Where writes only added logs to a base file, its rows that no log names are the same before and after.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.base_reader import BaseFileRows, opened_base_file
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.slice_reader import resolve_delta
from hudi_engine.format.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY, meta_fields
from hudi_engine.table.changes.compare import Matched, compare_rows, without_equal

Positions = npt.NDArray[np.int64]
Touched = tuple[pa.Table, pa.Table, Matched]
_NONE: Positions = np.empty(0, np.int64)


def touched_rows(
    reads: tuple[ReadContext, ReadContext],
    before: FileSlice,
    after: FileSlice,
    *,
    trusts_writes: bool,
    with_keys: bool = True,
) -> Touched | None:
    """Return rows of a file group before and after some writes without such as they left alone, and what became of which.

    Args:
        reads: How the slices of before and after are read, of a table with meta columns.
        trusts_writes: The commit time of a row is that of the write that made it.
        with_keys: Somebody looks at the keys of the rows; else they are read only where they are compared.

    Returns:
        None where the slices do not tell, so that all of their rows have to be compared. Meta columns of the rows are null
        except for what `changed_rows` looks at.

    Raises:
        CorruptTableError: A file of a slice is damaged.
        TimelineError: A file has gone since it was listed.
    """
    if before.base_file is None or after.base_file is None:
        return None
    if before.base_file.path == after.base_file.path:
        return _named_by_logs(reads, before, after)
    if before.log_files or after.log_files or not trusts_writes:
        return None
    with (
        opened_base_file(reads[0], before.base_file) as old,
        opened_base_file(reads[1], after.base_file) as new,
    ):
        return _rewritten(reads, old, new, with_keys=with_keys)


def _named_by_logs(reads: tuple[ReadContext, ReadContext], before: FileSlice, after: FileSlice) -> Touched:
    masked, live = zip(*map(_delta, reads, (before, after)), strict=True)
    gone, back = np.setdiff1d(masked[1], masked[0]), np.setdiff1d(masked[0], masked[1])
    assert before.base_file is not None, "both slices have the same base file"
    with opened_base_file(reads[0], before.base_file) as base:
        only = [base.take(places, reads[0].schema.names) for places in (gone, back)]
    rows = pa.concat_tables([only[0], live[0]]), pa.concat_tables([only[1], live[1]])
    keys = rows[0].column(RECORD_KEY), rows[1].column(RECORD_KEY)
    return *rows, compare_rows(*rows, keys, trusts_writes=False)


def _delta(read: ReadContext, piece: FileSlice) -> tuple[Positions, pa.Table]:
    if not piece.log_files:
        return _NONE, read.schema.empty_table()
    delta = resolve_delta(read, piece)
    return np.asarray(delta.masked_positions), delta.live


def _rewritten(
    reads: tuple[ReadContext, ReadContext], old: BaseFileRows, new: BaseFileRows, *, with_keys: bool
) -> Touched | None:
    """Find the rows that a rewritten base file took out and brought in; None where counts of rows do not add up."""
    schema = reads[1].schema
    codes, times = new.codes(COMMIT_TIME)
    is_known = np.array([each is not None and reads[0].is_visible(each) for each in times])
    places = np.flatnonzero(~is_known[codes])
    known = {COMMIT_TIME: pa.chunked_array([pa.array(times, pa.string()).take(pa.array(codes[places]))])}
    stayed = new.count - len(places)
    if stayed == old.count:
        # none of the old rows is missing, so each written one is new
        if not with_keys:
            known[RECORD_KEY] = pa.chunked_array([pa.nulls(len(places), pa.string())])
        after = _images(new, schema, places, known)
        return schema.empty_table(), after, Matched(_NONE, np.arange(len(places)), _NONE, _NONE)
    after = _images(new, schema, places, known)
    within = np.flatnonzero(places < old.count)
    stood = old.take(places[within], [RECORD_KEY]).column(RECORD_KEY)
    same = pc.fill_null(pc.equal(stood, after.column(RECORD_KEY).take(pa.array(within))), False)
    kept = within[np.asarray(same).astype(bool)]
    if len(kept) == old.count - stayed and _stand_where_they_stood(old, new, np.flatnonzero(is_known[codes])):
        # updates stand where the row of before stood, and none is missing
        keys = stood.filter(same)
        return _updated((old, places[kept], keys), (after, kept), _NONE)
    return _looked_up((old, new), after, stayed)


def _stand_where_they_stood(old: BaseFileRows, new: BaseFileRows, stayed: Positions) -> bool:
    """Tell whether no row before the last one that was left alone is missing.

    Rows that are left alone keep their order. With one of them gone, a new copy of a key may stand where the row of before stood.
    """
    if len(stayed) == 0:
        return True
    last = stayed[-1:]
    if last[0] >= old.count:
        return False
    numbers = [file.take(last, [COMMIT_SEQNO]).column(COMMIT_SEQNO) for file in (old, new)]
    return bool(numbers[0].equals(numbers[1]))


def _looked_up(files: tuple[BaseFileRows, BaseFileRows], after: pa.Table, stayed: int) -> Touched | None:
    """Find by their keys which rows of the old file the written ones come after, and which went."""
    old, new = files
    keys, written = old.read([RECORD_KEY]).column(RECORD_KEY), after.column(RECORD_KEY)
    if pc.count_distinct(written).as_py() != len(written):
        return None
    found = pc.index_in(keys, value_set=written.combine_chunks())
    places = np.flatnonzero(np.asarray(found.is_valid()))
    now = np.asarray(found.drop_null()).astype(np.int64)
    if len(np.unique(now)) != len(now):
        return None
    gone, there = _NONE, new.read([RECORD_KEY]).column(RECORD_KEY)
    if np.count_nonzero(_is_in(there, written)) != len(written):
        # a written row is one more with its key, and does not tell what became of the other
        return None
    if old.count - len(places) != stayed:
        gone = np.flatnonzero(~_is_in(keys, there))
        if old.count - len(places) - len(gone) != stayed:
            return None
    taken = np.sort(np.concatenate([places, gone]))
    return _updated((old, taken, keys.take(pa.array(taken))), (after, now), np.searchsorted(taken, gone))


def _updated(
    before: tuple[BaseFileRows, Positions, pa.ChunkedArray],
    after: tuple[pa.Table, Positions],
    gone: Positions,
) -> Touched:
    """Return the rows before and after, and what became of which.

    Args:
        before: The old file, places of the rows of it that were updated or went, ascending, and their keys.
        after: The written rows, and which of them come after those that were updated, in the order of these.
    """
    file, taken, keys = before
    rows, now = after
    images = _images(file, rows.schema, taken, {RECORD_KEY: keys})
    old = np.setdiff1d(np.arange(len(taken)), gone, assume_unique=True)
    fresh = np.setdiff1d(np.arange(rows.num_rows), now, assume_unique=True)
    return images, rows, without_equal(images, rows, Matched(gone, fresh, old, now))


def _images(
    file: BaseFileRows, schema: pa.Schema, places: Positions, known: dict[str, pa.ChunkedArray]
) -> pa.Table:
    """Return rows of a file: data, keys and the columns that are known; the other meta columns are null."""
    wanted = [name for name in schema.names if name == RECORD_KEY or name not in meta_fields(operation=True)]
    found = file.take(places, [name for name in wanted if name not in known])
    columns = [
        known[field.name]
        if field.name in known
        else found.column(field.name)
        if field.name in wanted
        else pa.nulls(len(places), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _is_in(keys: pa.ChunkedArray, others: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_in(keys, value_set=others.combine_chunks())).astype(bool)
