"""Space-filling curves: points of a grid to their place on the curve, many at once.

The Hilbert curve by J. Skilling, "Programming the Hilbert curve" (AIP Conf. Proc. 707, 2004).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
    """Return the places of points on the Hilbert curve."""
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
