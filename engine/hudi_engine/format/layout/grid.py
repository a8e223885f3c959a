"""Laying a grid over columns: from values to coordinates of a curve, fitted to the values there are."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.enums import CurveBuild, LayoutStrategy
from hudi_engine.format.schema.nested import one_array

Coordinates = npt.NDArray[np.uint32]
"""One row a dimension, one column a point."""
Places = npt.NDArray[np.uint8]
"""One row a point: its place on the curve as a big-endian number."""

BITS = 32
_CHUNK = 65_536


def z_order(points: Coordinates) -> Places:
    """Return the places of points on the Z-order curve: the bits of the dimensions, interleaved."""
    count = points.shape[1]
    parts = [_interleave(points[:, start : start + _CHUNK]) for start in range(0, count, _CHUNK)]
    return np.concatenate(parts) if parts else np.zeros((0, 4 * points.shape[0]), np.uint8)


def hilbert(points: Coordinates, bits: int = BITS) -> Places:
    """Return the places of points on the Hilbert curve (J. Skilling, "Programming the Hilbert curve", 2004)."""
    return z_order(_transposed(points, bits))


def sort_by_place(places: Places) -> npt.NDArray[np.intp]:
    """Return the order of points along their curve; points with one place stay as they are."""
    width = -(-places.shape[1] // 8) * 8
    padded = np.zeros((places.shape[0], width), np.uint8)
    padded[:, : places.shape[1]] = places
    words = padded.view(">u8").astype(np.uint64)
    order: npt.NDArray[np.intp] = np.lexsort(words.T[::-1])
    return order


def _interleave(points: Coordinates) -> Places:
    dimensions, count = points.shape
    raw = points.astype(">u4").view(np.uint8).reshape(dimensions, count, 4)
    bits = np.unpackbits(raw, axis=2)
    packed: Places = np.packbits(bits.transpose(1, 2, 0).reshape(count, dimensions * BITS), axis=1)
    return packed


def _transposed(points: Coordinates, bits: int) -> Coordinates:
    """Return the place in transposed form: its bits dealt out to the dimensions."""
    x = [points[dimension].copy() for dimension in range(points.shape[0])]
    for bit in range(bits - 1, 0, -1):
        q, below = np.uint32(1 << bit), np.uint32((1 << bit) - 1)
        for axis in x:
            turned = (axis & q) != 0
            swap = np.where(turned, np.uint32(0), (x[0] ^ axis) & below)
            x[0] ^= np.where(turned, below, swap)
            if axis is not x[0]:
                axis ^= swap
    for dimension in range(1, len(x)):
        x[dimension] ^= x[dimension - 1]
    flip = np.zeros_like(x[0])
    for bit in range(bits - 1, 0, -1):
        flip ^= np.where((x[-1] & np.uint32(1 << bit)) != 0, np.uint32((1 << bit) - 1), np.uint32(0))
    for axis in x:
        axis ^= flip
    return np.stack(x)


Words = npt.NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)
_ALL = np.uint64(2**64 - 1)
_WORD_BYTES = 8
_EXACT_DECIMAL_DIGITS = 18


def is_orderable(kind: pa.DataType) -> bool:
    """Return whether rows can be ordered by a column of a type: any but lists, maps and structs."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of a type are ordered by their bytes."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
    )


def order_words(values: pa.Array, *, prefix: bytes = b"") -> Words:
    """Return a word a value: of texts the eight bytes after the prefix; those without it come before or after all others."""
    kind = values.type
    if is_text(kind):
        words = _text_words(values.cast(pa.large_binary()), prefix)
    elif pa.types.is_floating(kind):
        words = _float_words(_numbers(values, pa.float64()))
    elif pa.types.is_decimal(kind):
        words = _decimal_words(values)
    else:
        words = _whole_words(_numbers(_as_whole(values), pa.int64()))
    if values.null_count:
        words[np.asarray(values.is_null())] = 0
    return words


def _numbers(values: pa.Array, kind: pa.DataType) -> npt.NDArray[np.generic]:
    zero = pa.scalar(0, kind)
    found: npt.NDArray[np.generic] = np.asarray(pc.fill_null(pc.cast(values, kind), zero))
    return found


def _as_whole(values: pa.Array) -> pa.Array:
    if pa.types.is_boolean(values.type):
        return pc.cast(values, pa.int8())
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        return pc.cast(values, pa.int32())
    return values


def _whole_words(numbers: npt.NDArray[np.generic]) -> Words:
    words: Words = np.ascontiguousarray(numbers, dtype=np.int64).view(np.uint64) ^ _SIGN
    return words


def _float_words(numbers: npt.NDArray[np.generic]) -> Words:
    """Order as Spark does: -0.0 equals 0.0, and NaN is greater than everything."""
    floats = np.array(numbers, dtype=np.float64) + 0.0
    floats[np.isnan(floats)] = np.nan
    bits = floats.view(np.uint64)
    negative = (bits & _SIGN) != 0
    words: Words = np.where(negative, ~bits, bits | _SIGN)
    return words


def _decimal_words(values: pa.Array) -> Words:
    kind = values.type
    if kind.precision <= _EXACT_DECIMAL_DIGITS:
        wide = values.cast(pa.decimal128(38, kind.scale))
        # 16 bytes a value, little endian: the lower half holds all of a number of 18 digits.
        raw = np.frombuffer(wide.buffers()[1], dtype=np.int64, count=2 * (wide.offset + len(wide)))
        lower = np.array(raw[0::2][wide.offset :])
        return _whole_words(lower)
    return _float_words(_numbers(values, pa.float64()))


def _text_words(values: pa.Array, prefix: bytes) -> Words:
    values = pc.fill_null(values, b"")
    words = _eight_bytes(values, len(prefix))
    if prefix:
        other = ~np.asarray(pc.starts_with(values, pattern=prefix))
        if other.any():
            after = np.asarray(pc.greater(values, pa.scalar(prefix, values.type)))
            words[other] = np.where(after[other], _ALL, np.uint64(0))
    return words


def _eight_bytes(values: pa.Array, skip: int) -> Words:
    """Return the bytes from ``skip`` on as one big-endian number; a shorter text is filled up with zeros."""
    words: Words = np.zeros(len(values), dtype=np.uint64)
    data = values.buffers()[2]
    if not len(values) or data is None or not data.size:
        return words
    ends = np.frombuffer(values.buffers()[1], dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data, dtype=np.uint8)
    for position in range(skip, skip + _WORD_BYTES):
        at = ends[:-1] + position
        inside = at < ends[1:]
        byte = content[np.minimum(at, len(content) - 1)]
        words = (words << np.uint64(8)) | np.where(inside, byte, 0).astype(np.uint64)
    return words


_TEXT_BYTES = 64
_MAX_STEPS = 65_535


@dataclass(frozen=True)
class Axis:
    """One column of the grid; picklable.

    Args:
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
            [axis.coordinates(one_array(rows.column(axis.column))) for axis in self.axes]
        )
        return hilbert(points) if self.strategy is LayoutStrategy.HILBERT else z_order(points)


def fit_grid(sample: pa.Table, columns: tuple[str, ...], strategy: LayoutStrategy, build: CurveBuild) -> Grid:
    """Fit a grid to rows."""
    return Grid(tuple(_axis(name, one_array(sample.column(name)), build) for name in columns), strategy)


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
    if len(found) <= _MAX_STEPS:
        return found
    # Ranks count rows, not values, so that a value of many rows does not crowd out the others.
    every = np.sort(_steppable(values))
    return np.unique(every[np.linspace(0, len(every) - 1, _MAX_STEPS).astype(np.int64)])


def _steppable(values: pa.Array) -> npt.NDArray[np.generic]:
    if not is_text(values.type):
        return order_words(values)
    cut = pc.binary_slice(pc.fill_null(values.cast(pa.large_binary()), b""), 0, _TEXT_BYTES)
    return np.array(cut.to_numpy(zero_copy_only=False), dtype=f"S{_TEXT_BYTES}")


def _common_prefix(values: pa.Array) -> bytes:
    ends = pc.min_max(values.cast(pa.large_binary())).as_py()
    prefix: bytes = os.path.commonprefix([ends["min"], ends["max"]])
    return prefix
