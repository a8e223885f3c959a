"""Values become words in the order of the values, whatever their type."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.layout.grid import is_orderable, order_words

DAY = dt.date(2024, 2, 29)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole numbers": (pa.int64(), [-(2**63), -5, -1, 0, 1, 7, 2**63 - 1]),
    "small numbers": (pa.int8(), [-128, -1, 0, 1, 127]),
    "floats": (pa.float64(), [-math.inf, -1e300, -1.5, -5e-324, 0.0, 5e-324, 2.5, 1e300, math.inf, math.nan]),
    "short floats": (pa.float32(), [-math.inf, -2.5, 0.0, 2.5, math.inf, math.nan]),
    "decimals": (
        pa.decimal128(10, 2),
        [Decimal("-99999999.99"), Decimal("-0.01"), Decimal("0"), Decimal("12.30")],
    ),
    "long decimals": (
        pa.decimal128(38, 10),
        [Decimal("-1e20"), Decimal("-1"), Decimal("0.5"), Decimal("9e25")],
    ),
    "dates": (
        pa.date32(),
        [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), DAY, dt.date(9999, 1, 1)],
    ),
    "timestamps": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1900, 1, 1, tzinfo=dt.timezone.utc), dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)],
    ),
    "truth": (pa.bool_(), [False, True]),
    "texts": (pa.string(), ["", "A", "Z", "a", "aa", "ab", "b", "ä", "\U0001f600"]),
    "bytes": (pa.binary(), [b"", b"\x00\x01", b"a", b"\xff"]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_words_ascend_as_the_values_do(name: str) -> None:
    kind, values = COLUMNS[name]
    words = order_words(pa.array(values, kind))
    assert (np.diff(words.astype(object)) > 0).all()


@pytest.mark.parametrize("name", COLUMNS)
def test_null_comes_before_every_value_also_in_a_slice(name: str) -> None:
    kind, values = COLUMNS[name]
    words = order_words(pa.array([values[0], None, *values], kind).slice(1))
    assert words[0] == 0
    assert words[1:].tolist() == order_words(pa.array(values, kind)).tolist()


def test_both_zeros_are_one_value_and_so_are_all_nans() -> None:
    assert len(set(order_words(pa.array([0.0, -0.0])).tolist())) == 1
    assert len(set(order_words(pa.array([math.nan, -math.nan])).tolist())) == 1


def test_texts_that_begin_alike_are_told_apart_by_what_comes_then() -> None:
    texts = ["customer_0001", "customer_0002", "customer_0100"]
    assert len(set(order_words(pa.array(texts)).tolist())) == 1
    words = order_words(pa.array(texts), prefix=b"customer_")
    assert (np.diff(words.astype(object)) > 0).all()


def test_a_text_without_the_prefix_stays_on_its_side_of_those_with_it() -> None:
    texts = ["aaa", "customer", "customer_1", "customer_9", "zebra"]
    words = order_words(pa.array(texts), prefix=b"customer_").tolist()
    assert words == sorted(words) and words[0] < words[2] < words[3] < words[4]


def test_an_empty_column_has_no_words() -> None:
    assert order_words(pa.array([], pa.string())).tolist() == []


def test_nested_columns_have_no_order() -> None:
    assert not is_orderable(pa.list_(pa.int64())) and not is_orderable(pa.struct([("a", pa.int64())]))
    assert is_orderable(pa.decimal128(38, 0)) and is_orderable(pa.date32())
