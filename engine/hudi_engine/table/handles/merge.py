"""Copy-on-write: a new base file is the old one with the batch's rows merged in."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.filegroup.base_file import BaseFile, base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import KeyFooter, key_footer
from hudi_engine.format.merge.base_reader import BaseFileRows, opened_base_file
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.progress import note_file
from hudi_engine.format.schema.meta_fields import FILE_NAME, RECORD_KEY
from hudi_engine.format.telemetry.figures import time_spent
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.base_file_writer import (
    BaseFileInfo,
    with_file_name,
    without_file_name,
    write_base_file,
)
from hudi_engine.table.handles.carried import Block, GroupRows, OldGroups, changed_blocks, write_carried_file
from hudi_engine.table.handles.change_data import ChangeImages
from hudi_engine.table.handles.create import stamp_rows
from hudi_engine.table.handles.examples import Examples
from hudi_engine.table.handles.updates import Collector, FileChanges, Updates, replace_columns
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask

BLOOM_OVERFILL = 1.3
"""A filter serves a rewritten file until it holds this many times the keys it was made for."""


_Part = TypeVar("_Part", pa.Table, GroupRows)


class _NothingChanged(Exception):  # noqa: N818 - no error: the file stays as it is
    """All rows of a file have been seen, and none is another."""


@dataclass
class _Merging:
    """A file while the batch's rows are merged into it.

    Args:
        bloom: Filter of the old file that gets the new keys; None when one is rebuilt.
    """

    task: WriteTask
    partition: str
    changes: FileChanges
    name: str
    collectors: Sequence[Collector]
    bloom: BloomFilter | None
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    keys: list[pa.Array] = field(default_factory=list)

    @property
    def is_another(self) -> bool:
        """Whether the new file differs from the old one so far."""
        return bool(self.updated or self.deleted or self.inserted)

    def blocks(self, old: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows of the new file block by block; new rows come last and all get the new file's name."""
        for block in changed_blocks(self, old, self.name):
            yield self._noted(block.rows)
        for new in self._inserted():
            yield self._noted(new)
        if not self.is_another:
            raise _NothingChanged

    def groups(self, old: OldGroups) -> Iterator[GroupRows]:
        """Yield the rows of the new file by row group of the old one, new rows behind them."""
        has_new = self.changes.inserts is not None and self.changes.inserts.num_rows > 0
        for group in old.followed(self, self.name, grows=has_new):
            self._noted(group.rows)
            yield group
        for new in self._inserted():
            yield GroupRows(self._noted(new))
        if not self.is_another:
            raise _NothingChanged

    def touches(self, first_row: int, rows: int) -> bool:
        """Return whether some rows of the file may become others."""
        return self._updates.touches(first_row, rows)

    def apply(self, block: pa.Table, first_row: int) -> Block:
        """Return what becomes of some rows of the file."""
        part = self._updates.apply(block, first_row)
        self.updated += part.updated
        self.deleted += part.deleted
        return part

    @cached_property
    def _updates(self) -> Updates:
        return Updates.of(self.task, self.partition, self.changes, self.collectors)

    def keep_keys(self, path: str) -> None:
        """Keep the keys of the new file for later look-ups."""
        if self.task.keep_keys is not None:
            self.task.keep_keys(self.task.context.storage, path, pa.chunked_array(self.keys, pa.string()))

    def _noted(self, rows: pa.Table) -> pa.Table:
        if self.task.keep_keys is not None:
            self.keys.extend(rows.column(RECORD_KEY).chunks)
        return rows

    def _inserted(self) -> Iterator[pa.Table]:
        if self.changes.inserts is not None and self.changes.inserts.num_rows:
            yield with_file_name(self._new_rows(self.changes.inserts), self.name)

    def note_inserts(self) -> None:
        """Count new rows, and note them where changes are collected."""
        for _ in self._inserted():
            pass

    def begin(self) -> str:
        """Announce the new file, before anything of it is there, and return its path."""
        self.task.announce(self.partition, self.name, "MERGE")
        return f"{self.partition}/{self.name}" if self.partition else self.name

    def _new_rows(self, inserts: pa.Table) -> pa.Table:
        self.inserted = inserts.num_rows
        new = stamp_rows(self.task, self.partition, inserts, self.name)
        for each in self.collectors:
            each.collect("insert", None, new)
        if self.bloom is not None:
            self.bloom.add(new.column(RECORD_KEY))
        return new


def merge_file(task: WriteTask, file_slice: FileSlice, changes: FileChanges) -> WriteStat | None:
    """Write the next base file of a file group; returns None, and writes none, when no row changes and none is added.

    Args:
        file_slice: The group's latest slice; its logs, if any, are merged in as well.

    Raises:
        CorruptTableError: A file of the slice is damaged, or its logs were not merged twice into the same rows.
    """
    if task.context.storage.is_planned:
        task, changes = _compared_alone(task, changes)
    context, began = task.context, time.perf_counter()
    base = file_slice.base_file
    name = base_file_name(file_slice.file_id, task.write_token, context.instant)
    images = Examples.of(context) or ChangeImages.of(task)
    content = task.content_change()
    collectors = [each for each in (images, content) if each is not None]
    with ExitStack() as opened:
        file, bloom, rows = None, None, None
        if base is not None and not file_slice.log_files:
            file = opened.enter_context(opened_base_file(context.read, base))
            bloom, rows = _reusable_bloom(key_footer(file.texts, file.count, base.path), changes)
        merging = _Merging(task, file_slice.partition, changes, name, collectors, bloom)
        try:
            if context.storage.is_planned:
                info = _planned(merging, file_slice, file)
            elif base is not None and file is not None:
                info = _follow(merging, base, file, rows)
            else:
                columns = without_file_name(context.read.schema)
                stored = read_slice(context.read, file_slice, columns=columns)
                changes.check_places(file_slice, stored)
                if content is not None and file_slice.log_files:
                    # receipts are of base files, and the new one has what the logs did
                    content.add(stored)
                    content.remove(read_slice(context.read, file_slice.without_logs, columns=columns))
                info = _write(merging, [stored], rows)
        except _NothingChanged:
            return None
    size, change_data = info.size, None
    if context.storage.is_planned:
        size = 0 if base is None else base.size
    else:
        merging.keep_keys(info.path)
    note_file(context.storage.base, info.rows)
    if isinstance(images, ChangeImages):
        change_data = images.write(task, file_slice.partition, file_slice.file_id)
    stat = WriteStat(
        file_id=file_slice.file_id,
        path=info.path,
        cdc_stats=change_data,
        prev_commit=base.instant if base is not None else file_slice.base_instant,
        num_writes=info.rows,
        num_update_writes=merging.updated,
        num_inserts=merging.inserted,
        num_deletes=merging.deleted,
        total_write_bytes=size,
        file_size_in_bytes=size,
        partition_path=file_slice.partition,
        runtime_stats=time_spent("totalUpsertTime", began),
        content=None if content is None else (content.rows, content.hash),
    )
    if isinstance(images, Examples):
        images.note(stat)
    return stat


def _compared_alone(task: WriteTask, changes: FileChanges) -> tuple[WriteTask, FileChanges]:
    """Return a planned merge with the columns that decide which row wins; with all of them where rows are shown or composed."""
    context = task.context
    if context.examples or merge_rule(context.config).sees_whole_rows:
        return task, changes
    fields = [name for name in context.config.ordering_fields if name in context.schema.names]
    names = [RECORD_KEY, FILE_NAME, *fields]
    task = replace(
        task, context=replace(context, schema=pa.schema([context.schema.field(each) for each in names]))
    )
    updates = changes.updates
    if updates is not None:
        updates = updates.select([name for name in (RECORD_KEY, *fields) if name in updates.column_names])
    return task, replace(changes, updates=updates)


def _planned(merging: _Merging, file_slice: FileSlice, file: BaseFileRows | None) -> BaseFileInfo:
    """Merge the rows that the batch touches, and write no file of them; raises _NothingChanged as the writing of one does."""
    context = merging.task.context
    columns, end = without_file_name(context.schema), 0
    if file is None:
        stored = read_slice(context.read, file_slice, columns=columns)
        merging.changes.check_places(file_slice, stored)
        merging.apply(stored, 0)
        end = stored.num_rows
    else:
        for number in range(file.footer.num_row_groups):
            start, end = end, end + file.footer.row_group(number).num_rows
            for block in file.blocks(columns, number) if merging.touches(start, end - start) else ():
                merging.apply(block, start)
                start += block.num_rows
    merging.note_inserts()
    if not merging.is_another:
        raise _NothingChanged
    return BaseFileInfo(merging.begin(), 0, end - merging.deleted + merging.inserted, None, None)


def _follow(merging: _Merging, base: BaseFile, file: BaseFileRows, rows: int | None) -> BaseFileInfo:
    """Write the file that follows a base file without logs, from what may be carried and what is new."""
    context = merging.task.context
    old = OldGroups.of(context.read, file, base, context.base_files)
    if old is None:
        return _write(merging, file.blocks(without_file_name(context.read.schema)), rows)
    groups = merging.groups(old)
    begun = _until_changed(groups, merging)
    return write_carried_file(
        context.storage,
        merging.begin(),
        old,
        chain(begun, groups),
        avro_schema_with_meta=context.avro_schema,
        before_publish=merging.task.publish_guard(),
        reuse_bloom=merging.bloom,
    )


def _write(merging: _Merging, old: Iterable[pa.Table], rows: int | None) -> BaseFileInfo:
    """Write the file that follows some rows, all of it again."""
    context = merging.task.context
    blocks = merging.blocks(old)
    begun = _until_changed(blocks, merging)
    return write_base_file(
        context.storage,
        merging.begin(),
        chain(begun, blocks),
        avro_schema_with_meta=context.avro_schema,
        options=context.base_files.for_blocks(begun[0], rows),
        before_publish=merging.task.publish_guard(),
        reuse_bloom=merging.bloom,
    )


def _until_changed(parts: Iterator[_Part], merging: _Merging) -> list[_Part]:
    """Return the first parts of a file, up to one with a change, so that an unchanged file is found before anything is written."""
    begun: list[_Part] = []
    held = 0
    for part in parts:
        begun.append(part)
        held += part.nbytes
        if merging.is_another or held > merging.task.context.base_files.row_group_bytes:
            break
    return begun


def _reusable_bloom(footer: KeyFooter, changes: FileChanges) -> tuple[BloomFilter | None, int]:
    """Return the old file's filter, None when it would be overfull, and how many rows the new file has at most."""
    rows = footer.rows + (changes.inserts.num_rows if changes.inserts is not None else 0)
    bloom = footer.bloom
    if bloom is None or rows > BLOOM_OVERFILL * bloom.row_capacity * bloom.row_count:
        return None, rows
    return bloom, rows


def compose_partial(
    context: WriteContext,
    file_slice: FileSlice,
    rows: pa.Table,
    update_columns: tuple[str, ...],
    columns: Sequence[str] | None = None,
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Return full rows for a log: the stored row with only ``update_columns`` taken from ``rows``; a new row stays as it is.

    Args:
        columns: The only columns that are wanted of stored rows; None for all.

    Returns:
        The rows, and which of them are stored.
    """
    stored = read_slice(context.read, file_slice, columns=columns)
    places = pc.index_in(rows.column(RECORD_KEY), value_set=stored.column(RECORD_KEY).combine_chunks())
    known = np.asarray(places.is_valid()).astype(bool)
    there = rows if known.all() else rows.filter(pa.array(known))
    composed = replace_columns(there, taken(stored, places.drop_null()), update_columns)
    if known.all():
        return composed, known
    order = np.where(known, np.cumsum(known) - 1, there.num_rows + np.arange(rows.num_rows))
    return taken(pa.concat_tables([composed, rows]), order), known
