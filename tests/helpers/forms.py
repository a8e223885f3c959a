"""Which forms of a test the gate runs, and which only the long tier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pytest


def forms(values: Iterable[Any], gate: Iterable[Any]) -> list[Any]:
    """Give all values as parameters; those that are not in ``gate`` are for the long tier."""
    known, wanted = list(values), list(gate)
    assert wanted and all(each in known for each in wanted), f"the gate has {wanted} of {known}"
    return [pytest.param(value, marks=() if value in wanted else pytest.mark.long) for value in known]


def in_turn(*axes: Sequence[Any]) -> list[Any]:
    """Give every combination of some axes; the gate has as many as the longest axis, each value of each axis among them."""
    gate = {tuple(turn % len(axis) for axis in axes) for turn in range(max(map(len, axes)))}
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(axes, places, strict=True)),
            marks=() if places in gate else pytest.mark.long,
        )
        for places in product(*(range(len(axis)) for axis in axes))
    ]


def of_the_gate(models: Mapping[str, Any], config: pytest.Config) -> dict[str, Any]:
    """Give a third of a test's many models, the first among them; with ``--long`` all."""
    step = 1 if config.getoption("--long") else 3
    return dict(list(models.items())[::step])


def named(value: Any) -> str | None:
    """Give the name of a parameter that has one, as a part of the test's id."""
    return getattr(value, "name", None)
