"""Records of one file group on their way through a merge: rows, keys, and which of them delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.merge.rows_at import taken, values_at

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Entries:
    """Records in the order in which they were written; a delete is a row with its key and ordering values only.

    Attributes:
        always: Which deletes win over everything before them, whatever the ordering values.
        severed: Which rows came after a delete of their key, so that nothing older may fill their nulls.
        provided: For each row and column, whether the record states a value; None when all say all.
    """

    rows: pa.Table
    keys: pa.ChunkedArray
    deleted: Mask
    always: Mask
    severed: Mask
    provided: Mask | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, positions: Positions) -> Entries:
        """Return the rows at ``positions``, in that order."""
        return Entries(
            taken(self.rows, positions),
            values_at(self.keys, positions),
            self.deleted[positions],
            self.always[positions],
            self.severed[positions],
            None if self.provided is None else self.provided[positions],
        )

    def slice(self, start: int, count: int) -> Entries:
        """Return ``count`` rows from ``start`` on; shares memory."""
        end = start + count
        return Entries(
            self.rows.slice(start, count),
            self.keys.slice(start, count),
            self.deleted[start:end],
            self.always[start:end],
            self.severed[start:end],
            None if self.provided is None else self.provided[start:end],
        )

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return int(self.rows.nbytes + self.keys.nbytes + 3 * len(self))


def plain_entries(
    rows: pa.Table, keys: pa.ChunkedArray, deleted: Mask | None, always: Mask | None
) -> Entries:
    """Return entries of whole rows."""
    count = rows.num_rows
    nothing = np.zeros(count, dtype=bool)
    return Entries(
        rows,
        keys,
        nothing if deleted is None else deleted,
        nothing if always is None else always,
        np.zeros(count, dtype=bool),
    )


def concat_entries(parts: Sequence[Entries]) -> Entries:
    """Return one after the other; all parts have the same columns."""
    if len(parts) == 1:
        return parts[0]
    provided = None
    if any(part.provided is not None for part in parts):
        provided = np.concatenate([_provided(part) for part in parts])
    return Entries(
        pa.concat_tables([part.rows for part in parts]),
        pa.chunked_array([chunk for part in parts for chunk in part.keys.chunks], pa.string()),
        np.concatenate([part.deleted for part in parts]),
        np.concatenate([part.always for part in parts]),
        np.concatenate([part.severed for part in parts]),
        provided,
    )


def _provided(part: Entries) -> Mask:
    if part.provided is not None:
        return part.provided
    return np.ones((len(part), part.rows.num_columns), dtype=bool)
