"""New file groups: rows that are not in the table yet become base files."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.progress import note_file
from hudi_engine.format.schema.meta_fields import (
    COMMIT_TIME,
    FILE_NAME,
    INSERTED,
    META_FIELDS,
    OPERATION,
    PARTITION_PATH,
    RECORD_KEY,
)
from hudi_engine.format.telemetry.figures import time_spent
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, WriteStat
from hudi_engine.table.handles.base_file_writer import (
    BaseFileInfo,
    attach_meta_columns,
    constant,
    cut,
    write_base_file,
)
from hudi_engine.table.handles.examples import Examples
from hudi_engine.table.handles.write_task import WriteTask


def create_files(
    task: WriteTask, partition: str, rows: pa.Table, *, file_id: str | None = None
) -> list[WriteStat]:
    """Write rows into new file groups, as many as the target file size needs; returns a write stat for each file.

    Args:
        rows: Key columns and data columns of the table's schema.
        file_id: Id of the file group when the index decides it (bucket index); then exactly one file is written.
    """
    context = task.context
    rows = context.layout.sort(rows)
    if file_id is not None:
        return [create_file(task, partition, rows, file_id)]
    files = -(-rows.num_rows // context.file_size.rows_per_file(rows))
    return [create_file(task, partition, part, task.new_file_id()) for part in cut(rows, files)]


def create_file(task: WriteTask, partition: str, rows: pa.Table, file_id: str) -> WriteStat:
    """Write one new base file; see create_files."""
    context, began = task.context, time.perf_counter()
    name = base_file_name(file_id, task.write_token, context.instant)
    task.announce(partition, name, "CREATE")
    stamped = stamp_rows(task, partition, rows, name, coded=True)
    path = f"{partition}/{name}" if partition else name
    info = write_base_file(
        context.storage,
        path,
        stamped,
        avro_schema_with_meta=context.avro_schema,
        options=context.base_files,
        before_publish=task.publish_guard(),
    )
    note_file(context.storage.base, rows.num_rows)
    if context.storage.is_planned:
        info = replace(info, size=info.rows * context.average_row_bytes)
    stat = stat_of_new(file_id, partition, info)
    if examples := Examples.of(context):
        examples.collect("insert", None, stamped)
        examples.note(stat)
    if (content := task.content_change()) is not None:
        content.add(stamped)
        stat.content = (content.rows, content.hash)
    stat.runtime_stats = time_spent("totalCreateTime", began)
    return stat


def stat_of_new(file_id: str, partition: str, info: BaseFileInfo) -> WriteStat:
    """Return what a commit contains of the first base file of a file group."""
    return WriteStat(
        file_id=file_id,
        path=info.path,
        prev_commit=NO_PREVIOUS_COMMIT,
        num_writes=info.rows,
        num_inserts=info.rows,
        total_write_bytes=info.size,
        file_size_in_bytes=info.size,
        partition_path=partition,
    )


def stamp_rows(
    task: WriteTask,
    partition: str,
    rows: pa.Table,
    file_name: str,
    *,
    in_log: bool = False,
    coded: bool = False,
) -> pa.Table:
    """Fill the meta columns of new rows; with ``coded``, for base files, those of one value are dictionary-coded."""
    context = task.context
    start = task.take_row_numbers(rows.num_rows, in_log=in_log)
    keys = rows.column(RECORD_KEY) if RECORD_KEY in rows.column_names else None
    if keys is None or keys.null_count:
        generated = _generated_keys(task, start, rows.num_rows)
        keys = generated if keys is None else pc.coalesce(keys, generated)
    if OPERATION in context.schema.names and OPERATION not in rows.column_names:
        rows = rows.append_column(OPERATION, pa.repeat(pa.scalar(INSERTED), rows.num_rows))
    data = rows.select([name for name in context.schema.names if name not in META_FIELDS])
    stamped = attach_meta_columns(
        data,
        commit_time=context.instant,
        seqno_prefix_task=task.partition_id,
        keys=keys,
        partition="" if coded else partition,
        file_name="" if coded else file_name,
        start_row=start,
    )
    if coded:
        # plain, the file name alone is often more than the row
        for name, text in (
            (COMMIT_TIME, context.instant),
            (PARTITION_PATH, partition),
            (FILE_NAME, file_name),
        ):
            stamped = stamped.set_column(META_FIELDS.index(name), name, constant(text, rows.num_rows))
    return stamped.select(context.schema.names)


def _generated_keys(task: WriteTask, start: int, count: int) -> pa.Array:
    prefix = f"{task.context.instant}_{task.partition_id}_"
    return pa.array([f"{prefix}{row}" for row in range(start, start + count)], pa.string())
