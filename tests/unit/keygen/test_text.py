"""The text of values in keys: Java's forms."""

from __future__ import annotations

import datetime as dt
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.keygen.text import key_text
from hudi_engine.format.schema.casting import java_floating_text
from hypothesis import given
from hypothesis import strategies as st

AT = dt.datetime(2024, 2, 3, 4, 5, 6, 123456, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1.5, pa.float32(), "1.5"),
        (1e10, pa.float64(), "1.0E10"),
        (0.1, pa.float64(), "0.1"),
        (0.1, pa.float32(), "0.1"),
        (1e-5, pa.float64(), "1.0E-5"),
        (12345678.9, pa.float64(), "1.23456789E7"),
        (0.0, pa.float64(), "0.0"),
        (-0.0, pa.float64(), "-0.0"),
        (-0.0, pa.float32(), "-0.0"),
        (100.0, pa.float64(), "100.0"),
        (0.001, pa.float64(), "0.001"),
        (0.00099, pa.float64(), "9.9E-4"),
        (9999999.0, pa.float64(), "9999999.0"),
        (1e7, pa.float64(), "1.0E7"),
        (-123.456, pa.float64(), "-123.456"),
        (math.nan, pa.float64(), "NaN"),
        (math.inf, pa.float64(), "Infinity"),
        (-math.inf, pa.float32(), "-Infinity"),
        (5e-324, pa.float64(), "4.9E-324"),
        (1e-45, pa.float32(), "1.4E-45"),
        (3.4028235e38, pa.float32(), "3.4028235E38"),
        (decimal.Decimal("12.5"), pa.decimal128(10, 3), "12.500"),
        (decimal.Decimal("0"), pa.decimal128(20, 10), "0E-10"),
        (decimal.Decimal("-0.0000001"), pa.decimal128(20, 10), "-1.000E-7"),
        (True, pa.bool_(), "true"),
        (False, pa.bool_(), "false"),
        (dt.date(2024, 2, 3), pa.date32(), "2024-02-03"),
        (dt.date(1, 1, 1), pa.date32(), "0001-01-01"),
        (2_932_897, pa.date32(), "+10000-01-01"),
        (20_000_000, pa.date32(), "+56728-02-22"),
        (AT, pa.timestamp("us", "UTC"), "1706933106123456"),
        (AT, pa.timestamp("us", "Asia/Kolkata"), "1706933106123456"),
        (1706933106123, pa.timestamp("ms", "UTC"), "1706933106123"),
        (b"abc", pa.binary(), "616263"),
        (b"abc", pa.binary(3), "616263"),
        (b"", pa.binary(), ""),
        (-(2**63), pa.int64(), "-9223372036854775808"),
        ("ä/b", pa.large_string(), "ä/b"),
    ],
)
def test_text_of_a_value(value, kind, expected):
    array = pa.array([value, None], kind)
    assert key_text(array).to_pylist() == [expected, None]
    assert key_text(array).type == pa.string()
    assert key_text(pa.chunked_array([array, array])).to_pylist() == [expected, None] * 2


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        (1706933106123456, "2024-02-03 04:05:06.123"),
        (120_000, "1970-01-01 00:00:00.12"),
        (0, "1970-01-01 00:00:00.0"),
        (-1, "1970-01-01 00:00:00.0"),
        (-1_000, "1969-12-31 23:59:59.999"),
    ],
)
def test_timestamps_as_text(micros, expected):
    array = pa.array([micros, None], pa.timestamp("us", "UTC"))
    texts = key_text(array, consistent_logical_timestamp=True)
    assert texts.to_pylist() == [expected, None]


@given(st.lists(st.binary(max_size=9) | st.none(), max_size=9), st.integers(0, 4))
def test_bytes_become_hexadecimal_wherever_a_slice_begins(values, start):
    array = pa.array(values, pa.binary()).slice(min(start, len(values)))
    assert key_text(array).to_pylist() == [None if each is None else each.hex() for each in array.to_pylist()]


@given(st.lists(st.floats() | st.floats(1e-4, 1e8), max_size=20))
def test_doubles_read_back_and_equal_the_single_form(values):
    texts = key_text(pa.array(values, pa.float64())).to_pylist()
    assert texts == [java_floating_text(value) for value in values]
    for value, text in zip(values, texts, strict=True):
        assert math.isnan(value) or float(text) == value


@given(st.lists(st.floats(width=32) | st.floats(2**-12, 2**25, width=32), max_size=20))
def test_floats_read_back_and_equal_the_single_form(values):
    texts = key_text(pa.array(values, pa.float32())).to_pylist()
    assert texts == [java_floating_text(np.float32(value)) for value in values]
    for value, text in zip(values, texts, strict=True):
        assert math.isnan(value) or np.float32(text) == np.float32(value)


@given(st.decimals(-(10**9), 10**9, places=10))
def test_decimals_have_the_text_of_big_decimal(value):
    assert key_text(pa.array([value], pa.decimal128(30, 10))).to_pylist() == [str(value)]


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int8())]
)
def test_nested_types_cannot_be_keys(kind):
    with pytest.raises(SchemaError, match="cannot be a record key or partition column"):
        key_text(pa.array([], kind))


def test_dictionary_columns_have_the_text_of_their_values():
    array = pa.array([1.0, None, 1.0]).dictionary_encode()
    assert key_text(array).to_pylist() == ["1.0", None, "1.0"]
