"""Rewriting one group of file slices: read with their logs merged, ordered, written to new file groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.base_file_writer import attach_meta_columns, with_file_name, write_base_file
from hudi_engine.table.handles.create import stat_of_new
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask

_BATCH_ROWS = 131_072


@dataclass(frozen=True)
class ClusteringContext:
    """The fixed facts of one clustering; picklable."""

    write: WriteContext
    layout: RowLayout
    preserves_metadata: bool = True


@dataclass(frozen=True)
class GroupTask:
    """One group to rewrite."""

    number: int
    slices: tuple[FileSlice, ...]
    outputs: int

    @property
    def partition(self) -> str:
        """The partition of the group."""
        return self.slices[0].partition

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(each.size for each in self.slices)


RunLarge = Callable[[ClusteringContext, GroupTask], list[WriteStat]]
"""Rewrites a group that is too large for the memory of one task."""


def write_group(context: ClusteringContext, task: GroupTask) -> list[WriteStat]:
    """Rewrite a group in the memory of one task."""
    rows = pa.concat_tables([read_slice(context.write.read, each) for each in task.slices])
    rows = context.layout.sort(rows).combine_chunks()
    # Tasks of a killed run may still be writing; new file groups have names of their own anyway.
    writer = WriteTask(context.write, task.number)
    if not rows.num_rows:
        return []
    share = -(-rows.num_rows // task.outputs)
    parts = (rows.slice(start, share) for start in range(0, rows.num_rows, share))
    return [write_new_group(context, writer, task.partition, part.to_batches(_BATCH_ROWS)) for part in parts]


def write_new_group(
    context: ClusteringContext,
    task: WriteTask,
    partition: str,
    batches: Iterable[pa.RecordBatch],
    *,
    bucket: str = "",
) -> WriteStat:
    """Write rows of the table into one new file group, whose id begins with ``bucket``."""
    write, file_id = context.write, task.new_file_id(bucket)
    name = base_file_name(file_id, task.write_token, write.instant)
    task.announce(partition, name, "CREATE")
    info = write_base_file(
        write.storage,
        join(partition, name),
        _stamped(context, task, partition, name, batches),
        avro_schema_with_meta=write.avro_schema,
        options=write.base_files,
        before_publish=task.publish_guard(),
    )
    return stat_of_new(file_id, partition, info)


def write_rolling(
    context: ClusteringContext,
    task: WriteTask,
    partition: str,
    batches: Iterable[pa.RecordBatch],
    rows_per_file: Callable[[pa.Table], int],
) -> list[WriteStat]:
    """Write a stream of rows into as many new file groups as their size needs."""
    stream = (batch for batch in batches if batch.num_rows)
    first = next(stream, None)
    if first is None:
        return []
    most = rows_per_file(pa.Table.from_batches([first]))
    pieces = _pieces(itertools.chain([first], stream), most)
    return [
        write_new_group(context, task, partition, (batch for _, batch in group))
        for _, group in itertools.groupby(pieces, key=lambda piece: piece[0])
    ]


def _pieces(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut batches where a file is full; each comes with the number of its file."""
    number, room = 0, most
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            if room == 0:
                number, room = number + 1, most
            piece = batch.slice(start, room)
            room -= piece.num_rows
            start += piece.num_rows
            yield number, piece


def _stamped(
    context: ClusteringContext, task: WriteTask, partition: str, name: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if context.preserves_metadata:
            rows = with_file_name(rows, name)
        else:
            rows = attach_meta_columns(
                rows,
                commit_time=context.write.instant,
                seqno_prefix_task=task.partition_id,
                keys=rows.column(RECORD_KEY),
                partition=partition,
                file_name=name,
                start_row=task.take_row_numbers(rows.num_rows),
            )
        yield from rows.select(context.write.schema.names).to_batches()
