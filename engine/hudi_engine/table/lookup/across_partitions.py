"""Where keys are stored, for indexes that look beyond the row's own partition.

A row that arrives with another partition either moves (a delete in the old partition, an insert in the new one) or is written
where its key is; ``*.index.update.partition.path`` decides. A row that moves is merged with the stored one first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.merge_rows import merge_rows
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.parallel import run_in_threads
from hudi_engine.format.schema.casting import with_values
from hudi_engine.format.schema.meta_fields import META_FIELDS, OPERATION, PARTITION_PATH, RECORD_KEY
from hudi_engine.table.handles.updates import replace_columns
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.partition import compared_apart, late_rows
from hudi_engine.table.lookup.tagging import DRIVER_KEYS, SliceTag, tag_slice
from hudi_engine.table.lookup.unit import DELETE_FLAG, PartitionUnit, UnitPlan, lookup_keys

Mask = npt.NDArray[np.bool_]


def resolve_globally(
    context: WriteContext, plan: UnitPlan, units: Mapping[str, PartitionUnit], batch: pa.Table
) -> pa.Table:
    """Return a batch with the final partition path of each row and a delete flag, with deletes for partitions keys move from."""
    if plan.combine and batch.num_rows:
        batch = combine_batch(batch, context.config)
    if batch.num_rows == 0:
        return batch
    tags = _tag_all(context, plan, units.values(), batch)
    partitions = np.array(batch.column(PARTITION_PATH).to_pylist(), dtype=object)
    numbers: list[npt.NDArray[Any]] = []
    stored: list[pa.Table] = []
    for tag in tags:
        hits = np.asarray(tag.matched)
        elsewhere = hits[partitions[hits] != tag.file_slice.partition]
        if len(elsewhere):
            found = _stored_rows(context, plan, tag.file_slice, taken(batch, elsewhere))
            places = pc.index_in(
                found.column(RECORD_KEY), value_set=batch.column(RECORD_KEY).combine_chunks()
            )
            numbers.append(np.asarray(places))
            stored.append(found)
    rest = np.ones(batch.num_rows, dtype=bool)
    if not numbers:
        return _flagged(batch, ~rest)
    rows = np.concatenate(numbers)
    rest[rows] = False
    kept = batch.filter(pa.array(rest))
    settled = settle(context, plan, taken(batch, rows), pa.concat_tables(stored))
    return pa.concat_tables([_flagged(kept, np.zeros(kept.num_rows, dtype=bool)), settled])


def stored_columns(context: WriteContext, plan: UnitPlan) -> list[str]:
    """Return columns of a stored row that `settle` looks at."""
    names = [name for name in context.schema.names if name not in META_FIELDS and name != OPERATION]
    fields = [name for name in context.config.ordering_fields if name in names]
    wanted = [] if plan.delete_only else merge_rule(context.config).needs_old(fields, names)
    if plan.update_columns is not None:
        wanted = names
    return [RECORD_KEY, PARTITION_PATH, *dict.fromkeys((*wanted, *_staying_columns(context, plan)))]


def _staying_columns(context: WriteContext, plan: UnitPlan) -> list[str]:
    """Return the partition columns of rows that stay where their key is: they keep the stored values, unlike in Apache Hudi."""
    if plan.delete_only or plan.index.moves_partition:
        return []
    return [each.name for each in context.config.partition_fields if each.name in context.schema.names]


def settle(context: WriteContext, plan: UnitPlan, rows: pa.Table, stored: pa.Table) -> pa.Table:
    """Return what becomes of rows whose key is stored in another partition: rows and deletes, marked by a flag.

    Args:
        rows: Incoming rows, one for each pair; a row with several stored ones comes several times.
        stored: The stored row of each pair, with the columns of `stored_columns`; all pairs of a key are there.
    """
    old = stored.column(PARTITION_PATH).combine_chunks()
    nothing = np.zeros(rows.num_rows, dtype=bool)
    if plan.skip_existing:
        return _flagged(rows.slice(0, 0), nothing[:0])
    stay = set(rows.column_names).intersection(_staying_columns(context, plan))
    rows = with_values(rows, {name: stored.column(name) for name in stay})
    marked = None if plan.delete_only else delete_mask(rows, context.config)
    removed = nothing if marked is None else np.asarray(marked)
    named = np.asarray(pc.not_equal(rows.column(PARTITION_PATH), ""))
    # a key may be stored in the partition that the row names too, and a delete of what is not there does nothing
    own = _flagged(rows, nothing).filter(pa.array(named & (removed | plan.delete_only)))
    there = _with_partitions(rows, old)
    if plan.delete_only or not plan.index.moves_partition:
        return _unique(pa.concat_tables([_flagged(there, nothing), own]))
    merged, lost = _merge(context, plan, rows, stored)
    here = np.asarray(pc.equal(merged.column(PARTITION_PATH), old)) | removed
    loses = np.isin(_codes(rows), _codes(rows)[lost & ~here])
    moves = ~here & ~loses
    stays = _flagged(there, nothing).filter(pa.array(here))
    departing = _flagged(there, ~nothing).filter(pa.array(moves))
    arrives = _flagged(merged, nothing).filter(pa.array(moves & _first_of_key(rows, moves)))
    return pa.concat_tables([_unique(pa.concat_tables([stays, own])), _unique(departing), arrives])


def _merge(context: WriteContext, plan: UnitPlan, rows: pa.Table, stored: pa.Table) -> tuple[pa.Table, Mask]:
    """Return each row as it is after the merge with its stored one, in the partition that gives, and which rows lose."""
    rule = merge_rule(context.config)
    names = [name for name in stored.column_names if name != PARTITION_PATH]
    fields = compared_apart(context.config, plan, rows)
    late = late_rows(context.config, fields, stored, rows) if fields else np.zeros(rows.num_rows, dtype=bool)
    if plan.update_columns is not None:
        rows = replace_columns(rows, stored, plan.update_columns)
    if len(names) == 1:
        return rows, np.zeros(rows.num_rows, dtype=bool)
    outcome = merge_rows(stored.select(names), rows.select(names), context.config)
    if rule.composes:
        rows = with_values(rows, {name: outcome.rows.column(name) for name in names})
    if rule.composes or plan.update_columns is not None:
        generator = build_key_generator(context.config, options=context.options)
        rows = _with_partitions(rows, generator.partition_paths(rows))
    return rows, ~np.asarray(outcome.changed) | late


def _stored_rows(context: WriteContext, plan: UnitPlan, file_slice: FileSlice, rows: pa.Table) -> pa.Table:
    """Return live rows of a slice that have the key of one of ``rows``."""
    stored = read_slice(context.read, file_slice, columns=stored_columns(context, plan))
    known = pc.is_in(stored.column(RECORD_KEY), value_set=rows.column(RECORD_KEY).combine_chunks())
    return stored.filter(known)


def _tag_all(
    context: WriteContext, plan: UnitPlan, units: Iterable[PartitionUnit], batch: pa.Table
) -> list[SliceTag]:
    keys = lookup_keys(batch)
    pruning = plan.index.pruning(context.options)
    slices = [(each, unit.stored_keys(each)) for unit in units for each in unit.looked_through]
    keys_of = DRIVER_KEYS.keys_of(context.options[EngineOptions.KEY_CACHE_BYTES])
    found = run_in_threads(
        lambda each: tag_slice(context.read, each[0], keys, pruning, each[1], keys_of), slices, most=8
    )
    return [tag for tag in found if tag is not None]


def _codes(rows: pa.Table) -> npt.NDArray[Any]:
    encoded = pc.dictionary_encode(rows.column(RECORD_KEY)).combine_chunks()
    return np.asarray(encoded.indices)


def _first_of_key(rows: pa.Table, among: Mask) -> Mask:
    """Return the first row of each key, of those in ``among``."""
    first = np.zeros(rows.num_rows, dtype=bool)
    places = np.flatnonzero(among)
    _, starts = np.unique(_codes(rows)[places], return_index=True)
    first[places[starts]] = True
    return first


def _unique(rows: pa.Table) -> pa.Table:
    """Return one row for each key and partition."""
    if rows.num_rows < 2:
        return rows
    partitions = np.asarray(
        pc.dictionary_encode(rows.column(PARTITION_PATH)).combine_chunks().indices, dtype=np.int64
    )
    _, starts = np.unique(partitions * rows.num_rows + _codes(rows), return_index=True)
    return taken(rows, np.sort(starts))


def _with_partitions(rows: pa.Table, partitions: pa.Array) -> pa.Table:
    place = rows.schema.get_field_index(PARTITION_PATH)
    return rows.set_column(place, rows.schema.field(place), partitions)


def _flagged(rows: pa.Table, deletes: Mask) -> pa.Table:
    return rows.append_column(DELETE_FLAG, pa.array(deletes))
