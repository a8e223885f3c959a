"""Rows of a table by their numbers; a run of rows that follow each other is not copied.

Arrow's own way puts the pieces of a column together first, and no array of texts holds more than 2 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
Numbers = npt.NDArray[np.int64]
_FEW_TIMES = 4
_ONE_ARRAY = 2**31 - 1
"""Bytes that one array of texts, lists or structs of them can hold."""


def rows_at(rows: Rows, numbers: Numbers) -> Rows:
    """Return the rows with some numbers, in their order."""
    count = len(numbers)
    if not count:
        return rows.slice(0, 0)
    first = int(numbers[0])
    if int(numbers[-1]) - first == count - 1 and bool(np.all(np.diff(numbers) == 1)):
        return rows.slice(first, count)
    return taken(rows, numbers) if isinstance(rows, pa.Table) else rows.take(pa.array(numbers))


def taken(rows: pa.Table, numbers: Numbers | pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return copies of some rows, in the order of their numbers, however large they are together.

    Of many rows few are taken piece by piece, as Arrow alone would copy all of a text column's pieces first.
    """
    assert not getattr(numbers, "null_count", 0), "a number that is null is no row"
    wanted = np.asarray(numbers).astype(np.int64, copy=False)
    few = rows.num_rows > _FEW_TIMES * len(wanted) and not _is_whole(rows)
    if not few and _fits(rows, wanted):
        return rows.take(pa.array(wanted))
    batches = rows.to_batches()
    ends = np.cumsum([each.num_rows for each in batches])
    parts = [
        part
        for portion in np.array_split(wanted, _portions(rows, len(wanted)))
        for part in _gathered(rows.schema, batches, ends, portion)
    ]
    return pa.concat_tables(parts)


def values_at(values: pa.ChunkedArray, numbers: Numbers | pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return copies of some values of a column; see `taken`."""
    return taken(pa.table({"": values}), numbers).column(0)


def aligned(left: pa.Table, right: pa.Table) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield as many rows of one table as of another at a time, so that each of their columns can be made one array."""
    if left.num_rows < 2 or (holds_as_one(left) and holds_as_one(right)):
        yield left, right
        return
    half = left.num_rows // 2
    yield from aligned(left.slice(0, half), right.slice(0, half))
    yield from aligned(left.slice(half), right.slice(half))


def holds_as_one(rows: pa.Table, times: int = 1) -> bool:
    """Return whether one array holds a column of some rows, whichever it is."""
    return rows.nbytes * times <= _ONE_ARRAY or _widest(rows) * times <= _ONE_ARRAY


def _gathered(
    schema: pa.Schema, batches: list[pa.RecordBatch], ends: Numbers, numbers: Numbers
) -> Iterator[pa.Table]:
    """Yield rows by their numbers, each of them copied out of its batch first."""
    distinct, back = np.unique(numbers, return_inverse=True)
    parts, first = [], 0
    for batch, end in zip(batches, ends, strict=True):
        last = int(np.searchsorted(distinct, end))
        if last > first:
            parts.append(rows_at(batch, distinct[first:last] - (end - batch.num_rows)))
        first = last
    found = pa.Table.from_batches(parts, schema)
    if len(numbers) < 2 or _fits(found, back):
        yield found.combine_chunks().take(pa.array(back))
        return
    del found, parts
    for half in np.array_split(numbers, 2):
        yield from _gathered(schema, batches, ends, half)


def _is_whole(rows: pa.Table) -> bool:
    return all(column.num_chunks < 2 for column in rows.columns)


def _fits(rows: pa.Table, numbers: Numbers) -> bool:
    """Return whether one array holds a column of some rows before and after they are taken."""
    if holds_as_one(rows, max(1, len(numbers))):
        return True
    return holds_as_one(rows, max(1, int(np.bincount(numbers).max(initial=0))))


def _portions(rows: pa.Table, count: int) -> int:
    """Return in how many portions so many rows are taken, for each to be about half of what one array holds."""
    size: int = _widest(rows) * count // max(1, rows.num_rows)
    return max(1, min(count, -(-2 * size // _ONE_ARRAY)))


def _widest(rows: pa.Table) -> int:
    widest: int = max((sum(map(_size, column.chunks)) for column in rows.columns), default=0)
    return widest


def _size(values: pa.Array) -> int:
    """Return the bytes of values; those of a dictionary are shared by the pieces of a column."""
    size: int = (values.indices if pa.types.is_dictionary(values.type) else values).nbytes
    return size
