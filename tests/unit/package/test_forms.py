"""Whatever is left for the long tier, the gate has a form of each test."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.forms import forms, in_turn


def in_gate(parameters: list[Any]) -> list[tuple[Any, ...]]:
    return [each.values for each in parameters if not each.marks]


def test_the_gate_has_the_forms_that_are_named_and_the_long_tier_the_rest() -> None:
    found = forms("abc", "b")

    assert [each.values for each in found] == [("a",), ("b",), ("c",)]
    assert in_gate(found) == [("b",)]


@pytest.mark.parametrize("gate", ["", "x", "ax"])
def test_a_form_that_is_none_of_the_test_is_refused(gate: str) -> None:
    with pytest.raises(AssertionError, match="the gate has"):
        forms("abc", gate)


def test_each_value_has_its_turn_in_the_gate_and_every_pair_in_the_long_tier() -> None:
    found = in_turn("abc", (1, 2))

    assert in_gate(found) == [("a", 1), ("b", 2), ("c", 1)]
    assert len({each.values for each in found}) == 6
