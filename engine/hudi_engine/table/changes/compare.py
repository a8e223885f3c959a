"""What became of the rows of a file group, or of a part of a table, between two states of it; Arrow alone.

A row is identified by its record key within its partition. Rows that share a key are matched one by one: first those of the
same write, then in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.merge.modes.fold import key_codes
from hudi_engine.format.merge.row_equality import equal_rows
from hudi_engine.format.merge.rows_at import rows_at
from hudi_engine.format.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, meta_fields
from hudi_engine.table.changes.window import CHANGE_TYPE, COMMITTED, STEP

Positions = npt.NDArray[np.int64]
_NOT_DATA = frozenset({*meta_fields(operation=True), CHANGE_TYPE, COMMITTED, STEP})


@dataclass(frozen=True)
class Matched:
    """Row numbers of two tables.

    Args:
        gone: Rows of the first without a row in the second.
        new: Rows of the second without a row in the first.
        old: Rows of the first that have another content in the second.
        now: Those rows of the second, aligned with ``old``.
    """

    gone: Positions
    new: Positions
    old: Positions
    now: Positions


def compare_rows(
    before: pa.Table, after: pa.Table, keys: tuple[pa.ChunkedArray, pa.ChunkedArray], *, trusts_writes: bool
) -> Matched:
    """Match the rows of two states, in the same columns, by key.

    Args:
        trusts_writes: A row with the commit time and sequence number of another one is that row; False where a merge
            changes rows and keeps these.
    """
    pairs = _pairs(before, after, keys)
    gone, new = _rest(before.num_rows, pairs[0]), _rest(after.num_rows, pairs[1])
    old, now = pairs
    if trusts_writes:
        changed = ~_same_write(before, after, old, now)
        old, now = old[changed], now[changed]
    return without_equal(before, after, Matched(gone, new, old, now))


def without_equal(before: pa.Table, after: pa.Table, matched: Matched) -> Matched:
    """Return what became of rows without the pairs that say the same."""
    names = [name for name in after.column_names if name not in _NOT_DATA]
    old, now = matched.old, matched.now
    differs = ~equal_rows(rows_at(before, old), rows_at(after, now), names)
    return Matched(matched.gone, matched.new, old[differs], now[differs])


def _pairs(
    before: pa.Table, after: pa.Table, keys: tuple[pa.ChunkedArray, pa.ChunkedArray]
) -> tuple[Positions, Positions]:
    codes, distinct = key_codes(pa.chunked_array([*keys[0].chunks, *keys[1].chunks], pa.string()))
    first, second = codes[: before.num_rows], codes[before.num_rows :]
    if _are_unique(first, distinct) and _are_unique(second, distinct):
        return _join(first, second)
    written, _ = key_codes(_written(before, after, codes))
    whole = _join(_numbered(written[: before.num_rows]), _numbered(written[before.num_rows :]))
    left, right = _rest(before.num_rows, whole[0]), _rest(after.num_rows, whole[1])
    others = _join(_numbered(first[left]), _numbered(second[right]))
    return np.r_[whole[0], left[others[0]]], np.r_[whole[1], right[others[1]]]


def _are_unique(codes: Positions, distinct: int) -> bool:
    return not len(codes) or int(np.bincount(codes, minlength=distinct).max()) <= 1


def _written(before: pa.Table, after: pa.Table, codes: Positions) -> pa.ChunkedArray:
    """Return key, commit time and sequence number of all rows as one text."""
    both = pa.concat_tables([each.select([COMMIT_TIME, COMMIT_SEQNO]) for each in (before, after)])
    texts = (pc.fill_null(both.column(name), "") for name in (COMMIT_TIME, COMMIT_SEQNO))
    numbers = pa.chunked_array([pa.array(codes).cast(pa.string())], pa.string())
    return pc.binary_join_element_wise(numbers, *texts, "/")


def _numbered(codes: Positions) -> Positions:
    """Return a code for each row that tells rows with one code apart by their turn."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(codes) else codes
    turns = np.empty(len(codes), np.int64)
    turns[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    return (turns << 40) | codes


def _join(left: Positions, right: Positions) -> tuple[Positions, Positions]:
    _, first, second = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return first.astype(np.int64), second.astype(np.int64)


def _rest(count: int, taken: Positions) -> Positions:
    left = np.ones(count, dtype=bool)
    left[taken] = False
    return np.flatnonzero(left)


def _same_write(before: pa.Table, after: pa.Table, old: Positions, now: Positions) -> npt.NDArray[np.bool_]:
    same = np.ones(len(old), dtype=bool)
    for name in (COMMIT_TIME, COMMIT_SEQNO):
        one, other = before.column(name).take(pa.array(old)), after.column(name).take(pa.array(now))
        same &= np.asarray(pc.fill_null(pc.equal(one, other), False)).astype(bool)
    return same
