"""Bloom filters: byte-exact with Hudi's, and never missing a key."""

from __future__ import annotations

import base64
import hashlib
import struct

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, CorruptTableError, UnsupportedTableError
from hudi_engine.format.config.enums import BloomFilterType
from hudi_engine.format.index.filters.bloom import BloomFilter
from hypothesis import given
from hypothesis import strategies as st

SMALL = ["id:1,name:Alice", "TXN-001", "é"]
EMPTY_SIMPLE = "/////wAAABQBAAABIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
SMALL_SIMPLE = "/////wAAABQBAAABIFKAAEGJDAIwIAAAAABgEAOAIABGITIAJAQAQAQgEAyshCAYAA=="
SMALL_DYNAMIC = (
    "/////wAAABQBAAABIAAAAAoAAAADAAAAAf////8AAAAUAQAAASBSgABBiQwCMCAAAAAAYBADgCAARiEyACQEAEAEIBAMrIQgGAA="
)
SMALL_TWO_ROWS = (
    "/////wAAABQBAAABIAAAAAIAAAABAAAAAv////8AAAAUAQAAASBSgAABiAgCECAAAAAAQBACgCAABiAwACQEAEAEIBAIKAAAGAD/"
    "////AAAAFAEAAAEgAgAAQAkEACAgAAAAACAAAQAAAEABAgAAAAAAACAABISEIAAA"
)
FOOTERS = {
    ("2", "3", "1"): "80dccc8c01cdaffb6bae2936d62bec60b7a5ca635401f82e711ea70d1450b3e1",
    ("2", "3", "1", "4"): "20a16e582a630b81b8ace9e815c5f8de06dddd22e5a2038797fc47f8337e431b",
    ("id:2,name:Bob",): "2cf1374a5cd420a65eb585696ba62c57934bed62fbb9c5e51b80624e2d7c52b2",
    (
        "id:1,name:Alice",
        "id:3,name:Carol",
    ): "90778104f73b83646629487b29fb25ced461bf257360a128a0fa33ef707e6bdb",
    (
        "3eeb61f7-c2b0-4636-99bd-5d7a5a1d2c04",
        "c8abbe79-8d89-47ea-b4ce-4d224bae5bfa",
    ): "96e792f68b063ffa07d3d876c6e9e1421b225a716bc17f83119f4af143def128",
    ("TXN-007", "TXN-008"): "68357731087046edbaffde28b1d2544a2cd7063e6ab810025a398ea3fede9f39",
}
# Bits of one key in a filter of Hudi's default size.
POSITIONS = {
    "TXN-001": (762789, 591431, 1893349, 899664, 868522, 500993, 2540709, 2143149, 1536017, 837443),
    "1": (1460963, 105785, 1189081, 2066078, 47219, 588992, 1488581, 1702643, 2490016, 883953),
}


def small(kind: BloomFilterType, row_capacity: int = 10) -> BloomFilter:
    bloom = BloomFilter.sized_for(10, fpp=1e-6, kind=kind)
    bloom.row_capacity = row_capacity
    return bloom


@pytest.mark.parametrize(("keys", "expected"), FOOTERS.items(), ids=lambda value: str(value)[:30])
def test_a_filter_with_the_default_size_is_the_one_hudi_writes(keys, expected):
    bloom = BloomFilter.for_keys(pa.array(keys), entries=60000)
    text = bloom.to_text()
    assert (bloom.bits, bloom.hashes, len(text)) == (2587966, 30, 431380)
    assert hashlib.sha256(text.encode()).hexdigest() == expected


@pytest.mark.parametrize("key", POSITIONS)
def test_the_bits_of_a_key_are_where_hudi_puts_them(key):
    data = base64.b64decode(BloomFilter.for_keys(pa.array([key]), entries=60000).to_text())
    bits = data[38:]
    assert all(bits[position >> 3] >> (position & 7) & 1 for position in POSITIONS[key])


def test_small_filters_are_hadoops_byte_for_byte():
    simple = small(BloomFilterType.SIMPLE)
    assert simple.to_text() == EMPTY_SIMPLE
    simple.add(pa.array(SMALL))
    assert simple.to_text() == SMALL_SIMPLE
    dynamic = small(BloomFilterType.DYNAMIC_V0)
    dynamic.add(pa.array(SMALL))
    assert dynamic.to_text() == SMALL_DYNAMIC


def test_a_full_row_is_followed_by_another():
    bloom = small(BloomFilterType.DYNAMIC_V0, row_capacity=2)
    bloom.add(pa.array(SMALL))
    assert bloom.to_text() == SMALL_TWO_ROWS
    assert bloom.might_contain_all(pa.array([*SMALL, "other"])).tolist() == [True, True, True, False]


def test_keys_added_one_by_one_or_at_once_make_the_same_rows():
    keys = pa.array([f"k{number}" for number in range(11)])
    at_once, one_by_one = (small(BloomFilterType.DYNAMIC_V0, row_capacity=3) for _ in range(2))
    at_once.add(keys)
    for number in range(len(keys)):
        one_by_one.add(keys.slice(number, 1))
    assert at_once.row_count == 4
    assert at_once.to_text() == one_by_one.to_text()


def test_a_full_filter_starts_again_at_its_first_row():
    bloom = BloomFilter.sized_for(2, max_entries=4)
    bloom.add(pa.array([f"k{number}" for number in range(9)]))
    assert bloom.row_count == 2
    assert bloom.might_contain_all(pa.array([f"k{number}" for number in range(9)])).all()


@given(
    st.lists(st.text(max_size=20), max_size=40),
    st.sampled_from(BloomFilterType),
    st.integers(1, 50),
    st.integers(1, 50),
)
def test_every_key_is_found_again_after_a_round_trip(keys, kind, entries, max_entries):
    column = pa.array(keys, pa.string())
    bloom = BloomFilter.for_keys(column, entries=entries, fpp=1e-3, kind=kind, max_entries=max_entries)
    again = BloomFilter.from_text(bloom.to_text(), kind.value)
    assert again.might_contain_all(column).all()
    assert again.to_text() == bloom.to_text()


def test_other_keys_are_rarely_found():
    bloom = BloomFilter.for_keys(pa.array([f"in-{number}" for number in range(5000)]), fpp=1e-3)
    wrong = bloom.might_contain_all(pa.array([f"out-{number}" for number in range(20000)])).sum()
    assert wrong < 60


def test_without_a_rate_a_filter_of_its_keys_is_wrong_once_in_a_hundred_thousand():
    keys = pa.array([f"in-{number}" for number in range(50_000)])
    fitted = BloomFilter.for_keys(keys)
    assert fitted.might_contain_all(keys).all()
    assert fitted.bits < 28 * len(keys)
    assert fitted.might_contain_all(pa.array([f"out-{number}" for number in range(300_000)])).sum() < 15


def test_without_a_rate_a_filter_of_a_given_number_of_keys_is_that_of_hudi():
    keys = pa.array(["a", "b"])
    given = BloomFilter.for_keys(keys, entries=60_000, fpp=1e-9)
    assert BloomFilter.for_keys(keys, entries=60_000).to_text() == given.to_text()


@pytest.mark.parametrize("fpp", [1e-1, 1e-2, 1e-3])
def test_a_filter_sized_to_its_keys_has_half_the_hashes_and_keeps_the_rate(fpp):
    keys = pa.array([f"in-{number}" for number in range(5000)])
    fitted, smallest = BloomFilter.for_keys(keys, fpp=fpp), BloomFilter.sized_for(5000, fpp=fpp)
    assert fitted.hashes == -(-smallest.hashes // 2)
    assert smallest.bits < fitted.bits < 1.6 * smallest.bits
    wrong = fitted.might_contain_all(pa.array([f"out-{number}" for number in range(20000)])).mean()
    assert 0.7 * fpp < wrong < 1.3 * fpp + 0.001


def test_answers_come_in_the_order_of_the_keys():
    bloom = BloomFilter.for_keys(pa.array(["short", "a much longer key"]))
    asked = ["x", "a much longer key", "yy", "short", "zzz" * 9]
    assert bloom.might_contain_all(pa.array(asked)).tolist() == [False, True, False, True, False]


def test_an_absent_type_code_means_simple():
    assert BloomFilter.from_text(SMALL_SIMPLE).kind is BloomFilterType.SIMPLE


@pytest.mark.parametrize(
    ("text", "type_code"),
    [
        ("no base64!", "SIMPLE"),
        ("", "SIMPLE"),
        ("", "DYNAMIC_V0"),
        (SMALL_DYNAMIC[:-12], "DYNAMIC_V0"),
        (SMALL_DYNAMIC, "SIMPLE"),
        (SMALL_SIMPLE, "DYNAMIC_V0"),
        (base64.b64encode(struct.pack(">iibi", 1, 20, 1, 8) + b"\0").decode(), "SIMPLE"),
        (base64.b64encode(struct.pack(">iibi", -1, 20, 1, 2**31 - 1)).decode(), "SIMPLE"),
        (base64.b64encode(struct.pack(">iibi", -1, 20, 1, -8)).decode(), "SIMPLE"),
    ],
)
def test_damaged_texts_are_refused(text, type_code):
    with pytest.raises(CorruptTableError, match="Bloom filter"):
        BloomFilter.from_text(text, type_code)


def test_unknown_kinds_are_refused_by_name():
    with pytest.raises(UnsupportedTableError, match="'RIBBON'.*SIMPLE, DYNAMIC_V0"):
        BloomFilter.from_text(SMALL_SIMPLE, "RIBBON")
    jenkins = base64.b64encode(struct.pack(">iibi", -1, 20, 0, 8) + b"\0").decode()
    with pytest.raises(UnsupportedTableError, match="hash function number 0"):
        BloomFilter.from_text(jenkins)


@pytest.mark.parametrize(
    ("entries", "fpp"), [(0, 1e-9), (-1, 1e-9), (10, 0), (10, 1), (10, -0.5), (10**9, 1e-9)]
)
def test_sizes_out_of_range_are_refused(entries, fpp):
    with pytest.raises(ConfigError, match="Bloom filter for"):
        BloomFilter.sized_for(entries, fpp=fpp)
