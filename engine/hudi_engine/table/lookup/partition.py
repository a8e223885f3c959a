"""Looking up the rows of one partition: which file slices hold their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.modes.registry import combine_batch
from hudi_engine.format.parallel import in_turn
from hudi_engine.format.schema.meta_fields import OPERATION, RECORD_KEY
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.key_cache import KeysOf, keys_of_file
from hudi_engine.table.lookup.repeated_keys import refuse_repeated
from hudi_engine.table.lookup.tagging import SliceTag, StoredKeys, live_keys, tag_slice
from hudi_engine.table.lookup.unit import INSERT_FLAG, PartitionUnit, UnitPlan, lookup_keys

StoredSlice = tuple[FileSlice, StoredKeys]
"""A slice, and which of its keys count."""

LookAtSlices = Callable[
    [Callable[[StoredSlice], SliceTag | None], Sequence[StoredSlice]], "list[SliceTag | None]"
]
"""Calls a function for every slice and returns the tags in the order of the slices."""


@dataclass(frozen=True)
class TaggedUnit:
    """A partition's rows, combined by key where needed, after the index look-up."""

    unit: PartitionUnit
    batch: pa.Table
    tags: tuple[SliceTag, ...]

    @property
    def matched_rows(self) -> int:
        """Rows of the batch whose key is in the table."""
        return sum(len(tag.matched) for tag in self.tags)

    def only(self, keep: npt.NDArray[np.bool_]) -> TaggedUnit:
        """Return some of the rows, and the tags with their new numbers; tags without rows are left out."""
        if keep.all():
            return self
        numbers = pa.array(np.cumsum(keep) - 1, pa.int32(), mask=~keep)
        tags = []
        for tag in self.tags:
            matched = numbers.take(tag.matched).drop_null()
            if len(matched):
                tags.append(SliceTag(tag.file_slice, numbers.take(tag.batch_rows), matched))
        return replace(self, batch=self.batch.filter(pa.array(keep)), tags=tuple(tags))


def tag_unit(
    context: WriteContext,
    plan: UnitPlan,
    unit: PartitionUnit,
    batch: pa.Table,
    run: LookAtSlices = in_turn,
    keys_of: KeysOf = keys_of_file,
) -> TaggedUnit:
    """Combine rows with the same key and look the keys up; reads key columns only, writes nothing.

    Args:
        batch: Its rows: key columns and data columns of the table's schema.
    """
    tags_of = partial(_tags, context, plan, unit, run=run, keys_of=keys_of)
    if plan.combine and batch.num_rows:
        batch = combine_batch(batch, context.config)
    if not plan.lookup or plan.index.buckets is not None or batch.num_rows == 0:
        return TaggedUnit(unit, batch, ())
    tags = tags_of(batch)
    refuse_repeated(context.read, plan, unit.partition, batch, tags)
    if not plan.combine and tags and OPERATION not in batch.column_names:
        combined = _combine_known(context, batch, tags)
        if combined.num_rows < batch.num_rows:
            batch, tags = combined, tags_of(combined)
    if plan.skip_existing and tags:
        batch, tags = _unknown_rows(context, batch, tags, tags_of)
    tags = _without_dead(context, batch, tags)
    unit.reject_planned_groups(tag.file_slice.file_id for tag in tags if len(tag.matched))
    return TaggedUnit(unit, batch, tuple(tags))


def _tags(
    context: WriteContext,
    plan: UnitPlan,
    unit: PartitionUnit,
    batch: pa.Table,
    *,
    run: LookAtSlices,
    keys_of: KeysOf,
) -> list[SliceTag]:
    keys, read = lookup_keys(batch), context.read
    pruning = plan.index.pruning(context.options)
    slices = [(each, unit.stored_keys(each)) for each in unit.slices]
    found = run(lambda each: tag_slice(read, each[0], keys, pruning, each[1], keys_of), slices)
    tags = [tag for tag in found if tag is not None]
    return [_every_row(tag, batch) for tag in tags] if OPERATION in batch.column_names else tags


def _every_row(tag: SliceTag, batch: pa.Table) -> SliceTag:
    """Return the tag of a batch whose rows name their changes, with all rows of a key instead of the first."""
    keys = batch.column(RECORD_KEY)
    known = pc.is_in(keys, value_set=keys.take(tag.matched).combine_chunks())
    return replace(tag, matched=pa.array(np.flatnonzero(np.asarray(known))))


def _combine_known(context: WriteContext, batch: pa.Table, tags: Sequence[SliceTag]) -> pa.Table:
    """Return the batch with the rows of a stored key combined into one, which can only be updated once."""
    known = pc.unique(batch.column(RECORD_KEY).take(_matched(tags)))
    is_known = pc.is_in(batch.column(RECORD_KEY), value_set=known)
    if INSERT_FLAG in batch.column_names:
        is_known = pc.and_(is_known, pc.invert(batch.column(INSERT_FLAG)))
    updates = combine_batch(batch.filter(is_known), context.config)
    return pa.concat_tables([updates, batch.filter(pc.invert(is_known))])


def _unknown_rows(
    context: WriteContext,
    batch: pa.Table,
    tags: Sequence[SliceTag],
    tags_of: Callable[[pa.Table], list[SliceTag]],
) -> tuple[pa.Table, list[SliceTag]]:
    """Return rows whose key is not in the table; a key that only logs deleted is tagged, so that it comes back in its place."""
    known = np.zeros(batch.num_rows, dtype=bool)
    for tag in tags:
        known[_live_matches(context, batch, tag)] = True
    if not known.any():
        return batch, list(tags)
    batch = batch.filter(pa.array(~known))
    logged = any(tag.file_slice.log_files for tag in tags)
    return batch, tags_of(batch) if logged and batch.num_rows else []


def _without_dead(context: WriteContext, batch: pa.Table, tags: Sequence[SliceTag]) -> list[SliceTag]:
    """Return tags without keys that a slice's logs deleted and another slice has; if all deleted a key, the first one counts."""
    if len(tags) < 2 or not any(tag.file_slice.log_files for tag in tags):
        return list(tags)
    counts = np.bincount(np.asarray(_matched(tags)), minlength=batch.num_rows)
    if counts.max() < 2:
        return list(tags)
    live = [_live_matches(context, batch, tag) for tag in tags]
    lives = np.bincount(np.concatenate(live), minlength=batch.num_rows)
    result = []
    for tag, alive in zip(tags, live, strict=True):
        matched = np.asarray(tag.matched)
        dead = matched[(lives[matched] > 0) & ~np.isin(matched, alive)]
        result.append(tag.without(dead))
        lives[matched] += 1
    return [tag for tag in result if len(tag.matched)]


def _live_matches(context: WriteContext, batch: pa.Table, tag: SliceTag) -> npt.NDArray[Any]:
    """Batch rows of a tag whose key the slice still holds once its logs are merged in."""
    matched = np.asarray(tag.matched)
    if not tag.file_slice.log_files:
        return matched
    stored = live_keys(context.read, tag.file_slice)
    keys = batch.column(RECORD_KEY).take(tag.matched)
    alive: npt.NDArray[Any] = matched[np.asarray(pc.is_in(keys, value_set=stored.combine_chunks()))]
    return alive


def _matched(tags: Sequence[SliceTag]) -> pa.Array:
    return pa.concat_arrays([tag.matched for tag in tags])
