"""Delete blocks, against bytes that Hudi wrote."""

from __future__ import annotations

import datetime
import re
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hudi_engine.errors import CorruptTableError, InvalidKeyError, SchemaError, UnsupportedTableError
from hudi_engine.format.logformat.blocks import delete
from hudi_engine.format.logformat.blocks.delete import DeleteRecord
from hypothesis import given, settings
from hypothesis import strategies as st

FROM_HUDI = {
    "000000030000000f02020e54584e2d3030350200040000": ("TXN-005", ""),
    "000000030000001802020e54584e2d3030320212726567696f6e3d7573040000": ("TXN-002", "region=us"),
    "000000030000001c02020e54584e2d303032021a323032342f30312f31352f3131040000": ("TXN-002", "2024/01/15/11"),
}


def _keys(*keys: str) -> pa.Array:
    return pa.array(list(keys), pa.string())


@pytest.mark.parametrize(
    ("hex_bytes", "key"), FROM_HUDI.items(), ids=lambda value: value[-12:] if isinstance(value, str) else ""
)
def test_hudis_bytes_are_read_and_written(hex_bytes: str, key: tuple[str, str]) -> None:
    content = bytes.fromhex(hex_bytes)

    assert list(delete.decode(memoryview(content))) == [DeleteRecord(*key, None)]
    assert delete.encode(_keys(key[0]), _keys(key[1])) == content


def test_an_empty_list_is_a_single_zero() -> None:
    content = bytes.fromhex("000000030000000100")

    assert delete.encode(_keys(), _keys()) == content
    assert list(delete.decode(memoryview(content))) == []


@pytest.mark.parametrize(
    ("values", "branch", "read"),
    [
        (pa.array([True, None]), 1, True),
        (pa.array([7, None], pa.int32()), 2, 7),
        (pa.array([-(2**40), None]), 3, -(2**40)),
        (pa.array([0.5, None], pa.float32()), 4, 0.5),
        (pa.array([1.25, None]), 5, 1.25),
        (pa.array([b"\x00", None]), 6, b"\x00"),
        (pa.array(["z", None]), 7, "z"),
        (pa.array([datetime.date(1970, 1, 4), None]), 2, 3),
        (pa.array([Decimal("-1.50"), None]), 9, Decimal("-1.500000000000000")),
        (pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1), None], pa.timestamp("us", "UTC")), 3, 1_000_000),
        (pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1), None], pa.timestamp("ms", "UTC")), 3, 1_000),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_ordering_values_of_every_type(values: pa.Array, branch: int, read: Any) -> None:
    content = delete.encode(_keys("a", "b"), _keys("", ""), [values])

    first, second = delete.decode(memoryview(content))
    assert (first.ordering_value, second.ordering_value) == (read, None)
    assert content[8 + 1 + 3 + 2] == branch << 1


def test_several_ordering_fields_are_kept_together() -> None:
    content = delete.encode(
        _keys("a", "b", "c"),
        _keys("", "", ""),
        [pa.array([1, None, None]), pa.array(["x", "y", None])],
    )

    assert [record.ordering_value for record in delete.decode(memoryview(content))] == [
        (1, "x"),
        (None, "y"),
        None,
    ]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 20), pa.decimal128(38, 0)], ids=str)
def test_decimals_of_any_type_are_kept_where_their_value_fits(kind: pa.DataType) -> None:
    values = pa.array([Decimal(10**15 - 1), None], kind)

    content = delete.encode(_keys("a", "b"), _keys("", ""), [values])

    read = [record.ordering_value for record in delete.decode(memoryview(content))]
    assert read == [Decimal(10**15 - 1), None]
    assert pa.array(read).cast(kind).equals(values)


@pytest.mark.parametrize("place", range(2))
def test_text_that_is_no_utf8_is_refused_since_no_reader_would_take_the_block(place: int) -> None:
    given = [_keys("a"), _keys("b")]
    given[place] = pa.array([b"caf\xe9"]).view(pa.string())
    with pytest.raises(InvalidKeyError, match=r"b'caf\\xe9' is not UTF-8"):
        delete.encode(given[0], _keys(""), [given[1]])


def test_a_delete_without_an_ordering_value_is_kept_whatever_its_type() -> None:
    nothing = pa.array([None], pa.list_(pa.int32()))
    for ordering in ([nothing], [nothing, nothing]):
        content = delete.encode(_keys("a"), _keys(""), ordering)
        assert list(delete.decode(memoryview(content))) == [DeleteRecord("a", "", None)]


def test_int_zero_is_the_default_and_long_zero_is_not() -> None:
    for kind, read in ((pa.int32(), None), (pa.int64(), 0)):
        content = delete.encode(_keys("a"), _keys(""), [pa.array([0], kind)])
        assert next(delete.decode(memoryview(content))).ordering_value == read


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(max_size=90), st.text(max_size=5), st.none() | st.integers(-(2**63), 2**63 - 1)),
        max_size=80,
    )
)
def test_round_trip(records: list[tuple[str, str, int | None]]) -> None:
    columns = [
        pa.array([record[index] for record in records], kind)
        for index, kind in enumerate([pa.string(), pa.string(), pa.int64()])
    ]

    content = delete.encode(columns[0], columns[1], [columns[2]])

    assert list(delete.decode(memoryview(content))) == [DeleteRecord(*record) for record in records]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_is_one_clear_error(data: st.DataObject) -> None:
    content = bytearray(delete.encode(_keys("a", "bc"), _keys("p", "q"), [pa.array([1, 2])]))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    try:
        list(delete.decode(memoryview(bytes(content[:cut]))))
    except (CorruptTableError, UnsupportedTableError):
        pass


@pytest.mark.parametrize("version", [1, 2, 4])
def test_other_content_versions_are_refused(version: int) -> None:
    content = struct.pack(">ii", version, 1) + b"\x00"
    with pytest.raises(UnsupportedTableError, match=f"version {version}; .* Hudi release that wrote it"):
        list(delete.decode(memoryview(content)))


def test_an_ordering_type_that_does_not_fit_is_refused() -> None:
    for value, kind in ((Decimal("1e-16"), pa.decimal128(38, 20)), (Decimal(10**15), pa.decimal128(38, 0))):
        with pytest.raises(SchemaError, match=re.escape(f"{kind} that does not fit the decimal(30,15)")):
            delete.encode(_keys("a"), _keys(""), [pa.array([value], kind)])
    with pytest.raises(SchemaError, match="list"):
        delete.encode(_keys("a"), _keys(""), [pa.array([[1]])])


def test_records_are_decoded_as_they_are_asked_for_and_a_damaged_one_is_told_where_it_stands() -> None:
    content = delete.encode(_keys("a", "b", "c"), _keys("", "", ""))
    cut = struct.pack(">ii", 3, len(content) - 8 - 6) + content[8:-6]
    records = delete.decode(memoryview(cut))

    assert [next(records).record_key for _ in range(2)] == ["a", "b"]
    with pytest.raises(CorruptTableError, match="not a list of keys"):
        next(records)


@pytest.mark.parametrize(
    "body",
    [b"\x01\x0a\x02\x02a\x00\x00\x00", b"\x02\x02\x02a\x00\x00\x02\x02\x02a\x00\x00\x00"],
    ids=["sized", "two"],
)
def test_a_list_may_come_in_several_parts_and_say_their_bytes(body: bytes) -> None:
    content = struct.pack(">ii", 3, len(body)) + body

    assert {record.record_key for record in delete.decode(memoryview(content))} == {"a"}


def test_more_records_than_the_bytes_can_be_are_damage_before_any_is_made() -> None:
    body = bytes.fromhex("feffffffffffffffff01") + b"\x00" * 40
    with pytest.raises(CorruptTableError, match="records in 40 bytes"):
        next(delete.decode(memoryview(struct.pack(">ii", 3, len(body)) + body)))


def test_a_lack_of_memory_is_no_damage_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    content = delete.encode(_keys("a"), _keys(""))

    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(fastavro, "schemaless_reader", full)
    with pytest.raises(MemoryError):
        next(delete.decode(memoryview(content)))
