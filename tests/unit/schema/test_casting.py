"""Reading stored columns as the table's type."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.casting import cast_array, cast_table

OLD = pa.struct(
    [
        ("x", pa.int32()),
        ("l", pa.list_(pa.struct([("q", pa.int32())]))),
        ("m", pa.map_(pa.string(), pa.int32())),
    ]
)
NEW = pa.struct(
    [
        ("l", pa.list_(pa.struct([("z", pa.string()), ("q", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.float64())),
        ("x", pa.string()),
    ]
)
ROWS = [
    {"x": 1, "l": [{"q": 1}, None], "m": [("a", 1)]},
    None,
    {"x": None, "l": None, "m": None},
    {"x": 4, "l": [], "m": [("b", None), ("c", 3)]},
]
EXPECTED = [
    {"l": [{"z": None, "q": 1}, None], "m": [("a", 1.0)], "x": "1"},
    None,
    {"l": None, "m": None, "x": None},
    {"l": [], "m": [("b", None), ("c", 3.0)], "x": "4"},
]


def test_columns_get_the_order_and_types_of_the_schema_and_missing_ones_are_null() -> None:
    table = pa.table({"b": [1, 2], "a": ["x", "y"], "gone": [0, 0]})
    schema = pa.schema([("a", pa.string()), ("new", pa.list_(pa.int32())), ("b", pa.string())])

    cast = cast_table(table, schema)

    assert cast.schema.equals(schema)
    assert cast.to_pydict() == {"a": ["x", "y"], "new": [None, None], "b": ["1", "2"]}


@pytest.mark.parametrize("start", range(4))
def test_nested_values_are_cast_field_by_field_also_in_a_slice(start: int) -> None:
    cast = cast_array(pa.array(ROWS, OLD).slice(start), NEW)

    cast.validate(full=True)
    assert cast.to_pylist() == EXPECTED[start:]


def test_numbers_become_text_as_java_prints_them() -> None:
    doubles = [1.5, 1e10, 1e-5, 9999999.0, 1e7, 0.001, -0.0, 0.0, float("nan"), float("-inf"), None, 5e-324]
    texts = [
        "1.5",
        "1.0E10",
        "1.0E-5",
        "9999999.0",
        "1.0E7",
        "0.001",
        "-0.0",
        "0.0",
        "NaN",
        "-Infinity",
        None,
        "4.9E-324",
    ]

    assert cast_array(pa.array(doubles, pa.float64()), pa.string()).to_pylist() == texts
    assert cast_array(pa.array([0.1, 3.4028235e38, 1e-45], pa.float32()), pa.string()).to_pylist() == [
        "0.1",
        "3.4028235E38",
        "1.4E-45",
    ]


def test_a_float_becomes_the_double_with_the_same_text() -> None:
    assert cast_array(pa.array([1.1, None], pa.float32()), pa.float64()).to_pylist() == [1.1, None]


@pytest.mark.parametrize(
    ("stored", "wanted", "value"),
    [
        (pa.array([datetime.date(2024, 2, 29)]), pa.string(), "2024-02-29"),
        (pa.array([Decimal("1.20")]), pa.decimal128(10, 4), Decimal("1.2000")),
        (pa.array([Decimal("1.20")]), pa.string(), "1.20"),
        (pa.array(["é"]), pa.binary(), "é".encode()),
        (pa.array([2**53 + 1]), pa.float64(), float(2**53)),
        (pa.array([-7]), pa.decimal128(20, 2), Decimal("-7.00")),
        (pa.array([None]), pa.list_(pa.int32()), None),
        (pa.array(["a"]).dictionary_encode(), pa.string(), "a"),
    ],
)
def test_other_promotions(stored: pa.Array, wanted: pa.DataType, value: object) -> None:
    assert cast_array(stored, wanted).to_pylist() == [value]


def test_what_does_not_fit_names_the_column() -> None:
    with pytest.raises(SchemaError, match="'n' is stored as int64 and cannot be read as int32"):
        cast_table(pa.table({"n": [2**40]}), pa.schema([("n", pa.int32())]))
    with pytest.raises(SchemaError, match="'s.x'"):
        cast_array(pa.array([{"x": True}]), pa.struct([("x", pa.date32())]), "s")
