"""Compacting one file group: base file and logs become a new base file.

The base file streams through batch by batch; in memory are the records of the logs, which spill beyond
``hoodie.memory.compaction.max.size``. Rows keep commit time and sequence number; only the file name in them
changes (Hudi table format, compaction).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.filegroup.base_file import base_file_name
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.filegroup.markers import write_marker
from hudi_engine.handles.base_file_options import BaseFileOptions
from hudi_engine.handles.base_file_writer import read_key_footer, with_file_name, write_base_file
from hudi_engine.index.filters.bloom import BloomFilter
from hudi_engine.merge.base_reader import read_base_blocks
from hudi_engine.merge.log_scanner import LogScan, scan_slice
from hudi_engine.merge.slice_reader import ReadContext, SliceDelta, resolve_delta
from hudi_engine.progress import note_file
from hudi_engine.schema.meta_fields import FILE_NAME
from hudi_engine.services.compaction.operation import CompactionOperation
from hudi_engine.storage.paths import join
from hudi_engine.timeline.active import check_inflight
from hudi_engine.timeline.commit_metadata import NO_PREVIOUS_COMMIT, WriteStat

_BLOCK_ROWS = 131_072


@dataclass(frozen=True)
class CompactionContext:
    """The fixed facts of one compaction; picklable.

    Args:
        instant: Its instant.
        read: How slices are read, with the memory limit of compactions.
        avro_schema: The table's Avro record with the meta fields.
        base_files: Layout of the new base files.
    """

    instant: str
    read: ReadContext
    avro_schema: dict[str, object]
    base_files: BaseFileOptions


@dataclass(frozen=True)
class _Changes:
    """How many rows of the base file the logs replace, delete and add."""

    updated: int
    deleted: int
    inserted: int


def compact_file_group(context: CompactionContext, operation: CompactionOperation) -> WriteStat:
    """Write the new base file of one file group.

    Args:
        context: The compaction.
        operation: The slice to compact.

    Returns:
        The write stat for the commit.

    Raises:
        CorruptTableError: when a file of the plan is missing or damaged.
        WriteConflictError: when the compaction was rolled back meanwhile.
    """
    storage = context.read.storage
    file_slice = operation.file_slice(_sizes(context, operation))
    started = time.monotonic()
    delta, scan = _delta(context, file_slice)
    changes = _count(delta)
    scanned = time.monotonic()
    # A token that no other attempt has: tasks of a killed run may still be writing their files.
    name = base_file_name(operation.file_id, f"0-0-{secrets.randbelow(2**31)}", context.instant)
    io_type = "CREATE" if file_slice.base_file is None else "MERGE"
    write_marker(storage, context.instant, operation.partition, name, io_type)
    info = write_base_file(
        storage,
        join(operation.partition, name),
        _rows(context, file_slice, delta, name),
        avro_schema_with_meta=context.avro_schema,
        options=context.base_files,
        before_publish=partial(check_inflight, storage, context.read.config, context.instant, "compaction"),
        reuse_bloom=None if changes.inserted else _old_bloom(context, file_slice),
    )
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


def _rows(
    context: CompactionContext, file_slice: FileSlice, delta: SliceDelta, name: str
) -> Iterator[pa.Table]:
    """Yield the rows of the new file; all get its name, so the old one's is not read."""
    masked = delta.masked_positions.to_numpy()
    start = 0
    columns = [each for each in context.read.schema.names if each != FILE_NAME]
    if file_slice.base_file is not None:
        for block in read_base_blocks(context.read, file_slice.base_file, columns, _BLOCK_ROWS):
            first, last = np.searchsorted(masked, (start, start + block.num_rows))
            start += block.num_rows
            if first < last:
                keep = np.ones(block.num_rows, dtype=bool)
                keep[masked[first:last] - (start - block.num_rows)] = False
                block = block.filter(pa.array(keep))
            yield with_file_name(block, name)
    yield with_file_name(delta.live.select(columns), name)


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
    """Return what the commit says of a merged slice, in the fields that Hudi's compaction fills."""
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
