"""Copy-on-write: a new base file is the old one with the batch's rows merged in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.config.table_config import TableConfig
from hudi_engine.filegroup.base_file import base_file_name
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.handles.base_file_writer import constant, read_key_footer, write_base_file
from hudi_engine.handles.change_data import ChangeImages
from hudi_engine.handles.create import stamp_rows
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.handles.write_task import WriteTask
from hudi_engine.index.filters.bloom import BloomFilter
from hudi_engine.merge.base_reader import read_base_blocks
from hudi_engine.merge.merge_rows import merge_rows
from hudi_engine.merge.slice_reader import read_slice
from hudi_engine.progress import note_file
from hudi_engine.schema.meta_fields import FILE_NAME, META_FIELDS, RECORD_KEY
from hudi_engine.timeline.commit_metadata import WriteStat

BLOOM_OVERFILL = 1.3
"""A filter serves a rewritten file until it holds this many times the keys it was made for."""


@dataclass(frozen=True)
class FileChanges:
    """What a batch does to one file.

    Args:
        batch_rows: For each row of the base file the number of its row in ``updates``, null where untouched; None when
            the file only takes new rows.
        updates: Rows with key and data columns that ``batch_rows`` points into.
        deletes: Which of ``updates`` delete, None for none.
        delete_always: Deletes win whatever their ordering value (the delete operation).
        inserts: Rows with new keys that are packed into this file.
        update_columns: Only these columns of a touched row are replaced; None for all.
    """

    batch_rows: pa.Array | None
    updates: pa.Table | None
    deletes: pa.Array | None = None
    delete_always: bool = False
    inserts: pa.Table | None = None
    update_columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Merged:
    table: pa.Table
    updated: int
    deleted: int
    inserted: int


def merge_file(task: WriteTask, file_slice: FileSlice, changes: FileChanges) -> WriteStat | None:
    """Write the next base file of a file group.

    Args:
        task: The running write task.
        file_slice: The group's latest slice; its logs, if any, are merged in as well.
        changes: What to do to it.

    Returns:
        The write stat, or None when no row of the file changes and none is added (then no file is written).
    """
    context = task.context
    base = file_slice.base_file
    name = base_file_name(file_slice.file_id, task.write_token, context.instant)
    # Every row gets the new file's name, so the old one need not be read.
    columns = [each for each in context.read.schema.names if each != FILE_NAME]
    old = (
        read_base_blocks(context.read, base, columns)
        if base is not None and not file_slice.log_files
        else [read_slice(context.read, file_slice, columns=columns)]
    )
    images = ChangeImages.of(task)
    merged = _merge(task, file_slice.partition, old, changes, name, images)
    if merged.updated == merged.deleted == merged.inserted == 0:
        return None
    task.announce(file_slice.partition, name, "MERGE")
    path = f"{file_slice.partition}/{name}" if file_slice.partition else name
    info = write_base_file(
        context.storage,
        path,
        merged.table,
        avro_schema_with_meta=context.avro_schema,
        options=context.base_files,
        before_publish=task.publish_guard(),
        reuse_bloom=_reusable_bloom(task, file_slice, merged),
    )
    note_file(context.storage.base, merged.table.num_rows)
    return WriteStat(
        file_id=file_slice.file_id,
        path=path,
        cdc_stats=None if images is None else images.write(task, file_slice.partition, file_slice.file_id),
        prev_commit=base.instant if base is not None else file_slice.base_instant,
        num_writes=merged.table.num_rows,
        num_update_writes=merged.updated,
        num_inserts=merged.inserted,
        num_deletes=merged.deleted,
        total_write_bytes=info.size,
        file_size_in_bytes=info.size,
        partition_path=file_slice.partition,
    )


def _reusable_bloom(task: WriteTask, file_slice: FileSlice, merged: _Merged) -> BloomFilter | None:
    """Return the old file's filter with the new keys added: it may admit keys that have gone, and is made anew when overfull."""
    if file_slice.base_file is None or file_slice.log_files:
        return None
    bloom = read_key_footer(task.context.storage, file_slice.base_file.path).bloom
    rows = merged.table.num_rows
    if bloom is None or rows > BLOOM_OVERFILL * bloom.row_capacity * bloom.row_count:
        return None
    if merged.inserted:
        bloom.add(merged.table.column(RECORD_KEY).slice(rows - merged.inserted))
    return bloom


def _merge(
    task: WriteTask,
    partition: str,
    old: Iterable[pa.Table],
    changes: FileChanges,
    name: str,
    images: ChangeImages | None,
) -> _Merged:
    """Apply changes to a base file block by block; new rows come last and all get the new file's name."""
    updates = _Updates.of(task, partition, changes, name)
    parts: list[pa.Table] = []
    row = updated = deleted = 0
    for block in old:
        part, block_updated, block_deleted = updates.apply(block, row, images)
        parts.append(part)
        row += block.num_rows
        updated += block_updated
        deleted += block_deleted
    inserted = 0
    if changes.inserts is not None and changes.inserts.num_rows:
        inserted = changes.inserts.num_rows
        new = stamp_rows(task, partition, changes.inserts, name)
        parts.append(new.drop_columns([FILE_NAME]))
        if images is not None:
            images.inserted(new)
    rows = pa.concat_tables(parts)
    place = META_FIELDS.index(FILE_NAME)
    return _Merged(
        rows.add_column(place, FILE_NAME, constant(name, rows.num_rows)), updated, deleted, inserted
    )


@dataclass(frozen=True)
class _Updates:
    """The rows that meet rows of the file, in the file's order.

    Args:
        touched: Row numbers of the file, ascending.
        incoming: The row for each of them, ready for the file but without its name; None where all are deleted.
        deletes: Which of them delete, None for none.
        changes: What they are part of.
        config: The table's settings.
    """

    touched: npt.NDArray[np.int64]
    incoming: pa.Table | None
    deletes: pa.BooleanArray | None
    changes: FileChanges
    config: TableConfig

    @classmethod
    def of(cls, task: WriteTask, partition: str, changes: FileChanges, name: str) -> _Updates:
        config = task.context.config
        if changes.batch_rows is None or changes.updates is None:
            return cls(np.empty(0, dtype=np.int64), None, None, changes, config)
        touched = np.flatnonzero(np.asarray(changes.batch_rows.is_valid()))
        if changes.delete_always or len(touched) == 0:
            return cls(touched, None, None, changes, config)
        picks = changes.batch_rows.drop_null()
        deletes = None if changes.deletes is None else changes.deletes.take(picks)
        incoming = stamp_rows(task, partition, changes.updates.take(picks), name).drop_columns([FILE_NAME])
        return cls(touched, incoming, deletes, changes, config)

    def apply(
        self, block: pa.Table, first_row: int, images: ChangeImages | None
    ) -> tuple[pa.Table, int, int]:
        """Return a block of the file after the updates, and how many of its rows were updated and deleted."""
        low, high = np.searchsorted(self.touched, [first_row, first_row + block.num_rows])
        if low == high:
            return block, 0, 0
        places = self.touched[low:high] - first_row
        if self.incoming is None:
            keep = np.ones(block.num_rows, dtype=bool)
            keep[places] = False
            if images is not None:
                images.deleted(block.take(pa.array(places)))
            return block.filter(pa.array(keep)), 0, len(places)
        incoming = self.incoming.slice(low, high - low)
        before = block.take(pa.array(places))
        if self.changes.update_columns is not None:
            incoming = replace_columns(incoming, before, self.changes.update_columns)
        deletes = None if self.deletes is None else self.deletes.slice(low, high - low)
        outcome = merge_rows(before, incoming, self.config, deletes)
        changed = np.asarray(pc.or_(outcome.changed, outcome.deleted))
        gone = np.asarray(outcome.deleted)
        if not changed.any():
            return block, 0, 0
        if images is not None:
            kept = pa.array(changed)
            images.changed(before.filter(kept), outcome.rows.filter(kept), gone[changed])
        merged = _splice(block, outcome.rows, places, changed, gone)
        return merged, int((changed & ~gone).sum()), int(gone.sum())


def _splice(
    old: pa.Table, new: pa.Table, touched: npt.NDArray[Any], changed: npt.NDArray[Any], gone: npt.NDArray[Any]
) -> pa.Table:
    """Return old rows with ``new`` in the places of ``touched``; one take over both, order kept."""
    order: npt.NDArray[np.int64] = np.arange(old.num_rows, dtype=np.int64)
    replaced = changed & ~gone
    order[touched[replaced]] = old.num_rows + np.flatnonzero(replaced)
    if gone.any():
        keep = np.ones(old.num_rows, dtype=bool)
        keep[touched[gone]] = False
        order = order[keep]
    both = pa.concat_tables([old, new.select(old.column_names).cast(old.schema)]).combine_chunks()
    return both.take(pa.array(order))


def compose_partial(
    context: WriteContext, file_slice: FileSlice, rows: pa.Table, update_columns: tuple[str, ...]
) -> pa.Table:
    """Return full rows for a log: the stored row with only ``update_columns`` taken from ``rows``; a new row stays as it is."""
    stored = read_slice(context.read, file_slice)
    places = pc.index_in(rows.column(RECORD_KEY), value_set=stored.column(RECORD_KEY).combine_chunks())
    composed = replace_columns(rows, stored.take(places), update_columns)
    new = np.asarray(places.is_null()).astype(bool)
    if not new.any():
        return composed
    order = np.arange(rows.num_rows) + np.where(new, rows.num_rows, 0)
    return pa.concat_tables([composed, rows]).take(pa.array(order))


def replace_columns(incoming: pa.Table, before: pa.Table, update_columns: tuple[str, ...]) -> pa.Table:
    """Return the stored rows ``before`` with only ``update_columns`` taken from ``incoming``; meta columns are incoming's."""
    wanted = {name.lower() for name in update_columns}
    for number, name in enumerate(incoming.column_names):
        if name not in META_FIELDS and name in before.column_names and name.lower() not in wanted:
            incoming = incoming.set_column(number, incoming.schema.field(number), before.column(name))
    return incoming
