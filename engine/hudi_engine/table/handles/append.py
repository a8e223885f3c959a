"""Log files: updates and deletes of a merge-on-read slice are appended next to its base file.

Table version 6: a log file's name carries the instant of the slice it belongs to; while a compaction of the file group is
pending, that is the compaction's instant. Versions 8 and 9: it carries the instant of its write (Hudi table format, file
slices).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.errors import WriteConflictError
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import LogBlockFormat
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.logformat.format import HeaderKey
from hudi_engine.format.logformat.writer import encode_data_blocks, encode_delete_blocks
from hudi_engine.format.progress import note_file
from hudi_engine.format.schema.avro import avro_of
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.create import stamp_rows
from hudi_engine.table.handles.examples import Examples
from hudi_engine.table.handles.write_task import WriteTask

PARQUET_BLOCK_BYTES = 1024 * 1024
MAX_TAKEN_VERSIONS = 20


@dataclass(frozen=True)
class LogTarget:
    """Where the next log file of a file group goes.

    Args:
        file_slice: The latest slice, pending compaction merged in.
        instant: The instant in the names of its log files: the base instant of the slice, or that of the write.
    """

    file_slice: FileSlice
    instant: str

    @property
    def next_version(self) -> int:
        """Highest version with the same instant, plus one."""
        versions = [log.version for log in self.file_slice.log_files if log.instant == self.instant]
        return max(versions, default=0) + 1


@dataclass(frozen=True)
class LogDeletes:
    """Keys to delete through a log: ``ordering`` is None for deletes that always win."""

    keys: pa.Array
    ordering: pa.Array | None = None


@dataclass(frozen=True)
class LogRows:
    """Rows as a log has them."""

    rows: pa.Table
    blocks: list[bytes]


def append_log(
    task: WriteTask,
    target: LogTarget,
    updates: pa.Table | LogRows | None,
    deletes: LogDeletes | None,
    *,
    inserts: int = 0,
    updated: int | None = None,
) -> list[WriteStat]:
    """Write one commit's changes of a file group into new log files; returns a write stat for each of them.

    Args:
        updates: Rows with key and data columns, or as `log_rows` returns them.
        inserts: How many of the update rows have a new key (bucket index).
        updated: How many of them update a row; None for all others.
    """
    context, slice_ = task.context, target.file_slice
    blocks: list[bytes] = []
    count, planned = 0, context.storage.is_planned
    if isinstance(updates, pa.Table):
        updates = log_rows(task, target, updates)
    if updates is not None:
        count = updates.rows.num_rows
        blocks += updates.blocks
    deleted = 0
    if deletes is not None and len(deletes.keys):
        deleted = len(deletes.keys)
    if deletes is not None and deleted and not planned:
        partitions = pa.array([slice_.partition] * deleted, pa.string())
        blocks += encode_delete_blocks(
            deletes.keys,
            partitions,
            deletes.ordering,
            context.instant,
            context.avro_schema,
            max_block_bytes=context.options[FileOptions.LOG_BLOCK_SIZE],
        )
    if planned and count + deleted:
        blocks.append(b"-")  # what a file is made for
    updates_written = count - inserts if updated is None else updated
    stats = _write_files(
        task, target, blocks, updates_written=updates_written, inserts=inserts, deleted=deleted
    )
    if stats and (examples := Examples.of(context)):
        examples.logged(
            context,
            slice_,
            None if updates is None else updates.rows,
            None if deletes is None else deletes.keys,
        )
        examples.note(stats[0])
    return stats


def log_rows(
    task: WriteTask,
    target: LogTarget,
    rows: pa.Table,
    partial: Sequence[str] | None = None,
    stored: npt.NDArray[np.bool_] | None = None,
) -> LogRows | None:
    """Fill the meta columns of rows for a log and encode them; None for no rows.

    Args:
        partial: Columns that rows which are ``stored`` have in the log; None for all.
    """
    if not rows.num_rows:
        return None
    context, slice_ = task.context, target.file_slice
    if context.storage.is_planned:
        return LogRows(rows, [])
    stamped = stamp_rows(task, slice_.partition, rows, slice_.file_id, in_log=True)
    if partial is None or stored is None:
        return LogRows(stamped, _encoded(task, stamped, context.avro_schema))
    blocks = _encoded(task, stamped.filter(pa.array(~stored)), context.avro_schema)
    names = [name for name in stamped.column_names if name in META_FIELDS or name in partial]
    some = stamped.filter(pa.array(stored)).select(names)
    header = [(HeaderKey.IS_PARTIAL, "true")]
    return LogRows(stamped, blocks + _encoded(task, some, avro_of(context.avro_schema, names), header))


def _encoded(
    task: WriteTask, rows: pa.Table, schema: Mapping[str, Any], header: Sequence[tuple[HeaderKey, str]] = ()
) -> list[bytes]:
    context = task.context
    return encode_data_blocks(
        rows,
        schema,
        context.instant,
        block_format=_block_format(task, rows),
        max_block_bytes=context.options[FileOptions.LOG_BLOCK_SIZE],
        codec=context.base_files.codec,
        extra_header=header,
    )


def _block_format(task: WriteTask, rows: pa.Table) -> str:
    wanted = task.context.options[FileOptions.LOG_BLOCK_FORMAT]
    return wanted or (LogBlockFormat.PARQUET if rows.nbytes > PARQUET_BLOCK_BYTES else LogBlockFormat.AVRO)


def _write_files(
    task: WriteTask,
    target: LogTarget,
    blocks: list[bytes],
    *,
    updates_written: int,
    inserts: int,
    deleted: int,
) -> list[WriteStat]:
    """Write blocks into log files up to their size limit; the first stat counts the rows, so that a sum counts them once."""
    context, slice_ = task.context, target.file_slice
    # What came before matters to readers of change data; where a log is of one write alone, Hudi notes it for them only.
    continues = not context.config.table_version.names_logs_by_write or context.config.cdc_enabled
    known = [log.name for log in slice_.log_files] if continues else []
    base = slice_.base_file if continues else None
    stats: list[WriteStat] = []
    version = target.next_version
    for number, files in enumerate(_split_by_size(blocks, context.options[FileOptions.LOG_FILE_SIZE])):
        version, name, path = _write_file(task, target, version, files)
        known.append(name)
        size = sum(len(block) for block in files)
        if context.storage.is_planned:
            size = (updates_written + inserts + deleted) * context.average_row_bytes
        first = number == 0
        note_file(context.storage.base, updates_written + inserts if first else 0)
        stats.append(
            WriteStat(
                file_id=slice_.file_id,
                path=path,
                prev_commit=base.instant if base else target.instant,
                num_writes=updates_written + inserts if first else 0,
                num_update_writes=updates_written if first else 0,
                num_inserts=inserts if first else 0,
                num_deletes=deleted if first else 0,
                total_write_bytes=size,
                file_size_in_bytes=size,
                partition_path=slice_.partition,
                log_version=version,
                log_offset=0,
                base_file=base.name if base else "",
                log_files=list(known),
                content=(0, 0) if context.receipts else None,
            )
        )
        version += 1
    return stats


def _write_file(
    task: WriteTask, target: LogTarget, version: int, blocks: list[bytes]
) -> tuple[int, str, str]:
    """Write a log file under the first version that no other writer took; returns version, name and path."""
    slice_, context = target.file_slice, task.context
    for taken in range(MAX_TAKEN_VERSIONS):
        name = log_file_name(slice_.file_id, target.instant, version + taken, task.write_token)
        path = f"{slice_.partition}/{name}" if slice_.partition else name
        if taken and context.storage.exists(path):
            continue
        task.announce(slice_.partition, name, context.config.table_version.log_marker)
        try:
            with context.storage.open_output(path, before_publish=task.publish_guard()) as sink:
                for block in blocks:
                    sink.write(block)
        except FileExistsError:
            continue
        return version + taken, name, path
    raise WriteConflictError(
        f"other writers took {MAX_TAKEN_VERSIONS} log files of file group {slice_.file_id!r} in partition "
        f"{slice_.partition!r} one after the other; write again when they are done"
    )


def _split_by_size(blocks: list[bytes], limit: int) -> list[list[bytes]]:
    files: list[list[bytes]] = []
    size = limit
    for block in blocks:
        if size + len(block) > limit:
            files.append([])
            size = 0
        files[-1].append(block)
        size += len(block)
    return files
