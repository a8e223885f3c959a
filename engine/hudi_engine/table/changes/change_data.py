"""What change data files tell of a file group in one commit, in place of a comparison of its slices.

They hold operations and keys, mostly also the row before and the row after; what they lack is taken from the slices.
"""

from __future__ import annotations

import numpy as np
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
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.record_keys import made_keys
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.merge.stored_columns import fit_columns, stored_names
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from hudi_engine.table.changes.compare import Matched

ChangeFile = tuple[str, int]
"""Path of a change data file, and its bytes by the commit that wrote it."""


def told_by_files(
    reads: tuple[ReadContext, ReadContext],
    files: tuple[ChangeFile, ...],
    slices: tuple[FileSlice | None, FileSlice | None],
    place: tuple[str, str],
) -> tuple[pa.Table, pa.Table, Matched]:
    """Return the rows before and after that a commit's change data tells, and what became of which.

    Args:
        reads: How the slices of before and after are read.
        files: The change data files of the file group.
        slices: Its slices before and after, opened only for rows that the files lack.
        place: Partition path, and instant of the commit.

    Raises:
        CorruptTableError: A file is damaged, or names a key that its slice lacks.
        TimelineError: A file has gone since it was listed.
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
        raise TimelineError(f"the change data file {path} has gone since the timeline was read") from error
    if len(data) < size:
        raise CorruptTableError(
            f"change data file {path!r} of {read.storage.base!r} has {len(data)} bytes, and its commit wrote {size}: it was cut "
            "short later. Restore the file from a copy, or read changes from a later commit on"
        )
    return list(read_change_records(data, path))


def _matched(updates: int, deletes: int, inserts: int) -> Matched:
    """Return row numbers; updates come first in both tables."""
    pairs = np.arange(updates, dtype=np.int64)
    gone, new = (updates + np.arange(count, dtype=np.int64) for count in (deletes, inserts))
    return Matched(gone, new, pairs, pairs)


def _rows(
    read: ReadContext, records: pa.Table, image: str, file_slice: FileSlice | None, place: tuple[str, str]
) -> pa.Table:
    if image not in records.column_names:
        return _looked_up(read, records.column(KEY), file_slice)
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


def _looked_up(read: ReadContext, keys: pa.ChunkedArray, file_slice: FileSlice | None) -> pa.Table:
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
