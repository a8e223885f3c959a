"""Rows of a table by their numbers; a run of rows that follow each other is not copied."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
_FEW_TIMES = 4


def rows_at(rows: Rows, numbers: npt.NDArray[np.int64]) -> Rows:
    """Return the rows with some numbers, in their order.

    Args:
        rows: The rows.
        numbers: Row numbers, from 0.
    """
    count = len(numbers)
    if not count:
        return rows.slice(0, 0)
    first = int(numbers[0])
    if int(numbers[-1]) - first == count - 1 and bool(np.all(np.diff(numbers) == 1)):
        return rows.slice(first, count)
    return rows.take(pa.array(numbers))


def taken(rows: pa.Table, numbers: npt.NDArray[np.int64]) -> pa.Table:
    """Return some of many rows, in the order of their numbers; Arrow alone would copy all of a text column's pieces first.

    Args:
        rows: The rows.
        numbers: Row numbers, from 0, in any order.
    """
    if rows.num_rows <= _FEW_TIMES * len(numbers):
        return rows.take(pa.array(numbers))
    batches = rows.to_batches()
    ends = np.cumsum([each.num_rows for each in batches])
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    parts, first = [], 0
    for batch, end in zip(batches, ends, strict=True):
        last = int(np.searchsorted(ascending, end))
        if last > first:
            parts.append(rows_at(batch, ascending[first:last] - (end - batch.num_rows)))
        first = last
    back = np.empty(len(numbers), np.int64)
    back[order] = np.arange(len(numbers))
    return pa.Table.from_batches(parts, rows.schema).combine_chunks().take(pa.array(back))
