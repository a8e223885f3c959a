"""Copy-on-write: a new base file is the old one with the batch's rows merged in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.config.table_config import TableConfig
from hudi_engine.filegroup.base_file import base_file_name
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.handles.base_file_writer import read_key_footer, with_file_name, write_base_file
from hudi_engine.handles.change_data import ChangeImages
from hudi_engine.handles.create import stamp_rows
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.handles.write_task import WriteTask
from hudi_engine.index.filters.bloom import BloomFilter
from hudi_engine.merge.base_reader import read_base_blocks
from hudi_engine.merge.merge_rows import merge_rows
from hudi_engine.merge.slice_reader import read_slice
from hudi_engine.progress import note_file
from hudi_engine.schema.coded import coded_like, decoded
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


class _NothingChanged(Exception):  # noqa: N818 - no error: the file stays as it is
    """All rows of a file have been seen, and none is another."""


@dataclass
class _Merging:
    """A file while the batch's rows are merged into it, and what has become of its rows so far.

    Args:
        task: The running write task.
        partition: Partition path of the file.
        changes: What happens to it.
        name: Name of the new file.
        images: Collects changes for a changelog, None where there is none.
        bloom: Filter of the old file that gets the new keys; None when one is made anew.
    """

    task: WriteTask
    partition: str
    changes: FileChanges
    name: str
    images: ChangeImages | None
    bloom: BloomFilter | None
    updated: int = 0
    deleted: int = 0
    inserted: int = 0

    @property
    def is_another(self) -> bool:
        """Whether the new file differs from the old one so far."""
        return bool(self.updated or self.deleted or self.inserted)

    def blocks(self, old: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows of the new file block by block; new rows come last and all get the new file's name.

        Raises:
            _NothingChanged: after the last block, when all rows were as they had been.
        """
        updates = _Updates.of(self.task, self.partition, self.changes, self.name)
        row = 0
        for block in old:
            part, updated, deleted = updates.apply(block, row, self.images)
            row += block.num_rows
            self.updated += updated
            self.deleted += deleted
            yield with_file_name(part, self.name)
        if self.changes.inserts is not None and self.changes.inserts.num_rows:
            yield with_file_name(self._new_rows(self.changes.inserts), self.name)
        if not self.is_another:
            raise _NothingChanged

    def _new_rows(self, inserts: pa.Table) -> pa.Table:
        self.inserted = inserts.num_rows
        new = stamp_rows(self.task, self.partition, inserts, self.name)
        if self.images is not None:
            self.images.inserted(new)
        if self.bloom is not None:
            self.bloom.add(new.column(RECORD_KEY))
        return new


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
    bloom, rows = _reusable_bloom(context, file_slice, changes)
    merging = _Merging(task, file_slice.partition, changes, name, images, bloom)
    blocks = merging.blocks(old)
    begun = _until_changed(blocks, merging, context.base_files.row_group_bytes)
    if begun is None:
        return None
    task.announce(file_slice.partition, name, "MERGE")
    path = f"{file_slice.partition}/{name}" if file_slice.partition else name
    try:
        info = write_base_file(
            context.storage,
            path,
            chain(begun, blocks),
            avro_schema_with_meta=context.avro_schema,
            options=context.base_files.for_blocks(begun[0], rows),
            before_publish=task.publish_guard(),
            reuse_bloom=bloom,
        )
    except _NothingChanged:
        return None
    note_file(context.storage.base, info.rows)
    return WriteStat(
        file_id=file_slice.file_id,
        path=path,
        cdc_stats=None if images is None else images.write(task, file_slice.partition, file_slice.file_id),
        prev_commit=base.instant if base is not None else file_slice.base_instant,
        num_writes=info.rows,
        num_update_writes=merging.updated,
        num_inserts=merging.inserted,
        num_deletes=merging.deleted,
        total_write_bytes=info.size,
        file_size_in_bytes=info.size,
        partition_path=file_slice.partition,
    )


def _until_changed(blocks: Iterator[pa.Table], merging: _Merging, most_bytes: int) -> list[pa.Table] | None:
    """Return the first blocks, up to one with a change, or to so many bytes; None where no row of the file changes.

    A file that stays as it is, is found so before anything is written of it, but for a large one that has seen no change yet.
    """
    begun: list[pa.Table] = []
    held = 0
    try:
        for block in blocks:
            begun.append(block)
            held += block.nbytes
            if merging.is_another or held > most_bytes:
                break
    except _NothingChanged:
        return None
    return begun


def _reusable_bloom(
    context: WriteContext, file_slice: FileSlice, changes: FileChanges
) -> tuple[BloomFilter | None, int | None]:
    """Return the old file's filter, to which new keys are to be added, and how many rows the new file has at most.

    The filter may admit keys that have gone; it is made anew (None) when it would be overfull.
    """
    if file_slice.base_file is None or file_slice.log_files:
        return None, None
    footer = read_key_footer(context.storage, file_slice.base_file.path)
    rows = footer.rows + (changes.inserts.num_rows if changes.inserts is not None else 0)
    bloom = footer.bloom
    if bloom is None or rows > BLOOM_OVERFILL * bloom.row_capacity * bloom.row_count:
        return None, rows
    return bloom, rows


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
                images.deleted(decoded(block.take(pa.array(places))))
            return block.filter(pa.array(keep)), 0, len(places)
        incoming = self.incoming.slice(low, high - low)
        before = decoded(block.take(pa.array(places)))
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
    both = pa.concat_tables([old, coded_like(new, old.schema)]).combine_chunks()
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
