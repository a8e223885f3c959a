"""Distributed writes: the batch is shuffled to the task that owns its bucket, base files are read and written there.

A bucket is a table partition, or a file group where partitions are wide. Base files never go through a shuffle; only the
incoming batch does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from hudi_engine.errors import IncompleteWriteError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.partition_metadata import begin_partition
from hudi_engine.format.keygen.generator import KeyGenerator, refuse_keyless
from hudi_engine.format.keygen.partition_path import check_new_partition
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.parallel import RunTasks, at_most, each_once
from hudi_engine.format.schema.casting import cast_batch
from hudi_engine.format.schema.meta_fields import META_FIELDS, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.worker import rows_at_once
from hudi_engine.spark.read.collect import (
    collect_buckets,
    collect_stats,
    current_task,
    run_in_spark,
    stats_batch,
)
from hudi_engine.table.handles.create import create_files
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.gathered import gathered
from hudi_engine.table.lookup.partition import StoredSlice, TaggedUnit, tag_unit
from hudi_engine.table.lookup.tagging import SliceTag
from hudi_engine.table.lookup.unit import BUCKET, PartitionUnit, UnitPlan, split_by_partition
from hudi_engine.table.write.place.partitions import check_partition_count
from hudi_engine.table.write.place.shares import shares_of
from hudi_engine.table.write.place.unit import check_symbols, write_unit

MANY_ROWS = 8192
"""Pieces with fewer rows are put together before they are written: hashing and encoding cost more by the piece than a copy."""


_PARALLELISM = {
    WriteOperation.INSERT.value: WriteOptions.INSERT_PARALLELISM,
    WriteOperation.DELETE.value: WriteOptions.DELETE_PARALLELISM,
}


def most_tasks(context: WriteContext) -> int:
    """Return the most tasks that a keyed write or an insert may have; 0 for as many as it has file groups."""
    return context.options[_PARALLELISM.get(context.operation, WriteOptions.UPSERT_PARALLELISM)]


def run_buckets(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    frame: DataFrame,
    keys: KeyGenerator | None = None,
    *,
    rows: int | None = None,
) -> list[WriteStat]:
    """Write a batch whose rows carry the bucket they belong to in column ``__hudi_bucket``.

    Args:
        units: What is known of each bucket; a bucket that is not there is a new partition of that path.
        frame: Rows with key columns, data columns and the bucket, already shuffled so that a bucket is in one task, bucket by
            bucket. Without a partition path the bucket is the partition.
        keys: Key rules for rows that come without a record key; None when they have one, or the writer generates it.
        rows: Rows of the batch, None where they were not counted as they are now.

    Raises:
        IncompleteWriteError: A bucket came twice, or the buckets had other rows than were counted.
    """
    shared = spark.sparkContext.broadcast((context, plan, dict(units), keys))

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own_context, own_plan, own_units, own_keys = shared.value
        task = current_task(own_context)
        for bucket, parts in by_bucket(batches):
            yield _write_bucket(task, own_plan, own_keys, own_units.get(bucket), bucket, parts)

    try:
        stats, reported = collect_buckets(frame, write)
    finally:
        shared.destroy()
    _check_buckets(reported, rows)
    return stats


def _write_bucket(
    task: WriteTask,
    plan: UnitPlan,
    keys: KeyGenerator | None,
    unit: PartitionUnit | None,
    bucket: str,
    parts: Iterable[pa.Table],
) -> pa.RecordBatch:
    """Write the rows of a bucket, of which nothing is held afterwards; returns the write stats for `collect_buckets`."""
    context = task.context

    def fit(rows: pa.Table) -> pa.Table:
        rows = cast_batch(rows, _data_schema(context, rows.column_names))
        return _with_record_keys(rows.drop_columns([BUCKET]), keys)

    rows, came = gathered(parts, context.read, fit, combines=plan.combine)
    if unit is None:
        known = PARTITION_PATH in rows.column_names
        unit = PartitionUnit(rows.column(PARTITION_PATH)[0].as_py() if known else bucket)
    return stats_batch(write_unit(task, plan, tag_unit(context, plan, unit, rows)), bucket, came)


def _check_buckets(reported: Sequence[tuple[str, int]], rows: int | None) -> None:
    """Refuse a write of which a bucket is missing or came twice; raises IncompleteWriteError."""
    times = Counter(bucket for bucket, _ in reported)
    twice = [bucket for bucket, number in times.items() if number > 1]
    if twice:
        raise IncompleteWriteError(
            f"bucket {twice[0]!r} of the batch was written by {times[twice[0]]} tasks; nothing was committed. Run it again"
        )
    came = sum(count for _, count in reported)
    if rows is not None and came != rows:
        raise IncompleteWriteError(
            f"the batch was counted as {rows} rows, and tasks wrote buckets of {came}; nothing was committed. Run it again, and "
            "look for a query whose rows differ from one evaluation to the next"
        )


def by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Iterator[pa.Table]]]:
    """Yield each bucket of a task with its rows, which come bucket by bucket: some of those of one at a time."""
    parts = (part for batch in batches for part in split_by_partition(pa.Table.from_batches([batch]), BUCKET))
    for bucket, group in groupby(parts, itemgetter(0)):
        yield bucket, (rows for _, rows in group)


def run_small_batch(
    spark: SparkSession,
    context: WriteContext,
    plan: UnitPlan,
    units: Mapping[str, PartitionUnit],
    batch: pa.Table,
) -> list[WriteStat]:
    """Write a small batch into big partitions: the rows travel with the tasks.

    One job with a task a partition; where that would leave cores idle, one that finds the keys, file by file, and one with
    a task a file group.
    """
    items = items_of(units, batch)
    if not items:
        return []
    run = at_most(run_in_spark(spark), most_tasks(context))
    if len(items) < spark.sparkContext.defaultParallelism:
        tagged = [
            tag_unit(context, plan, each.unit, each.batch, partial(_matched_only, run)) for each in items
        ]
        items = [share for each in tagged for share in shares_of(context, plan, each)]

    def write(item: TaggedUnit) -> list[WriteStat]:
        return write_unit(current_task(context), plan, tag_unit(context, plan, item.unit, item.batch))

    return [stat for stats in each_once(run(write, items), items, "file groups") for stat in stats]


def items_of(units: Mapping[str, PartitionUnit], batch: pa.Table) -> list[TaggedUnit]:
    """Return the rows of each partition to send to a task: copies, as Arrow would send a part of a table with all of it."""
    return [
        TaggedUnit(
            units.get(partition) or PartitionUnit(partition), taken(rows, np.arange(rows.num_rows)), ()
        )
        for partition, rows in split_by_partition(batch, PARTITION_PATH)
    ]


def _matched_only(
    run: RunTasks, look: Callable[[StoredSlice], SliceTag | None], slices: Sequence[StoredSlice]
) -> list[SliceTag | None]:
    """Look at slices in tasks; what is known of each row of a base file stays there, as its size is the file's."""

    def matched(each: StoredSlice) -> SliceTag | None:
        tag = look(each)
        return None if tag is None else replace(tag, batch_rows=pa.array([], tag.batch_rows.type))

    return run(matched, slices)


def _with_record_keys(rows: pa.Table, keys: KeyGenerator | None) -> pa.Table:
    if keys is None or RECORD_KEY in rows.column_names:
        return rows
    return rows.append_column(RECORD_KEY, keys.record_keys(rows))


def run_bulk(
    spark: SparkSession, context: WriteContext, frame: DataFrame, keys: KeyGenerator | None = None
) -> list[WriteStat]:
    """Write rows into new file groups only, in one pass; rows of several partitions may be mixed in a task.

    Args:
        frame: Rows with key columns (record key absent when the writer generates keys) and data columns.
    """
    shared = spark.sparkContext.broadcast((context, keys))

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own_context, own_keys = shared.value
        buffer = _PartitionBuffer(current_task(own_context), own_keys)
        for batch in batches:
            buffer.add(pa.Table.from_batches([batch]))
        buffer.finish()
        yield stats_batch(buffer.stats)

    try:
        stats = collect_stats(frame, write)
    finally:
        shared.destroy()
    check_partition_count({stat.partition_path for stat in stats}, context.options)
    return stats


class _PartitionBuffer:
    """Rows of one task by partition; the largest partition is written out when the buffer is full."""

    def __init__(self, task: WriteTask, keys: KeyGenerator | None) -> None:
        self._task = task
        self._keys = keys
        self._held: dict[str, list[pa.Table]] = {}
        self._bytes: dict[str, int] = {}
        self._met: set[str] = set()
        self._most = rows_at_once(task.context.options[EngineOptions.TASK_BYTES])
        self.stats: list[WriteStat] = []

    def add(self, rows: pa.Table) -> None:
        if RECORD_KEY in rows.column_names:
            refuse_keyless(rows.column(RECORD_KEY).null_count, self._task.context.config)
        for partition, part in split_by_partition(rows, PARTITION_PATH):
            if partition not in self._met:
                check_new_partition(partition)
                self._met.add(partition)
                check_partition_count(self._met, self._task.context.options)
            self._held.setdefault(partition, []).append(part)
            self._bytes[partition] = self._bytes.get(partition, 0) + part.nbytes
        while sum(self._bytes.values()) > self._most:
            self._flush(max(self._bytes, key=lambda each: self._bytes[each]))

    def finish(self) -> None:
        for partition in list(self._held):
            self._flush(partition)

    def _flush(self, partition: str) -> None:
        context = self._task.context
        held = self._held.pop(partition)
        rows = pa.concat_tables(held)
        if len(held) * MANY_ROWS > rows.num_rows:
            rows = rows.combine_chunks()
        rows = _with_record_keys(cast_batch(rows, _data_schema(context, rows.column_names)), self._keys)
        del self._bytes[partition]
        deletes = delete_mask(rows, context.config)
        if deletes is not None:
            rows = rows.filter(pc.invert(deletes))
        if not rows.num_rows:
            self.stats.append(WriteStat(partition_path=partition))
            return
        check_symbols(rows, context.avro_schema)
        begin_partition(context.storage, context.config, partition, context.instant)
        self.stats += create_files(self._task, partition, rows)


def _data_schema(context: WriteContext, given: Sequence[str]) -> pa.Schema:
    """Return data columns of the table that the rows have; keys to delete come with few of them."""
    names = set(given) - set(META_FIELDS)
    return pa.schema([field for field in context.schema if field.name in names])
