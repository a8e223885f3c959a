"""Compacting one file group: base file and logs become a new base file.

The base file streams through batch by batch; in memory are the records of the logs, which spill beyond
``hoodie.memory.compaction.max.size``. Rows keep commit time and sequence number; only the file name in them
changes (Hudi table format, compaction).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import Written
from hudi_engine.format.filegroup.markers import write_marker
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import read_key_footer
from hudi_engine.format.merge.base_reader import opened_base_file
from hudi_engine.format.merge.log_scanner import LogScan, scan_slice
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import ReadContext, SliceDelta, resolve_delta
from hudi_engine.format.progress import note_file
from hudi_engine.format.schema.coded import decoded
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.active import check_inflight
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, WriteStat
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import (
    BaseFileInfo,
    with_file_name,
    without_file_name,
    write_base_file,
)
from hudi_engine.table.handles.carried import (
    Block,
    GroupRows,
    OldGroups,
    changed_blocks,
    with_rows_at,
    write_carried_file,
)
from hudi_engine.table.handles.write_task import new_attempt
from hudi_engine.table.services.compaction.operation import CompactionOperation

_BLOCK_ROWS = 131_072


@dataclass(frozen=True)
class CompactionContext:
    """The fixed facts of one compaction; picklable.

    Args:
        read: How slices are read, with the memory limit of compactions.
        avro_schema: The table's Avro record with the meta fields.
        written: What completed commits wrote to the logs, by path.
    """

    instant: str
    read: ReadContext
    avro_schema: dict[str, object]
    base_files: BaseFileOptions
    written: Mapping[str, tuple[Written, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Changes:
    """How many rows of the base file the logs replace, delete and add."""

    updated: int
    deleted: int
    inserted: int


def compact_file_group(context: CompactionContext, operation: CompactionOperation) -> WriteStat:
    """Write the new base file of one file group.

    Returns:
        The write stat for the commit.
    """
    storage = context.read.storage
    file_slice = operation.file_slice(_sizes(context, operation), context.written)
    started = time.monotonic()
    delta, scan = _delta(context, file_slice)
    changes = _count(delta)
    scanned = time.monotonic()
    # A token that no other attempt has: tasks of a killed run may still be writing their files.
    name = base_file_name(operation.file_id, f"0-0-{new_attempt()}", context.instant)
    io_type = "CREATE" if file_slice.base_file is None else "MERGE"
    write_marker(storage, context.instant, operation.partition, name, io_type)
    bloom = None if changes.inserted else _old_bloom(context, file_slice)
    info = _write(context, file_slice, delta, name, bloom)
    note_file(storage.base, info.rows)
    times = _milliseconds(started, scanned), _milliseconds(scanned, time.monotonic())
    return _stat(file_slice, info.path, (info.rows, info.size), changes, scan, times)


def _delta(context: CompactionContext, file_slice: FileSlice) -> tuple[SliceDelta, LogScan]:
    """Return what the logs do, and what was found in them for the commit; the logs' bytes and records are let go."""
    delta = resolve_delta(context.read, file_slice)
    scan = delta.logs.scan if delta.logs is not None else scan_slice(context.read, file_slice)
    return replace(delta, logs=None), replace(scan, blocks=())


def _sizes(context: CompactionContext, operation: CompactionOperation) -> dict[str, int]:
    sizes = {}
    for name in sorted(operation.names):
        status = context.read.storage.stat(join(operation.partition, name))
        if status is None:
            raise CorruptTableError(
                f"compaction {context.instant} of {context.read.storage.base!r} needs {name!r} in partition "
                f"{operation.partition!r}, which is missing. Restore the file, or restore the table to a "
                "savepoint"
            )
        sizes[name] = status.size
    return sizes


def _count(delta: SliceDelta) -> _Changes:
    replacing = delta.replacing or 0
    return _Changes(replacing, len(delta.masked_positions) - replacing, delta.live.num_rows - replacing)


class _Logs:
    """What the logs do to the rows of the base file; what they replace stays in its place."""

    def __init__(self, delta: SliceDelta, columns: list[str]) -> None:
        self._masked = delta.masked_positions.to_numpy()
        self._places = self._masked[:0] if delta.places is None else delta.places.to_numpy()
        live = delta.live.select(columns)
        self._instead, self.new = live.slice(0, len(self._places)), live.slice(len(self._places))

    def touches(self, first_row: int, rows: int) -> bool:
        """Return whether the logs change or delete one of some rows."""
        low, high = np.searchsorted(self._masked, (first_row, first_row + rows))
        return bool(low < high)

    def apply(self, block: pa.Table, first_row: int) -> Block:
        """Return what becomes of some rows of the base file."""
        last = first_row + block.num_rows
        low, high = np.searchsorted(self._masked, (first_row, last))
        if low == high:
            return Block.untouched(block)
        begin, end = np.searchsorted(self._places, (first_row, last))
        places = self._places[begin:end]
        gone = np.setdiff1d(self._masked[low:high], places, assume_unique=True) - first_row
        places = places - first_row
        before = decoded(taken(block, places))
        return with_rows_at(block, places, before, self._instead.slice(begin, end - begin), gone)


def _write(
    context: CompactionContext, file_slice: FileSlice, delta: SliceDelta, name: str, bloom: BloomFilter | None
) -> BaseFileInfo:
    """Write the new base file; all rows get its name, so the old one's is not read."""
    columns = without_file_name(context.read.schema)
    logs = _Logs(delta, columns)
    path, base = join(file_slice.partition, name), file_slice.base_file
    guard = partial(check_inflight, context.read.storage, context.read.config, context.instant, "compaction")
    with ExitStack() as opened:
        file = None if base is None else opened.enter_context(opened_base_file(context.read, base))
        old = (
            None
            if file is None or base is None
            else OldGroups.of(context.read, file, base, context.base_files)
        )
        new = with_file_name(logs.new, name)
        blocks = () if file is None else file.blocks(columns, rows=_BLOCK_ROWS)
        if old is not None:
            return write_carried_file(
                context.read.storage,
                path,
                old,
                chain(old.followed(logs, name, grows=new.num_rows > 0), [GroupRows(new)]),
                avro_schema_with_meta=context.avro_schema,
                before_publish=guard,
                reuse_bloom=bloom,
            )
        return write_base_file(
            context.read.storage,
            path,
            chain((block.rows for block in changed_blocks(logs, blocks, name)), [new]),
            avro_schema_with_meta=context.avro_schema,
            options=context.base_files,
            before_publish=guard,
            reuse_bloom=bloom,
        )


def _old_bloom(context: CompactionContext, file_slice: FileSlice) -> BloomFilter | None:
    """Return the filter of the old base file, which holds every key of the new one when no key was added."""
    if file_slice.base_file is None or not context.base_files.bloom_enabled:
        return None
    return read_key_footer(context.read.storage, file_slice.base_file.path).bloom


def _stat(
    file_slice: FileSlice,
    path: str,
    written: tuple[int, int],
    changes: _Changes,
    scan: LogScan,
    times: tuple[int, int],
) -> WriteStat:
    """Return what the commit contains of a merged slice, in the fields that Hudi's compaction fills."""
    rows, size = written
    base = file_slice.base_file
    # Keys that the logs change; Hudi counts records of the same key in several blocks several times.
    changed = changes.updated + changes.deleted + changes.inserted
    return WriteStat(
        file_id=file_slice.file_id,
        path=path,
        prev_commit=NO_PREVIOUS_COMMIT if base is None else base.instant,
        num_writes=rows,
        num_deletes=changes.deleted,
        num_update_writes=changes.updated,
        num_inserts=changes.inserted,
        total_write_bytes=size,
        partition_path=file_slice.partition,
        total_log_records=changed,
        total_log_files_compacted=len(file_slice.log_files),
        total_log_size_compacted=sum(log.size for log in file_slice.log_files),
        total_updated_records_compacted=changed,
        total_log_blocks=scan.total_blocks,
        total_corrupt_log_block=scan.corrupt_blocks,
        total_rollback_blocks=scan.rollback_blocks,
        file_size_in_bytes=size,
        runtime_stats={"totalScanTime": times[0], "totalUpsertTime": times[1], "totalCreateTime": 0},
    )


def _milliseconds(start: float, end: float) -> int:
    return int((end - start) * 1000)
