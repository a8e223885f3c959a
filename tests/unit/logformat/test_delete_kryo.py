"""Delete blocks of content versions 1 and 2, against bytes that Hudi 0.12.2 serialized."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

import pytest
from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.logformat.blocks.delete import decode
from hudi_engine.format.logformat.blocks.delete_record import DeleteRecord
from hypothesis import given
from hypothesis import strategies as st

KEYS = (
    "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b6579bb010401016f"
    "72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f90101827001823101010104"
    "016b6579207477ef01010101810186c3bc6ec3afeda0bdedb880"
)
KEYS_OF_ONE_FOLDER = (
    "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b6579bb010301016f"
    "72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f9010173616de50182310101"
    "01040132b2"
)
RECORDS = (
    "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264bb0113"
    "01016f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f72e40101026f72"
    "672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f901018270016bb00200010101"
    "01020105016b2db5020901010101020105016b313039393531313632373737b60980808080804001010101020105016b"
    "2db1090101010101020105016b746578f40301746578f40101010102010501826b0301810101010102010501836bc3a9"
    "030182c3a901010101020105016b747275e5050101010101020105016b312eb5043fc0000001010101020105016b2d32"
    "2eb50ac00400000000000001010101020105016b31323334353637383930313233343536373839302e31323334353637"
    "3839b001036a6176612e6d6174682e426967446563696d61ec010e018ee90ff6c373e0ee4e3f0ad21401010101020105"
    "016bb001030102000001010101020105016b2d312e35b001030103ff6a0401010101020105016b313936392d31322d33"
    "b101046a6176612e74696d652e4c6f63616c446174e501b10f0c1f01010101020105016b393939392d30312d30b20104"
    "018f4e01020101010102010501856bc3bc6ec3af0c0106c3bc6ec3af0101010102010501826b0c010101010101020105"
    "016b6e756cec00"
)
NO_RECORDS = (
    "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264bb0101"
)
ONE_RECORD_TWICE = (
    "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264bb0103"
    "01016f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f72e40101026f72"
    "672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f901018270018261020e010103"
)
A_TIMESTAMP = (
    "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264bb0102"
    "01016f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f72e40101026f72"
    "672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f90101827001826101036a6176"
    "612e73716c2e54696d657374616df00105"
)
ORDERING_VALUES: list[tuple[Any, str | None]] = [
    (None, None),
    (-5, "IntWrapper"),
    (2**40, "LongWrapper"),
    (-1, "LongWrapper"),
    ("text", "StringWrapper"),
    ("", "StringWrapper"),
    ("é", "StringWrapper"),
    (True, "BooleanWrapper"),
    (1.5, "FloatWrapper"),
    (-2.5, "DoubleWrapper"),
    (Decimal("12345678901234567890.1234567890"), "BigDecimal"),
    (Decimal(0), "BigDecimal"),
    (Decimal("-1.50"), "BigDecimal"),
    (datetime.date(1969, 12, 31), "LocalDate"),
    (datetime.date(9999, 1, 2), "LocalDate"),
    ("ünï", "StringWrapper"),
    ("", "StringWrapper"),
    (None, None),
]


FIRST, NEXT = A_TIMESTAMP[: A_TIMESTAMP.index("01036a6176612e")], "0101010102010501"
"""A record with the key `a` up to its ordering value, and the next one up to its key."""
NAMED_UTF8 = ("org.apache.avro.util.Utf8", "org.apache.hudi.org.apache.avro.util.Utf8")
LONGS = [2**62 - 1, 2**62, 2**63 - 1, -(2**62), -(2**62) - 1, -(2**63), 0, 5]


def block(version: int, hex_bytes: str) -> memoryview:
    content = bytes.fromhex(hex_bytes)
    return memoryview(struct.pack(">ii", version, len(content)) + content)


def test_keys_are_read_with_letters_of_all_planes() -> None:
    assert list(decode(block(1, KEYS))) == [
        DeleteRecord("1", "p", None),
        DeleteRecord("key two", "p", None),
        DeleteRecord("ünï😀", "", None),
    ]


def test_a_text_that_is_told_by_the_number_of_an_earlier_one_is_that_text() -> None:
    assert list(decode(block(1, KEYS_OF_ONE_FOLDER))) == [
        DeleteRecord("1", "same", None),
        DeleteRecord("22", "same", None),
    ]


@pytest.mark.parametrize("utf8_number", ["0c", "1d"], ids=["0.12", "0.13"])
def test_ordering_values_are_read_with_their_kinds(utf8_number: str) -> None:
    of_release = RECORDS.replace("af0c01", f"af{utf8_number}01").replace("6b0c01", f"6b{utf8_number}01")

    found = list(decode(block(2, of_release)))

    assert [(each.ordering_value, each.wrapper) for each in found] == ORDERING_VALUES
    assert {each.partition_path for each in found} == {"p"}


def two_records(first: str, second: str) -> memoryview:
    """Return the block of records with the keys `a` and `b` that have these ordering values."""
    return block(2, FIRST.replace("bb0102", "bb0103") + first + NEXT + "8262" + second)


def kryo_long(value: int) -> str:
    """Return a long as Kryo writes it: eight times seven bits, and what is left in one byte."""
    number, found = (value << 1) ^ (value >> 63), bytearray()
    for _ in range(8):
        found.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return found.hex()
    return bytes([*found, number]).hex()


@pytest.mark.parametrize("value", LONGS)
def test_longs_of_all_sizes_are_read_and_what_follows_them(value: int) -> None:
    found = list(decode(two_records(f"09{kryo_long(value)}", f"09{kryo_long(7)}")))
    assert [(each.record_key, each.ordering_value) for each in found] == [("a", value), ("b", 7)]


@pytest.mark.parametrize(("first", "cached"), [("first", "00"), ("", "00"), ("", "0181"), ("", "05")])
@pytest.mark.parametrize("name", NAMED_UTF8)
@pytest.mark.parametrize("hash_of", [None, 0, 3556653], ids=["avro 1.8", "no hash yet", "hash"])
def test_texts_before_hudi_numbered_their_class_are_read(
    name: str, hash_of: int | None, first: str, cached: str
) -> None:
    def text(value: str, cached: str) -> str:
        raw = value.encode()
        numbers = [] if hash_of is None else [kryo_long(hash_of)]
        return "".join(
            ["01", "01", bytes([len(raw) + 1]).hex(), raw.hex(), *numbers, kryo_long(len(raw)), cached]
        )

    named = f"0103{name[:-1].encode().hex()}{ord(name[-1]) | 0x80:02x}"
    found = list(decode(two_records(named + text(first, cached), "0103" + text("text", "01746578f4"))))
    assert [(each.record_key, each.ordering_value) for each in found] == [("a", first), ("b", "text")]


def test_a_year_that_is_none_fails_by_name() -> None:
    name = "java.time.LocalDate"
    date = f"0103{name[:-1].encode().hex()}{ord(name[-1]) | 0x80:02x}"
    with pytest.raises(CorruptTableError):
        list(decode(two_records(f"{date}01ffffffff0f0101", "00")))


def test_an_empty_list_and_one_record_twice_are_read() -> None:
    assert list(decode(block(2, NO_RECORDS))) == []
    assert list(decode(block(2, ONE_RECORD_TWICE))) == [DeleteRecord("a", "p", 7)] * 2


def test_an_ordering_value_of_another_class_is_refused_by_its_name() -> None:
    with pytest.raises(UnsupportedTableError, match=r"java\.sql\.Timestamp, which is read in a JVM only"):
        list(decode(block(2, A_TIMESTAMP)))


def test_an_array_of_another_class_is_refused() -> None:
    with pytest.raises(CorruptTableError, match="DeleteRecord;' belongs"):
        list(decode(block(2, KEYS)))


@pytest.mark.parametrize(("version", "hex_bytes"), [(1, KEYS), (2, RECORDS)])
def test_content_that_ends_early_is_refused_wherever_it_ends(version: int, hex_bytes: str) -> None:
    for size in range(0, len(hex_bytes) - 2, 2):
        with pytest.raises(CorruptTableError):
            list(decode(block(version, hex_bytes[:size])))


@given(st.data())
def test_damaged_content_fails_by_name(data: st.DataObject) -> None:
    content = bytearray.fromhex(data.draw(st.sampled_from([KEYS, RECORDS, ONE_RECORD_TWICE])))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for version in (1, 2):
        try:
            list(decode(block(version, content.hex())))
        except (CorruptTableError, UnsupportedTableError):
            pass
