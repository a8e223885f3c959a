"""The hash of rows: the same however they are ordered, cut and encoded, another one for every other value."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.schema.row_hash import ContentChange, content_hash, row_hashes, same_hash

ROW = {
    "number": (pa.int32(), 7, 8),
    "large": (pa.int64(), -(2**40), 0),
    "real": (pa.float32(), 0.5, -0.5),
    "yes": (pa.bool_(), True, False),
    "text": (pa.string(), "a", "b"),
    "nul": (pa.string(), "a", "a\0"),
    "eight": (pa.string(), "12345678", "12345679"),
    "words": (pa.string(), "123456789012345678", "123456789012345679"),
    "swapped": (pa.string(), "abcdefghijklmnop", "ijklmnopabcdefgh"),
    "long": (pa.string(), "x" * 300, "x" * 299 + "y"),
    "empty": (pa.string(), "", None),
    "body": (pa.binary(), b"\x00\x01", b"\x01\x00"),
    "fixed": (pa.binary(3), b"abc", b"abd"),
    "cents": (
        pa.decimal128(30, 2),
        Decimal("123456789012345678901.25"),
        Decimal("-123456789012345678901.25"),
    ),
    "day": (pa.date32(), datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
    "at": (
        pa.timestamp("us", "UTC"),
        datetime.datetime(2026, 1, 1),
        datetime.datetime(2026, 1, 1, 0, 0, 0, 1),
    ),
    "tags": (pa.list_(pa.string()), ["a", "b"], ["b", "a"]),
    "no_tags": (pa.list_(pa.int32()), [], [None]),
    "nested": (pa.list_(pa.list_(pa.int32())), [[1], [2]], [[1, 2], []]),
    "inside": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        {"a": 1, "b": None},
        {"a": None, "b": "1"},
    ),
    "pairs": (pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", 2)], [("a", 2), ("b", 1)]),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, *_) in ROW.items()])
ONE = {name: value for name, (_, value, _) in ROW.items()}


def table(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


@pytest.mark.parametrize("name", ROW)
def test_another_value_of_any_type_is_another_row(name: str) -> None:
    given = content_hash(table(ONE))
    assert content_hash(table({**ONE, name: ROW[name][2]})) != given
    assert content_hash(table({**ONE, name: None})) != given


def test_a_value_in_another_column_is_another_row() -> None:
    columns = pa.schema([("a", pa.string()), ("b", pa.string())])
    one, two = (pa.Table.from_pylist([each], schema=columns) for each in ({"a": "x"}, {"b": "x"}))
    assert content_hash(one) != content_hash(two)


@pytest.mark.parametrize("name", ROW)
def test_chunks_without_rows_add_nothing(name: str) -> None:
    kind = pa.schema([(name, ROW[name][0])])
    empty, one = kind.empty_table(), pa.Table.from_pylist([{name: ROW[name][1]}], schema=kind)
    assert content_hash(empty) == 0
    assert content_hash(pa.concat_tables([empty, one, empty])) == content_hash(one)
    chunked = pa.table({name: pa.chunked_array([empty[name].combine_chunks(), *one[name].chunks])})
    assert content_hash(chunked) == content_hash(one)


def many(count: int = 200) -> pa.Table:
    made = [{**ONE, "number": n, "text": f"t{n % 7}", "tags": [str(n)] * (n % 3)} for n in range(count)]
    return table(*made, *({**ONE, name: None, "number": -1} for name in ROW))


def test_order_cuts_and_encodings_do_not_count() -> None:
    rows = many()
    given = content_hash(rows)
    order = np.random.default_rng(1).permutation(rows.num_rows)
    assert content_hash(rows.take(pa.array(order))) == given
    assert content_hash(rows.select(rows.column_names[::-1])) == given
    parts = [rows.slice(start, 17) for start in range(0, rows.num_rows, 17)]
    assert content_hash(pa.concat_tables(parts)) == given
    assert sum(map(content_hash, parts)) % 2**64 == given
    coded = rows.set_column(rows.column_names.index("text"), "text", rows["text"].dictionary_encode())
    assert content_hash(coded) == given
    assert list(row_hashes(rows.slice(3, 5))) == list(row_hashes(rows))[3:8]


def test_lists_and_maps_of_nothing_have_a_hash_for_any_element() -> None:
    for name, (kind, *_) in ROW.items():
        for made in (pa.list_(kind), pa.map_(pa.string(), kind), pa.struct([("a", kind)])):
            values = [None, {"a": None} if pa.types.is_struct(made) else []]
            rows = pa.table({"c": pa.array(values, made)})
            assert len(row_hashes(rows)) == 2, name
            assert content_hash(rows.slice(1)) != content_hash(rows.slice(0, 1))


def test_maps_have_no_order_and_zero_has_no_sign() -> None:
    turned = {"pairs": [("b", 2), ("a", 1)], "real": -0.0}
    assert content_hash(table({**ONE, **turned})) == content_hash(table({**ONE, "real": 0.0}))


def test_widened_and_added_columns_keep_the_hash() -> None:
    rows = many()
    wide = {
        "number": pa.int64(),
        "at": pa.timestamp("ns", "UTC"),
        "cents": pa.decimal128(38, 2),
        "text": pa.large_string(),
    }
    wider = rows.cast(pa.schema([(each.name, wide.get(each.name, each.type)) for each in SCHEMA]))
    more = wider.append_column("added", pa.nulls(rows.num_rows, pa.string()))
    assert content_hash(more.rename_columns([name.upper() for name in more.column_names])) == content_hash(
        rows
    )
    assert all(same_hash(each.type, wide.get(each.name, each.type)) for each in SCHEMA)
    assert not same_hash(pa.float32(), pa.float64())  # 0.1 is read as 0.1 from the double, which no float is
    assert not same_hash(pa.int32(), pa.string()) and not same_hash(pa.decimal128(9, 2), pa.decimal128(9, 3))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([Decimal("1.00")], pa.decimal128(5, 2)), pa.array([Decimal("10.0")], pa.decimal128(5, 1))),
        (pa.array([Decimal("1.00")], pa.decimal128(5, 2)), pa.array([100])),
        (pa.array([1], pa.date32()), pa.array([1], pa.int32())),
        (pa.array([7], pa.timestamp("us")), pa.array([7])),
        (pa.array([True]), pa.array([1])),
        (pa.array([""]), pa.array([0])),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([[]], pa.list_(pa.int32())), pa.array([0])),
        (pa.array([[1]], pa.list_(pa.int32())), pa.array([[1]], pa.list_(pa.date32()))),
        (pa.array([[]], pa.list_(pa.int32())), pa.array([[]], pa.map_(pa.string(), pa.int32()))),
    ],
)
def test_values_of_two_kinds_of_types_are_other_values(one: pa.Array, other: pa.Array) -> None:
    assert content_hash(pa.table({"v": one})) != content_hash(pa.table({"v": other}))
    assert not same_hash(one.type, other.type)


def test_rows_that_came_and_went_leave_nothing() -> None:
    rows, found = many(), ContentChange()
    found.add(rows)
    found.remove(rows.slice(5))
    assert (found.rows, found.hash) == (5, content_hash(rows.slice(0, 5)))
    found.remove(rows.slice(0, 5))
    assert (found.rows, found.hash) == (0, 0)


def test_a_doubled_row_counts() -> None:
    assert content_hash(table(ONE, ONE)) == 2 * content_hash(table(ONE)) % 2**64
    assert content_hash(table(ONE, ONE, ONE)) != content_hash(table(ONE))
