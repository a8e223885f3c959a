"""Comparing ordering values as Hudi does: field by field, a null before everything, NaN after everything.

Source: Hudi table format, merging. The default ordering value of a delete (null, or int 0, which is what Avro makes of the date
1970-01-01) makes the delete win over all before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError

Ranks = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def ordering_ranks(columns: Sequence[pa.ChunkedArray]) -> list[Ranks]:
    """Return each column as numbers that compare like its values; nulls are 0, equal values have equal numbers."""
    return [_ranks(column) for column in columns]


def newer_wins(old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Mask:
    """For aligned rows: whether the newer one is not older by ordering value."""
    count = len(old[0]) if old else 0
    wins = np.ones(count, dtype=bool)
    undecided = np.ones(count, dtype=bool)
    for older, newer in zip(old, new, strict=True):
        both = pa.chunked_array([*older.chunks, *newer.cast(older.type).chunks], older.type)
        ranks = _ranks(both)
        left, right = ranks[:count], ranks[count:]
        wins[undecided & (right < left)] = False
        undecided &= left == right
    return wins


def is_default(columns: Sequence[pa.ChunkedArray]) -> Mask:
    """Return which rows have the default ordering value: null in every field, or int 0 (as a date 1970-01-01) in the only one."""
    result: Mask | None = None
    for column in columns:
        missing = pc.is_null(column)
        if len(columns) == 1 and (pa.types.is_int32(column.type) or pa.types.is_date32(column.type)):
            missing = pc.or_(missing, pc.fill_null(pc.equal(column, pa.scalar(0, column.type)), False))
        mask = missing.to_numpy().astype(bool)
        result = mask if result is None else result & mask
    assert result is not None
    return result


def _ranks(column: pa.ChunkedArray) -> Ranks:
    kind = column.type
    if pa.types.is_floating(kind):
        return _float_ranks(column)
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
        return _integers(column)
    if pa.types.is_nested(kind):
        raise SchemaError(
            f"an ordering field of type {kind} cannot be compared; use a number, text, date or timestamp"
        )
    distinct = pc.unique(column).drop_null()
    ordered = distinct.take(pc.array_sort_indices(distinct))
    places = pc.index_in(column, value_set=ordered)
    ranks: Ranks = pc.fill_null(places, -1).to_numpy().astype(np.int64) + 1
    return ranks


def _integers(column: pa.ChunkedArray) -> Ranks:
    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    plain = (
        column
        if pa.types.is_integer(column.type)
        else pa.chunked_array([c.view(width) for c in column.chunks], width)
    )
    numbers: Ranks = plain.to_numpy().astype(np.int64)
    return numbers


def _float_ranks(column: pa.ChunkedArray) -> Ranks:
    numbers = pc.fill_null(column, 0.0).to_numpy().astype(np.float64)
    # Java orders -0.0 before 0.0 and NaN after everything; the bits of a double do, once negative ones
    # are turned round.
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    turned = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    _, ranks = np.unique(turned, return_inverse=True)
    result: Ranks = ranks.reshape(-1).astype(np.int64) + 1
    result[column.is_null().to_numpy().astype(bool)] = 0
    return result
