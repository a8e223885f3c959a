"""Laying a grid over columns: from values to coordinates of a curve, fitted to the values there are."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.enums import CurveBuild, LayoutStrategy
from hudi_engine.format.layout.curves import BITS, Coordinates, Places, hilbert, z_order
from hudi_engine.format.layout.words import Words, is_text, order_words

_TEXT_BYTES = 64
_MOST_STEPS = 65_535


@dataclass(frozen=True)
class Axis:
    """One column of the grid; picklable.

    Args:
        prefix: Bytes with which all texts of the sample begin.
        steps: ``SAMPLE`` only: values between which the ranks lie, ascending.
    """

    column: str
    prefix: bytes
    lowest: int
    highest: int
    steps: npt.NDArray[np.generic] | None = None

    def coordinates(self, values: pa.Array) -> npt.NDArray[np.uint32]:
        """Return the coordinate of each value; null is 0, values outside the sample are at its ends."""
        if self.steps is not None:
            found = np.searchsorted(self.steps, _steppable(values), side="right").astype(np.uint64)
            coordinates = _spread(found, len(self.steps))
        else:
            ends = np.uint64(self.lowest), np.uint64(self.highest)
            words = np.clip(order_words(values, prefix=self.prefix), *ends)
            coordinates = _spread(words - ends[0], self.highest - self.lowest)
        if values.null_count:
            coordinates[np.asarray(values.is_null())] = 0
        return coordinates


@dataclass(frozen=True)
class Grid:
    """A grid and the curve through it; picklable."""

    axes: tuple[Axis, ...]
    strategy: LayoutStrategy

    def places(self, rows: pa.Table) -> Places:
        """Return the place of each row on the curve, as bytes that sort in its order."""
        points: Coordinates = np.stack(
            [axis.coordinates(_one(rows.column(axis.column))) for axis in self.axes]
        )
        return hilbert(points) if self.strategy is LayoutStrategy.HILBERT else z_order(points)


def fit_grid(sample: pa.Table, columns: tuple[str, ...], strategy: LayoutStrategy, build: CurveBuild) -> Grid:
    """Fit a grid to rows."""
    return Grid(tuple(_axis(name, _one(sample.column(name)), build) for name in columns), strategy)


def _spread(numbers: Words, greatest: int) -> npt.NDArray[np.uint32]:
    """Return whole numbers up to ``greatest`` spread over all coordinates, so that every column counts alike."""
    return (numbers * (float(2**BITS - 1) / max(1, greatest))).astype(np.uint32)


def _axis(name: str, values: pa.Array, build: CurveBuild) -> Axis:
    known = values.drop_null()
    if not len(known):
        return Axis(name, b"", 0, 0)
    if build is CurveBuild.SAMPLE:
        return Axis(name, b"", 0, 0, _steps(known))
    prefix = _common_prefix(known) if is_text(known.type) else b""
    words: Words = order_words(known, prefix=prefix)
    return Axis(name, prefix, int(words.min()), int(words.max()))


def _steps(values: pa.Array) -> npt.NDArray[np.generic]:
    found: npt.NDArray[np.generic] = np.unique(_steppable(values))
    if len(found) <= _MOST_STEPS:
        return found
    # Ranks count rows, not values, so that a value of many rows does not crowd out the others.
    every = np.sort(_steppable(values))
    return np.unique(every[np.linspace(0, len(every) - 1, _MOST_STEPS).astype(np.int64)])


def _steppable(values: pa.Array) -> npt.NDArray[np.generic]:
    if not is_text(values.type):
        return order_words(values)
    cut = pc.binary_slice(pc.fill_null(values.cast(pa.large_binary()), b""), 0, _TEXT_BYTES)
    return np.array(cut.to_numpy(zero_copy_only=False), dtype=f"S{_TEXT_BYTES}")


def _common_prefix(values: pa.Array) -> bytes:
    ends = pc.min_max(values.cast(pa.large_binary())).as_py()
    prefix: bytes = os.path.commonprefix([ends["min"], ends["max"]])
    return prefix


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
        )
    return column
