"""Whether two rows hold the same values, column by column and without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.merge.rows_at import aligned
from hudi_engine.format.schema.leaves import leaves_of
from hudi_engine.format.schema.nested import one_array

Mask = npt.NDArray[np.bool_]


def equal_rows(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> Mask:
    """For aligned rows: where all of some columns are the same; nulls are equal, and so are NaNs."""
    names = list(columns)
    pieces = aligned(left.select(names), right.select(names))
    return np.concatenate([_equal_pieces(one, other, names) for one, other in pieces])


def _equal_pieces(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> Mask:
    same = np.ones(left.num_rows, dtype=bool)
    for name in columns:
        same &= _equal(one_array(left.column(name)), one_array(right.column(name)))
    return same


def unchanged_columns(before: pa.Table, after: pa.Table) -> frozenset[str]:
    """Return the columns that are the same in all rows, bit for bit: a zero with a sign is another one than without."""
    same = before.column_names
    for one, other in aligned(before, after.select(same)):
        same = [name for name in same if _is_same(one_array(one.column(name)), one_array(other.column(name)))]
    return frozenset(same)


def _is_same(left: pa.Array, right: pa.Array) -> bool:
    kind = left.type
    if not right.type.equals(kind):
        return False
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        bits = pa.int64() if pa.types.is_float64(kind) else pa.int32()
        left, right = left.view(bits), right.view(bits)
    elif pa.types.is_nested(kind) and any(pa.types.is_floating(leaf) for _, leaf in leaves_of("", kind)):
        return False
    return bool(left.equals(right))


def _equal(left: pa.Array, right: pa.Array) -> Mask:
    if left.equals(right):
        # most columns of updated rows stay, and telling so is one comparison of memory
        return np.ones(len(left), dtype=bool)
    nulls = _mask(left.is_null()), _mask(right.is_null())
    both, present = nulls[0] & nulls[1], ~(nulls[0] | nulls[1])
    kind = left.type
    if pa.types.is_struct(kind):
        inside: Mask = present.copy()
        for number in range(kind.num_fields):
            inside &= _equal(pc.struct_field(left, number), pc.struct_field(right, number))
        return both | inside
    if pa.types.is_nested(kind):
        return both | (present & _equal_lists(left, right))
    found: Mask = _mask(pc.equal(left, right))
    if pa.types.is_floating(kind):
        found |= _mask(pc.is_nan(left)) & _mask(pc.is_nan(right))
    return both | (present & found)


def _equal_lists(left: pa.Array, right: pa.Array) -> Mask:
    """Return where lists, or maps as lists of entries in their order, have as many elements and all of them are the same."""
    starts = [_offsets(each) for each in (left, right)]
    lengths = [np.diff(each) for each in starts]
    same: Mask = lengths[0] == lengths[1]
    counts = np.where(same, lengths[0], 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    one, other = (
        _elements(array).take(pa.array(begin[:-1][rows] + within))
        for array, begin in zip((left, right), starts, strict=True)
    )
    same[rows[~_equal(one, other)]] = False
    return same


def _offsets(array: pa.Array) -> npt.NDArray[np.int64]:
    if pa.types.is_fixed_size_list(array.type):
        starts: npt.NDArray[np.int64] = np.arange(len(array) + 1, dtype=np.int64) + array.offset
        return starts * int(array.type.list_size)
    return np.asarray(array.offsets).astype(np.int64)


def _elements(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        return pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return array.values


def _mask(values: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(values, False)).astype(bool)
