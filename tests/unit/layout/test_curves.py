"""The curves visit every point once, and neighbours on the Hilbert curve are neighbours on the grid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hudi_engine.format.layout.grid import hilbert, sort_by_place, z_order


def grid(dimensions: int, bits: int) -> np.ndarray:
    """Every point of a grid, a column each."""
    return np.array(list(itertools.product(range(2**bits), repeat=dimensions)), dtype=np.uint32).T


def interleaved(point: tuple[int, ...]) -> int:
    """The place on the Z-order curve, bit by bit."""
    place = 0
    for bit in range(31, -1, -1):
        for coordinate in point:
            place = place << 1 | (coordinate >> bit & 1)
    return place


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_steps_of_the_hilbert_curve_go_to_a_neighbour(dimensions: int, bits: int) -> None:
    points = grid(dimensions, bits)
    walk = points[:, sort_by_place(hilbert(points, bits))].astype(int)
    steps = np.abs(np.diff(walk, axis=1)).sum(axis=0)
    assert (steps == 1).all()
    assert len({bytes(place) for place in hilbert(points, bits)}) == points.shape[1]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 5])
def test_z_order_interleaves_the_bits(dimensions: int) -> None:
    points = np.random.default_rng(1).integers(0, 2**32, (dimensions, 200), dtype=np.uint32)
    places = [int.from_bytes(bytes(place), "big") for place in z_order(points)]
    assert places == [interleaved(tuple(int(each) for each in point)) for point in points.T]


def test_a_full_width_hilbert_curve_keeps_points_apart() -> None:
    points = np.random.default_rng(2).integers(0, 2**32, (3, 5000), dtype=np.uint32)
    assert len({bytes(place) for place in hilbert(points)}) == 5000


def test_the_order_along_a_curve_is_stable_and_that_of_the_bytes() -> None:
    points = np.random.default_rng(3).integers(0, 4, (3, 70_000), dtype=np.uint32)
    places = z_order(points)
    order = sort_by_place(places)
    as_bytes = [bytes(place) for place in places]
    assert order.tolist() == sorted(range(len(as_bytes)), key=as_bytes.__getitem__)


def test_no_points_have_no_places() -> None:
    none = np.zeros((2, 0), np.uint32)
    assert z_order(none).shape == (0, 8) and sort_by_place(z_order(none)).tolist() == []
