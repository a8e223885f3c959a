"""Keys of the metadata table, and the file group of its partition that holds a key.

Source: Hudi metadata table format. Columns, partitions and files come into keys as hashes in base64, with padding.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.index import buckets

ALL_PARTITIONS = "__all_partitions__"
"""Key of the list of partitions in ``files``."""
ROOT_PARTITION = "."
"""Name of the one partition of a table without partitions, in keys."""

_PARTITION_STAT = "__partition_stat__"
_MASK = (1 << 64) - 1
_SEED = 0xFFFFFFFFDABADABA
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)

Groups = npt.NDArray[np.int64]


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    """Return the key of the statistics of one column of one file."""
    return hashed(column) + hashed(partition or ROOT_PARTITION) + hashed_file(file_name)


def partition_stats_key(column: str, partition: str) -> str:
    """Return the key of the statistics of one column of one partition."""
    return hashed(column) + hashed(partition or ROOT_PARTITION)


def expression_partition_key(column: str, partition: str) -> str:
    """Return the key of the statistics of an expression over one column of one partition."""
    return hashed(column) + hashed(_PARTITION_STAT) + hashed(partition or ROOT_PARTITION)


def bloom_filter_key(partition: str, file_name: str) -> str:
    """Return the key of the Bloom filter of one base file."""
    return hashed(partition or ROOT_PARTITION) + hashed_file(file_name)


@lru_cache(maxsize=65536)
def hashed(text: str) -> str:
    """Return the part of a key for a column or a partition: xxHash64, seeded, of its UTF-8 bytes."""
    return base64.b64encode(_xxhash64(text.encode()).to_bytes(8, "big")).decode()


def hashed_file(name: str) -> str:
    """Return the part of a key for a file name without folder: its MD5."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()


def _xxhash64(data: bytes) -> int:
    """Return xxHash64 with the seed that Hudi gives it, an int extended by its sign."""
    one, two, three, four, five = _PRIMES
    position, total = 0, len(data)
    if total >= 32:
        lanes = [(_SEED + one + two) & _MASK, (_SEED + two) & _MASK, _SEED, (_SEED - one) & _MASK]
        while position <= total - 32:
            for lane in range(4):
                word = int.from_bytes(data[position : position + 8], "little")
                lanes[lane] = _round(lanes[lane], word)
                position += 8
        value = sum(_rotated(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * one + four) & _MASK
    else:
        value = (_SEED + five) & _MASK
    value = (value + total) & _MASK
    while position + 8 <= total:
        word = int.from_bytes(data[position : position + 8], "little")
        value = (_rotated(value ^ _round(0, word), 27) * one + four) & _MASK
        position += 8
    if position + 4 <= total:
        word = int.from_bytes(data[position : position + 4], "little")
        value = (_rotated(value ^ (word * one & _MASK), 23) * two + three) & _MASK
        position += 4
    for byte in data[position:]:
        value = (_rotated(value ^ (byte * five & _MASK), 11) * one) & _MASK
    value = (value ^ value >> 33) * two & _MASK
    value = (value ^ value >> 29) * three & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return (_rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0]) & _MASK


def _rotated(value: int, turn: int) -> int:
    return (value << turn | value >> (64 - turn)) & _MASK


def groups_of(keys: pa.Array, groups: int) -> Groups:
    """Return the number of the file group of each key: the hash of Java's strings, modulo the number of groups."""
    if groups == 1 or len(keys) == 0:
        return np.zeros(len(keys), np.int64)
    hashes = java_hashes(keys).astype(np.int64)
    # In Java, abs of the smallest int is itself, and the remainder of a negative number is negative.
    positive = np.where(hashes == -(1 << 31), hashes, np.abs(hashes))
    return np.abs(np.fmod(positive, groups))


def java_hashes(texts: pa.Array) -> npt.NDArray[np.int32]:
    """Return ``String.hashCode`` of each text."""
    return buckets.java_hashes(texts).view(np.int32)
