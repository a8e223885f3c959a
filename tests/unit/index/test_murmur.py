"""MurmurHash2 as Hudi's Bloom filters use it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.index.filters.murmur import key_blocks
from hypothesis import given
from hypothesis import strategies as st

MASK = 0xFFFFFFFF
VECTORS = {
    "": (0, -1285986640, -22221377),
    "a": (-1838653602, 713507990, 2143221673),
    "ab": (1525573013, -1797532438, 1684596957),
    "abc": (1775488903, -1465591341, 1456415828),
    "abcd": (646393889, 1555318719, -950531822),
    "TXN-001": (-1349093075, -181503387, -1771027908),
    "é": (-384040333, -1125067414, -2008468762),
    "中文": (1072629655, 49346326, -70124259),
    "abÿ": (1309018180, 880854985, -2061355103),
    "c8abbe79-8d89-47ea-b4ce-4d224bae5bfa": (156241361, -1392385000, 1606555815),
}


def naive_murmur2(data: bytes, seed: int) -> int:
    """One key at a time, byte by byte: the judge of the vectorised form."""
    multiplier = 0x5BD1E995
    hashed = (seed ^ len(data)) & MASK
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & MASK
        word = (word ^ word >> 24) * multiplier & MASK
        hashed = (hashed * multiplier & MASK) ^ word
    rest = len(data) - whole
    signed = [byte - 256 if byte > 127 else byte for byte in data]
    for back, shift in ((3, 16), (2, 8), (1, 0)):
        if rest >= back:
            hashed ^= signed[-back] << shift & MASK
    if rest:
        hashed = hashed * multiplier & MASK
    hashed = (hashed ^ hashed >> 13) * multiplier & MASK
    return hashed ^ hashed >> 15


def hash_all(keys: pa.Array | pa.ChunkedArray, seed: int) -> list[int]:
    hashes = np.zeros(len(keys), dtype=np.uint32)
    for block in key_blocks(keys):
        hashes[block.rows] = block.murmur2(np.full(len(block), seed & MASK, dtype=np.uint32))
    return hashes.tolist()


@pytest.mark.parametrize(("column", "seed"), [(0, 0), (1, -1), (2, 1234567)])
def test_known_hashes(column, seed):
    expected = [vector[column] & MASK for vector in VECTORS.values()]
    assert hash_all(pa.array(list(VECTORS)), seed) == expected


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(0, MASK))
def test_columns_of_mixed_lengths_hash_like_single_keys(keys, seed):
    expected = [naive_murmur2(key.encode(), seed) for key in keys]
    assert hash_all(pa.array(keys, pa.string()), seed) == expected


def test_chunks_slices_and_dictionaries_hash_alike():
    keys = [f"key-{number}" * (number % 5) for number in range(40)]
    plain = pa.array(keys)
    expected = hash_all(plain, 7)
    assert hash_all(pa.chunked_array([plain.slice(0, 11), plain.slice(11)]), 7) == expected
    assert hash_all(plain.dictionary_encode(), 7) == expected
    assert hash_all(plain.slice(5), 7) == expected[5:]


def test_a_very_long_key_among_short_ones():
    keys = ["a", "b" * 7_001, "c" * 3]
    assert hash_all(pa.array(keys), 0) == [naive_murmur2(key.encode(), 0) for key in keys]


def test_selecting_keys_keeps_their_hashes():
    keys = [f"{'x' * number}{number}" for number in range(20)]
    (block,) = key_blocks(pa.array(keys))
    mask = np.arange(20) % 3 == 0
    picked = block.select(mask)
    seeds = np.zeros(20, dtype=np.uint32)
    assert picked.murmur2(seeds[mask]).tolist() == block.murmur2(seeds)[mask].tolist()


def test_null_keys_are_refused():
    with pytest.raises(ValueError, match="null"):
        list(key_blocks(pa.array(["a", None])))
