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

from hudi_engine.errors import RepeatedKeyError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.log_scanner import scan_slice
from hudi_engine.format.merge.modes.registry import keeps_newer_rows
from hudi_engine.format.merge.ordering import is_default, newer_wins
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.parallel import in_turn
from hudi_engine.format.schema.meta_fields import OPERATION, RECORD_KEY
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.tagging import (
    KeysOf,
    SliceTag,
    StoredKeys,
    keys_of_file,
    live_keys,
    stored_pairs,
    tag_slice,
)
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG, PartitionUnit, UnitPlan, lookup_keys


def refuse_repeated(
    read: ReadContext, plan: UnitPlan, partition: str, batch: pa.Table, tags: Sequence[SliceTag]
) -> None:
    """Refuse singly selected rows whose key is stored several times, unless all become the same; raises RepeatedKeyError.

    Args:
        batch: Stored rows that change or are deleted, and new rows, which are ignored.
    """
    if not plan.single_rows:
        return
    # Plain inserts may store a key more than once, and a file is changed by key: rows that no condition selected would change too.
    keys = lookup_keys(batch)
    stored = _stored_copies(read, keys, tags)
    several = np.flatnonzero(stored > 1)
    if not len(several):
        return
    first = pc.index_in(keys, value_set=keys)
    among = np.bincount(np.asarray(first.drop_null()), minlength=batch.num_rows)
    for number in several:
        if among[number] != stored[number] or not _become_the_same(
            plan, batch.filter(pc.equal(first, pa.scalar(int(number), first.type)).fill_null(False))
        ):
            raise repeated(keys[int(number)].as_py(), partition)


def repeats(keys: pa.Array) -> pa.Array:
    """Return the keys that come more than once, each once."""
    counted = pc.value_counts(keys)
    return counted.field("values").filter(pc.greater(counted.field("counts"), 1))


def repeated(key: str, partition: str) -> RepeatedKeyError:
    """Return the error about one key."""
    return RepeatedKeyError(
        f"record key {key!r} is stored in several rows of partition {partition!r}, and rows of a Hudi table are identified by "
        "their key: what a condition does to one of them would be done to the others too. Nothing was written. Take the copies out "
        "(call repair_deduplicate), write a condition that is true for all of them, or choose a record key that is unique"
    )


def _stored_copies(read: ReadContext, keys: pa.Array, tags: Sequence[SliceTag]) -> np.ndarray:
    """Return for each row of a batch how many stored rows have its key; of several rows of the batch the first one counts them."""
    found = np.zeros(len(keys), dtype=np.int64)
    for tag in tags:
        # rows that are in logs only are no rows of the base file
        in_logs = np.setdiff1d(np.asarray(tag.matched), np.asarray(tag.batch_rows.drop_null()))
        found += np.bincount(np.asarray(tag.batch_rows.drop_null()), minlength=len(keys))
        found[in_logs] += 1
    if found.max(initial=0) < 2 or not any(tag.file_slice.log_files for tag in tags):
        return found
    found[:] = 0
    for tag in tags:
        rows = tag.batch_rows
        if tag.file_slice.log_files:
            rows = pc.index_in(live_keys(read, tag.file_slice).combine_chunks(), value_set=keys)
        found += np.bincount(np.asarray(rows.drop_null()), minlength=len(keys))
    return found


def _become_the_same(plan: UnitPlan, rows: pa.Table) -> bool:
    """Return whether rows of one key all go, or all become one and the same row."""
    if plan.delete_only or (
        DELETE_FLAG in rows.column_names and pc.all(rows.column(DELETE_FLAG).fill_null(False)).as_py()
    ):
        return True
    names = [name for name in rows.column_names if name != INSERT_FLAG]
    return len({repr(row) for row in rows.select(names).to_pylist()}) == 1


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
    slices = [(each, unit.stored_keys(each)) for each in unit.looked_through]
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


Mask = npt.NDArray[np.bool_]


def drop_outdated_updates(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit) -> TaggedUnit:
    """Return a partition's rows without those that are older than every stored row of their key, where merging would not see it."""
    apart = compared_apart(context.config, plan, tagged.batch)
    fields = apart or _compared_with_partial(context.config, plan, tagged.batch)
    if not fields or not tagged.tags:
        return tagged
    always = bool(apart) or plan.update_columns is not None
    tags = [
        _without_newer(context, fields, tagged.batch, tag)
        if always or (tag.file_slice.log_files and scan_slice(context.read, tag.file_slice).has_partial)
        else tag
        for tag in tagged.tags
    ]
    met = np.zeros(tagged.batch.num_rows, dtype=bool)
    for tag in tagged.tags:
        met[np.asarray(tag.matched)] = True
    for tag in tags:
        met[np.asarray(tag.matched)] = False
    kept = replace(tagged, tags=tuple(tag for tag in tags if len(tag.matched)))
    return kept.only(~met)


def _without_newer(context: WriteContext, fields: list[str], batch: pa.Table, tag: SliceTag) -> SliceTag:
    """Return a tag without the stored rows that are newer than the row of the batch with their key."""
    rows, hits, wanted = stored_pairs(context.read, batch, tag, fields)
    late = late_rows(context.config, fields, taken(rows, hits), taken(batch, wanted))
    if not late.any():
        return tag
    numbers = np.asarray(wanted)
    if tag.file_slice.log_files or len(tag.batch_rows) != rows.num_rows:
        # for rows that logs have changed the row of the base file is not known
        return tag.without(np.setdiff1d(numbers[late], numbers[~late]))
    newer = np.zeros(rows.num_rows, dtype=bool)
    newer[hits[late]] = True
    batch_rows = pc.if_else(pa.array(newer), pa.scalar(None, tag.batch_rows.type), tag.batch_rows)
    left = pc.unique(batch_rows.drop_null())
    return SliceTag(tag.file_slice, batch_rows, left.take(pc.sort_indices(left)))


def compared_apart(config: TableConfig, plan: UnitPlan, rows: pa.Table) -> list[str]:
    """Return the ordering fields where rows are to be compared before they are put together; empty where merging does it."""
    if plan.update_columns is None or not keeps_newer_rows(config):
        return []
    taken = {name.lower() for name in plan.update_columns}
    fields = list(config.ordering_fields)
    if {name.lower() for name in fields} <= taken or not {*fields} <= {*rows.column_names}:
        return []
    return fields


def _compared_with_partial(config: TableConfig, plan: UnitPlan, rows: pa.Table) -> list[str]:
    """Return the ordering fields where rows are compared with the stored ones before they go to a log that may have partial blocks.

    Rows of a log are merged with each other first: one that is older than the row of the base file would lend its values to the
    columns that a partial block lacks.
    """
    if config.table_type is not TableType.MERGE_ON_READ or not config.table_version.has_partial_blocks:
        return []
    if plan.delete_only or not keeps_newer_rows(config):
        return []
    fields = list(config.ordering_fields)
    return fields if {*fields} <= {*rows.column_names} else []


def late_rows(config: TableConfig, fields: list[str], stored: pa.Table, rows: pa.Table) -> Mask:
    """Return which rows are older than the stored ones."""
    old, given = ([each.column(name) for name in fields] for each in (stored, rows))
    new = [pc.coalesce(mine, theirs.cast(mine.type)) for mine, theirs in zip(given, old, strict=True)]
    marked = delete_mask(rows, config)
    always = (
        np.zeros(rows.num_rows, bool)
        if marked is None
        else np.asarray(marked.fill_null(False)) & is_default(given)
    )
    if DELETE_FLAG in rows.column_names:
        always |= np.asarray(rows.column(DELETE_FLAG).fill_null(False))
    late: Mask = ~newer_wins(old, new) & ~always
    return late
