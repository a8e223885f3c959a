"""Rows of a table by their numbers; a run of rows that follow each other is not copied."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


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
