"""The rows of a file group that writes have touched, read without the others; Arrow alone.

Where a write rewrites a base file, the rows that it leaves alone keep their commit time. So rows of the new file
with a commit time that the state before does not know are those written since, and the counts of both files show whether
others were deleted. Where writes only added logs to a base file, its rows that no log names are unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.change_records import (
    AFTER,
    BEFORE,
    KEY,
    OPERATION,
    Change,
    read_change_records,
)
from hudi_engine.format.merge.base_reader import BaseFileRows, opened_base_file
from hudi_engine.format.merge.modes.fold import key_codes, turns_of
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.record_keys import made_keys
from hudi_engine.format.merge.row_equality import equal_rows
from hudi_engine.format.merge.rows_at import rows_at, taken
from hudi_engine.format.merge.slice_reader import read_slice, resolve_delta
from hudi_engine.format.merge.stored_columns import fit_columns, stored_names
from hudi_engine.format.schema.meta_fields import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    PARTITION_PATH,
    RECORD_KEY,
    meta_fields,
)
from hudi_engine.table.changes.window import CHANGE_TYPE, COMMITTED, STEP

_NOT_DATA = frozenset({*meta_fields(operation=True), CHANGE_TYPE, COMMITTED, STEP})


@dataclass(frozen=True)
class Matched:
    """Row numbers of two tables.

    Args:
        removed: Rows of the first without a row in the second.
        new: Rows of the second without a row in the first.
        old: Rows of the first that have another content in the second.
        now: Those rows of the second, aligned with ``old``.
    """

    removed: Positions
    new: Positions
    old: Positions
    now: Positions


def compare_rows(
    before: pa.Table, after: pa.Table, keys: tuple[pa.ChunkedArray, pa.ChunkedArray], *, trusts_writes: bool
) -> Matched:
    """Match the rows of two states, in the same columns, by key.

    Args:
        trusts_writes: A row with the commit time and sequence number of another one is that row; False where a merge
            changes rows and keeps these.
    """
    pairs = _pairs(before, after, keys)
    removed, new = _rest(before.num_rows, pairs[0]), _rest(after.num_rows, pairs[1])
    old, now = pairs
    if trusts_writes:
        changed = ~_same_write(before, after, old, now)
        old, now = old[changed], now[changed]
    return without_equal(before, after, Matched(removed, new, old, now))


def without_equal(before: pa.Table, after: pa.Table, matched: Matched) -> Matched:
    """Return what became of rows without the pairs that say the same."""
    names = [name for name in after.column_names if name not in _NOT_DATA]
    old, now = matched.old, matched.now
    differs = ~equal_rows(rows_at(before, old), rows_at(after, now), names)
    return Matched(matched.removed, matched.new, old[differs], now[differs])


def _pairs(
    before: pa.Table, after: pa.Table, keys: tuple[pa.ChunkedArray, pa.ChunkedArray]
) -> tuple[Positions, Positions]:
    codes, distinct = key_codes(pa.chunked_array([*keys[0].chunks, *keys[1].chunks], pa.string()))
    first, second = codes[: before.num_rows], codes[before.num_rows :]
    if _are_unique(first, distinct) and _are_unique(second, distinct):
        return _join(first, second)
    written, _ = key_codes(_written(before, after, codes))
    whole = _join(_numbered(written[: before.num_rows]), _numbered(written[before.num_rows :]))
    left, right = _rest(before.num_rows, whole[0]), _rest(after.num_rows, whole[1])
    others = _join(_numbered(first[left]), _numbered(second[right]))
    return np.r_[whole[0], left[others[0]]], np.r_[whole[1], right[others[1]]]


def _are_unique(codes: Positions, distinct: int) -> bool:
    return not len(codes) or int(np.bincount(codes, minlength=distinct).max()) <= 1


def _written(before: pa.Table, after: pa.Table, codes: Positions) -> pa.ChunkedArray:
    """Return key, commit time and sequence number of all rows as one text."""
    both = pa.concat_tables([each.select([COMMIT_TIME, COMMIT_SEQNO]) for each in (before, after)])
    texts = (pc.fill_null(both.column(name), "") for name in (COMMIT_TIME, COMMIT_SEQNO))
    numbers = pa.chunked_array([pa.array(codes).cast(pa.string())], pa.string())
    return pc.binary_join_element_wise(numbers, *texts, "/")


def _numbered(codes: Positions) -> Positions:
    """Return a code for each row that differs for rows with one code, by their turn."""
    return (turns_of(codes) << 40) | codes


def _join(left: Positions, right: Positions) -> tuple[Positions, Positions]:
    _, first, second = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return first.astype(np.int64), second.astype(np.int64)


def _rest(count: int, taken: Positions) -> Positions:
    left = np.ones(count, dtype=bool)
    left[taken] = False
    return np.flatnonzero(left)


def _same_write(before: pa.Table, after: pa.Table, old: Positions, now: Positions) -> npt.NDArray[np.bool_]:
    same = np.ones(len(old), dtype=bool)
    for name in (COMMIT_TIME, COMMIT_SEQNO):
        one, other = before.column(name).take(pa.array(old)), after.column(name).take(pa.array(now))
        same &= np.asarray(pc.fill_null(pc.equal(one, other), False)).astype(bool)
    return same


Positions = npt.NDArray[np.int64]
Touched = tuple[pa.Table, pa.Table, Matched]
_NONE: Positions = np.empty(0, np.int64)


ChangeFile = tuple[str, int]
"""Path of a change data file, and its bytes by the commit that wrote it."""


def touched_rows(
    reads: tuple[ReadContext, ReadContext],
    before: FileSlice,
    after: FileSlice,
    *,
    trusts_writes: bool,
    with_keys: bool = True,
) -> Touched | None:
    """Return rows of a file group before and after some writes without those they left alone, and what became of which.

    Args:
        reads: How the slices of before and after are read, of a table with meta columns.
        trusts_writes: The commit time of a row is that of the write that made it.
        with_keys: The caller needs the keys of the rows; else they are read only where they are compared.

    Returns:
        None where all rows have to be compared. Meta columns of the rows are null unless `changed_rows` needs them.
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
    removed, back = np.setdiff1d(masked[1], masked[0]), np.setdiff1d(masked[0], masked[1])
    assert before.base_file is not None, "both slices have the same base file"
    with opened_base_file(reads[0], before.base_file) as base:
        only = [base.take(places, reads[0].schema.names) for places in (removed, back)]
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
    stored = old.take(places[within], [RECORD_KEY]).column(RECORD_KEY)
    same = pc.fill_null(pc.equal(stored, after.column(RECORD_KEY).take(pa.array(within))), False)
    kept = within[np.asarray(same).astype(bool)]
    if len(kept) == old.count - stayed and _are_in_place(old, new, np.flatnonzero(is_known[codes])):
        # updates are where the row of before was, and none is missing
        keys = stored.filter(same)
        return _updated((old, places[kept], keys), (after, kept), _NONE)
    return _looked_up((old, new), after, stayed)


def _are_in_place(old: BaseFileRows, new: BaseFileRows, stayed: Positions) -> bool:
    """Return whether no row before the last unchanged one is missing; unchanged rows keep their order."""
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
    removed, there = _NONE, new.read([RECORD_KEY]).column(RECORD_KEY)
    if np.count_nonzero(_is_in(there, written)) != len(written):
        # a written row is one more with its key, and does not show what became of the other
        return None
    if old.count - len(places) != stayed:
        removed = np.flatnonzero(~_is_in(keys, there))
        if old.count - len(places) - len(removed) != stayed:
            return None
    taken = np.sort(np.concatenate([places, removed]))
    return _updated((old, taken, keys.take(pa.array(taken))), (after, now), np.searchsorted(taken, removed))


def _updated(
    before: tuple[BaseFileRows, Positions, pa.ChunkedArray],
    after: tuple[pa.Table, Positions],
    removed: Positions,
) -> Touched:
    """Return the rows before and after; ``before`` has places that were updated or deleted, ascending, ``after`` those written."""
    file, taken, keys = before
    rows, now = after
    images = _images(file, rows.schema, taken, {RECORD_KEY: keys})
    old = np.setdiff1d(np.arange(len(taken)), removed, assume_unique=True)
    fresh = np.setdiff1d(np.arange(rows.num_rows), now, assume_unique=True)
    return images, rows, without_equal(images, rows, Matched(removed, fresh, old, now))


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


def rows_of_change_files(
    reads: tuple[ReadContext, ReadContext],
    files: tuple[ChangeFile, ...],
    slices: tuple[FileSlice | None, FileSlice | None],
    place: tuple[str, str],
) -> tuple[pa.Table, pa.Table, Matched]:
    """Return the rows before and after that a commit's change data files have, and what became of which.

    Args:
        slices: The slices before and after, opened only for rows that the files lack.
        place: Partition path, and instant of the commit.

    Raises:
        CorruptTableError: A file is damaged, or names a key that its slice lacks.
        TimelineError: A file was deleted since it was listed.
    """
    records = [each for path, size in files for each in _records(reads[1], path, size)]
    if not records:
        nothing = reads[1].schema.empty_table()
        return nothing, nothing, _matched(0, 0, 0)
    rows = pa.concat_tables(records)
    updates, deletes, inserts = (
        rows.filter(pc.equal(rows.column(OPERATION), kind.value))
        for kind in (Change.UPDATE, Change.DELETE, Change.INSERT)
    )
    before = _rows(reads[0], pa.concat_tables([updates, deletes]), BEFORE, slices[0], place)
    after = _rows(reads[1], pa.concat_tables([updates, inserts]), AFTER, slices[1], place)
    return before, after, _matched(updates.num_rows, deletes.num_rows, inserts.num_rows)


def _records(read: ReadContext, path: str, size: int) -> list[pa.Table]:
    try:
        data = read.storage.read(path)
    except FileNotFoundError as error:
        raise TimelineError(f"the change data file {path} has removed since the timeline was read") from error
    if len(data) < size:
        raise CorruptTableError(
            f"change data file {path!r} of {read.storage.base!r} has {len(data)} bytes, and its commit wrote {size}: it was cut "
            "short later. Restore the file from a copy, or read changes from a later commit on"
        )
    return list(read_change_records(data, path))


def _matched(updates: int, deletes: int, inserts: int) -> Matched:
    """Return row numbers; updates come first in both tables."""
    pairs = np.arange(updates, dtype=np.int64)
    removed, new = (updates + np.arange(count, dtype=np.int64) for count in (deletes, inserts))
    return Matched(removed, new, pairs, pairs)


def _rows(
    read: ReadContext, records: pa.Table, image: str, file_slice: FileSlice | None, place: tuple[str, str]
) -> pa.Table:
    if image not in records.column_names:
        return _stored_rows(read, records.column(KEY), file_slice)
    images = records.column(image)
    values = pa.table({field.name: pc.struct_field(images, field.name) for field in images.type})
    names = stored_names(read, values.schema, place[1], read.schema)
    rows = fit_columns(read, values, names, place[1], place[0], read.schema)
    keys = records.column(KEY) if KEY in records.column_names else made_keys(rows, read.config)
    for name, column in (
        (RECORD_KEY, keys),
        (PARTITION_PATH, pa.repeat(pa.scalar(place[0]), rows.num_rows)),
        (COMMIT_TIME, pa.repeat(pa.scalar(place[1]), rows.num_rows)),
    ):
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _stored_rows(read: ReadContext, keys: pa.ChunkedArray, file_slice: FileSlice | None) -> pa.Table:
    if not len(keys):
        return read.schema.empty_table()
    stored = read.schema.empty_table() if file_slice is None else read_slice(read, file_slice)
    places = pc.index_in(keys, value_set=stored.column(RECORD_KEY).combine_chunks())
    if places.null_count:
        lost = keys.filter(places.is_null())[0].as_py()
        name = "none" if file_slice is None else f"{file_slice.file_id} of {file_slice.base_instant}"
        raise CorruptTableError(
            f"change data names the record key {lost!r}, which its file slice ({name}) lacks"
        )
    return taken(stored, places)
