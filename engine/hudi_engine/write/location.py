"""Where keys live already, for indexes that look beyond the row's own partition.

A global index finds the partition a key is in. A row that arrives with another partition either moves (a delete in the old
partition, an insert in the new one) or is written where its key is, as ``*.index.update.partition.path`` says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.config.enums import MergeMode
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.handles.write_context import WriteContext
from hudi_engine.index.tagging import SliceTag, tag_slice
from hudi_engine.merge.delete_marker import delete_mask
from hudi_engine.merge.merge_rows import merge_rows
from hudi_engine.merge.modes.registry import combine_batch
from hudi_engine.merge.slice_reader import read_slice
from hudi_engine.schema.meta_fields import META_FIELDS, PARTITION_PATH, RECORD_KEY
from hudi_engine.write.partition_unit import DELETE_FLAG, PartitionUnit, UnitPlan


def resolve_globally(
    context: WriteContext, plan: UnitPlan, units: Mapping[str, PartitionUnit], batch: pa.Table
) -> pa.Table:
    """Rewrite a batch so that every row goes to a partition, with deletes for the partitions keys move away from.

    Args:
        context: The write.
        plan: How rows are treated.
        units: Every partition of the table.
        batch: All rows with key columns.

    Returns:
        The rows with their final partition path and a delete flag.
    """
    if plan.combine and batch.num_rows:
        batch = combine_batch(batch, context.config)
    if batch.num_rows == 0:
        return batch
    tags = _tag_all(context, plan, (each for unit in units.values() for each in unit.slices), batch)
    partitions = np.array(batch.column(PARTITION_PATH).to_pylist(), dtype=object)
    stays = plan.delete_only or not plan.index.moves_partition
    removed = _removed_rows(batch, context)
    flags = np.zeros(batch.num_rows, dtype=bool)
    rows: list[pa.Table] = []
    lost = np.zeros(batch.num_rows, dtype=bool)
    final = partitions.copy()
    for tag in tags:
        old = tag.file_slice.partition
        hit = np.asarray(tag.matched)
        moved = hit[(partitions[hit] != old) & ~removed[hit]]
        final[hit[removed[hit]]] = old
        if stays:
            final[moved] = old
        elif len(moved):
            losers = _late_rows(context, tag, batch, moved)
            lost[losers] = True
            gone = batch.take(pa.array(np.setdiff1d(moved, losers)))
            rows.append(_with(gone, [old] * gone.num_rows, np.ones(gone.num_rows, dtype=bool)))
    kept = _with(batch, list(final), flags).filter(pa.array(~lost))
    return pa.concat_tables([kept, *rows])


def _tag_all(
    context: WriteContext, plan: UnitPlan, slices: Iterable[FileSlice], batch: pa.Table
) -> list[SliceTag]:
    keys = batch.column(RECORD_KEY).combine_chunks()
    pruning = plan.index.pruning(context.options)
    with ThreadPoolExecutor(max_workers=max(1, min(8, os.cpu_count() or 1))) as pool:
        found = pool.map(lambda each: tag_slice(context.read, each, keys, pruning), list(slices))
    return [tag for tag in found if tag is not None]


def _removed_rows(batch: pa.Table, context: WriteContext) -> np.ndarray:
    if not set(context.schema.names) - set(META_FIELDS) <= set(batch.column_names):
        return np.ones(batch.num_rows, dtype=bool)
    mask = delete_mask(batch, context.config)
    return np.zeros(batch.num_rows, dtype=bool) if mask is None else np.asarray(mask.fill_null(False))


def _late_rows(context: WriteContext, tag: SliceTag, batch: pa.Table, moved: np.ndarray) -> np.ndarray:
    """Moving rows that lose against the stored row by event time; they change nothing."""
    if context.config.merge_mode is not MergeMode.EVENT_TIME_ORDERING or not context.config.ordering_fields:
        return moved[:0]
    stored = read_slice(context.read, tag.file_slice)
    places = pc.index_in(
        batch.column(RECORD_KEY).take(pa.array(moved)), value_set=stored.column(RECORD_KEY).combine_chunks()
    )
    valid = np.asarray(places.is_valid())
    old = stored.take(places.drop_null())
    incoming = batch.take(pa.array(moved[valid]))
    for name in context.schema.names:
        if name not in incoming.column_names:
            incoming = incoming.append_column(name, old.column(name))
    outcome = merge_rows(old, incoming.select(context.schema.names), context.config)
    lost: np.ndarray = moved[valid][~np.asarray(outcome.changed)]
    return lost


def _with(rows: pa.Table, partitions: list[str], deletes: np.ndarray) -> pa.Table:
    place = rows.schema.get_field_index(PARTITION_PATH)
    changed = rows.set_column(place, PARTITION_PATH, pa.array(partitions, pa.string()))
    return changed.append_column(DELETE_FLAG, pa.array(deletes))
