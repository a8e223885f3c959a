"""Folding many records of a file group, or of one batch, into one record a key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.merge.entries import Entries, concat_entries
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.merge.ordering import ordering_ranks

Positions = npt.NDArray[np.int64]


def fold(entries: Entries, rule: MergeRule, ordering_fields: Sequence[str]) -> Entries:
    """Return one entry a key, in the order in which the keys first come.

    The order depends neither on which record wins nor on the columns that are read.
    """
    codes, distinct = key_codes(entries.keys)
    if distinct == len(entries):
        return entries
    composed = rule.sees_whole_rows or entries.provided is not None
    if composed or (rule.revives and entries.deleted.any()):
        return _fold_by_rank(entries, codes, distinct, rule, ordering_fields)
    return entries.take(winners(entries, codes, distinct, rule, ordering_fields))


def as_first_named(keys: pa.ChunkedArray, entries: Entries) -> Entries:
    """Return entries in the order in which their keys first come among others; those of one key stay in their order."""
    places = pc.index_in(entries.keys, value_set=pc.unique(keys)).to_numpy()
    if bool(np.all(places[1:] >= places[:-1])):
        return entries
    return entries.take(np.argsort(places, kind="stable"))


def key_codes(keys: pa.ChunkedArray) -> tuple[Positions, int]:
    """Return a number for each row, the same for equal keys and rising with each new key, and how many different keys there are."""
    encoded = keys.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.string()).dictionary_encode()
    codes: Positions = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, len(encoded.dictionary)


def turns_of(codes: Positions) -> Positions:
    """Return for each row how many rows before it have its number."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0]) if len(codes) else codes
    turns = np.empty(len(codes), np.int64)
    turns[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    return turns


def winners(
    entries: Entries, codes: Positions, distinct: int, rule: MergeRule, ordering_fields: Sequence[str]
) -> Positions:
    """Return position of the winning row of each key, by the number of the key, for rules that keep one row whole."""
    positions: Positions = np.arange(len(entries))
    if not rule.compares or not ordering_fields:
        return _last(codes, positions, distinct)
    resets = entries.always if rule.deletes_obey_order else entries.deleted
    candidates = positions
    reset = np.full(distinct, -1)
    if resets.any():
        # Whatever came before a delete that always wins has lost; the delete itself is older than
        # all after it.
        reset[codes[resets]] = positions[resets]
        candidates = positions[positions > reset[codes]]
    ranks = ordering_ranks([entries.rows.column(name) for name in ordering_fields])
    sort_keys = [rank[candidates] for rank in reversed(ranks)]
    order = np.lexsort((candidates, *sort_keys, codes[candidates]))
    best = reset
    ordered = candidates[order]
    best[codes[ordered]] = ordered
    return best


def _last(codes: Positions, positions: Positions, distinct: int) -> Positions:
    last = np.empty(distinct, np.int64)
    last[codes] = positions
    return last


def _fold_by_rank(
    entries: Entries, codes: Positions, distinct: int, rule: MergeRule, ordering_fields: Sequence[str]
) -> Entries:
    """Merge the first with the second record of every key, the result with the third, and so on: many keys a step."""
    counts = np.bincount(codes, minlength=distinct)
    by_count = np.argsort(-counts, kind="stable")
    number = np.empty(distinct, np.int64)
    number[by_count] = np.arange(distinct)
    order = np.argsort(number[codes], kind="stable")
    sizes = counts[by_count]
    starts = np.cumsum(sizes) - sizes
    folded = entries.take(order[starts])
    done: list[Entries] = []
    for rank in range(1, int(sizes[0])):
        active = int(np.searchsorted(-sizes, -rank, side="left"))
        if active < len(folded):  # no rows would keep the memory of all
            done.append(folded.slice(active, len(folded) - active))
        folded = rule.merge(
            folded.slice(0, active), entries.take(order[starts[:active] + rank]), ordering_fields
        )
    merged = concat_entries([folded, *reversed(done)])
    return merged if bool(np.all(number == np.arange(distinct))) else merged.take(number)
