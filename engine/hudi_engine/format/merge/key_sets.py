"""Which keys are the same as which others, in as much memory as a worker has.

Arrow's hash tables take up to 128 bytes a key while they grow, next to a copy of the keys. Where the memory of workers is limited,
keys are looked up in one part of the others after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.schema.nested import one_array
from hudi_engine.format.worker import memory_limit

_Bytes = npt.NDArray[np.uint8]
_Hashes = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int64]

_WORD = 8
_HASH_BITS = 64
_SLOT_BITS = 3
"""Slots are eight to sixteen times as many as keys."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Fractional bits of the golden ratio, which spread what is multiplied by them (multiplicative hashing)."""
_HALF = np.uint64(_HASH_BITS // 2)
_SAMPLE = 1024
"""Keys by which the words are chosen."""


class KeyTable:
    """Finds the places of keys of one length among some that it holds, by a hash of their bytes.

    Arrow's hash table of 50,000 keys takes some megabytes, which no cache holds. Here a byte a slot rules out most keys
    that are not there.
    """

    def __init__(self, keys: pa.Array, length: int) -> None:
        """Hold keys that `length_of_all` gave this length; of equal ones the first is found."""
        self._keys = keys
        self._length = length
        rows = _rows(keys, length)
        self._shift = np.uint64(_HASH_BITS - len(keys).bit_length() - _SLOT_BITS)
        self._words = _telling_words(np.ascontiguousarray(rows[:: max(1, len(keys) // _SAMPLE)]))
        self._hashes = _hashes(rows, self._words)
        slots = self._slots(self._hashes)
        numbers = np.arange(len(keys), dtype=np.int32)
        size = 1 << (_HASH_BITS - int(self._shift))
        self._taken = np.zeros(size, dtype=bool)
        self._taken[slots] = True
        # Of several keys of one slot the first one is written last, and stays.
        self._first = np.zeros(size, dtype=np.int32)
        self._first[slots[::-1]] = numbers[::-1]
        self._later = np.flatnonzero(self._first[slots] != numbers)
        self._several = np.zeros(size if len(self._later) else 0, dtype=bool)
        self._several[slots[self._later]] = True

    @classmethod
    def of(cls, keys: pa.Array) -> KeyTable | None:
        """Return a table of some keys, None where their lengths differ or one is null."""
        length = length_of_all(keys)
        return None if length is None else cls(keys, length)

    def places(self, keys: pa.Array) -> pa.Array | None:
        """Return for each key its place among those of the table, null where it is not one; None where lengths differ."""
        if length_of_all(keys) != self._length:
            return None
        hashes = _hashes(_rows(keys, self._length), self._words)
        slots = self._slots(hashes)
        near = np.flatnonzero(self._taken.take(slots))
        slots, hashes = slots.take(near), hashes.take(near)
        there = self._first.take(slots)
        same = self._hashes.take(there) == hashes
        likely = near[same], there[same]
        same[same] = pc.equal(
            *(each.take(pa.array(at)) for each, at in zip((keys, self._keys), likely, strict=True))
        )
        found = np.full(len(keys), -1, dtype=np.int32)
        found[near[same]] = there[same]
        if len(self._later):
            rest = near[~same & self._several.take(slots)]
            place = self._among_later(keys.take(pa.array(rest)))
            found[rest[place >= 0]] = self._later[place[place >= 0]]
        return pa.array(found, mask=found < 0)

    def _among_later(self, keys: pa.Array) -> _Places:
        others = self._keys.take(pa.array(self._later))
        return np.asarray(pc.fill_null(pc.index_in(keys, value_set=others), -1)).astype(np.int64)

    def _slots(self, hashes: _Hashes) -> _Places:
        return (hashes >> self._shift).view(np.int64)


def _telling_words(rows: _Bytes) -> list[int]:
    """Return where the words begin by which these keys can be distinguished, and one more as others may need it."""
    length = rows.shape[1]
    # The last word overlaps the one before where the length is no multiple of eight.
    starts = [*range(0, length - _WORD + 1, _WORD), *([length - _WORD] if length % _WORD else [])]
    chosen: list[int] = []
    all_told = False
    for start in starts:
        if _different(rows, [start]) == 1:
            continue
        chosen.append(start)
        if all_told:
            break
        all_told = _different(rows, chosen) == len(rows)
    return chosen


def _different(rows: _Bytes, words: Sequence[int]) -> int:
    return len(np.unique(_hashes(rows, words)))


def _hashes(rows: _Bytes, words: Sequence[int]) -> _Hashes:
    """Return a hash of some words of each key; its upper bits are spread best."""
    count, length = rows.shape
    total = np.zeros(count, dtype=np.uint64)
    for start in words:
        total += np.ndarray((count,), np.uint64, rows, start, (length,))
        total *= _ODD
        total ^= total >> _HALF
    total *= _ODD
    return total


def length_of_all(keys: pa.Array) -> int | None:
    """Return the bytes of each key, None where that differs, is less than a word, or one is null."""
    if not len(keys) or keys.null_count or not pa.types.is_string(keys.type):
        return None
    offsets = _offsets(keys)
    length = int(offsets[1]) - int(offsets[0])
    if length < _WORD or int(offsets[-1]) - int(offsets[0]) != length * len(keys):
        return None
    return length if bool((np.diff(offsets) == length).all()) else None


def _rows(keys: pa.Array, length: int) -> _Bytes:
    data: Any = keys.buffers()[2]
    return np.frombuffer(data, np.uint8, len(keys) * length, int(_offsets(keys)[0])).reshape(-1, length)


def _offsets(keys: pa.Array) -> npt.NDArray[np.int32]:
    item = np.dtype(np.int32).itemsize
    return np.frombuffer(keys.buffers()[1], np.int32, len(keys) + 1, keys.offset * item)


AT_ONCE = 2**18
"""Keys of one hash table where memory is limited: it takes some 30 MiB."""
_MANY = 16_384
"""Arrow's hash table of fewer keys stays in the caches of a core."""


def are_distinct(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether no two keys are the same; nulls are the same key.

    Arrow counts different values in twice the time that it takes to list them.
    """
    if memory_limit() is None:
        return len(pc.unique(keys)) == len(keys)
    parts = list(_parts(keys))
    if any(len(pc.unique(part)) < len(part) for part in parts):
        return False
    return not any(pc.any(pc.is_in(part, value_set=other)).as_py() for part, other in combinations(parts, 2))


def places_in(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array:
    """Return for each key its place among others, null where it is not one of them."""
    if memory_limit() is None or len(others) <= AT_ONCE:
        return _places(keys, others)
    found = pa.nulls(len(keys), pa.int32())
    start = 0
    for part in _parts(others):
        found = pc.coalesce(found, pc.add(_places(keys, part), pa.scalar(start, pa.int32())))
        start += len(part)
    return found


def _places(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array:
    if min(len(keys), len(others)) >= _MANY:
        found = _places_by_table(keys, others)
        if found is not None:
            return found
    return one_array(pc.index_in(keys, value_set=others, skip_nulls=True))


def _places_by_table(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array | None:
    table = KeyTable.of(others)
    if table is None:
        return None
    pieces = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    places = []
    for piece in pieces:
        if len(piece):
            places.append(table.places(piece))
            if places[-1] is None:
                return None
    return pa.concat_arrays(places)


def _parts(keys: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    for start in range(0, len(keys), AT_ONCE):
        yield one_array(keys.slice(start, AT_ONCE))
