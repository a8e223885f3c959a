"""Comparing ordering values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.merge.ordering import is_default, newer_wins, ordering_ranks

NAN = float("nan")
ASCENDING = [
    ([None, -(2**63), -1, 0, 2**63 - 1], pa.int64()),
    ([None, float("-inf"), -1.5, -0.0, 0.0, 5e-324, float("inf"), NAN], pa.float64()),
    ([None, "", "a", "b", "ä"], pa.string()),
    ([None, Decimal("-1.5"), Decimal("0"), Decimal("10.25")], pa.decimal128(38, 2)),
    ([None, datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)], pa.date32()),
    ([None, False, True], pa.bool_()),
    ([None, b"", b"\x00", b"\xff"], pa.binary()),
]


@pytest.mark.parametrize(("values", "kind"), ASCENDING, ids=[str(kind) for _, kind in ASCENDING])
def test_values_compare_as_in_java(values: list[Any], kind: pa.DataType) -> None:
    column = pa.chunked_array([values[:2], values[2:]], kind)

    (ranks,) = ordering_ranks([column])

    assert all(left < right for left, right in zip(ranks[:-1], ranks[1:], strict=True))
    pairs = [(left, right) for left in range(len(values)) for right in range(len(values))]
    old = column.take(pa.array([left for left, _ in pairs]))
    new = column.take(pa.array([right for _, right in pairs]))
    assert newer_wins([old], [new]).tolist() == [right >= left for left, right in pairs]


def test_int_zero_and_null_are_the_default_value_of_a_delete_but_long_zero_is_not() -> None:
    for kind in (pa.int32(), pa.date32()):
        assert is_default([pa.chunked_array([[0, None, 1]], kind)]).tolist() == [True, True, False]
    assert is_default([pa.chunked_array([[0, None, 1]], pa.int64())]).tolist() == [False, True, False]
    assert is_default(
        [pa.chunked_array([[None, None]], pa.int64()), pa.chunked_array([[None, 1]], pa.int64())]
    ).tolist() == [True, False]


def test_a_type_without_an_order_is_refused() -> None:
    with pytest.raises(SchemaError, match="list.*cannot be compared"):
        ordering_ranks([pa.chunked_array([[[1]]])])
