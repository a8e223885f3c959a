"""A column chunk: the pages of one leaf column in one row group, and their metadata in a footer.

Source: Apache Parquet, ``parquet.thrift`` (ColumnMetaData, Statistics, PageEncodingStats).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_engine.format.parquet.thrift import I32, I64, LIST, STRUCT, Struct

TYPE, CONVERTED = 1, 6
NULLS, MAX, MIN = 3, 5, 6
_MAX_EXACT, _MIN_EXACT = 7, 8
_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTES, _FIXED = range(8)
FLOATING = frozenset({_FLOAT, _DOUBLE})
"""Physical types of floating point numbers."""
BOUNDS = frozenset({1, 2, MAX, MIN})
"""Fields of Statistics that hold a smallest or largest value; the first two are of older writers."""
_DECIMAL = 5
_UNSIGNED = frozenset({11, 12, 13, 14})
_NUMBERS = {_INT32: "<i", _INT64: "<q", _FLOAT: "<f", _DOUBLE: "<d"}

Order = Callable[[bytes], Any]


def joined_statistics(both: tuple[Struct, Struct], values: tuple[int, int], element: Struct) -> Struct:
    """Return the statistics of two chunks as one: the count of nulls, and the bounds where both have them."""
    joined: Struct = {}
    if all(NULLS in each for each in both):
        joined[NULLS] = I64, sum(each[NULLS][1] for each in both)
    # A chunk of nothing but nulls has no bounds, and narrows nothing.
    statistics = [
        each
        for each, count in zip(both, values, strict=True)
        if each.get(NULLS, (I64, -1))[1] != count or MIN in each
    ]
    order = _order(element)
    if order is None or not statistics or not all(MIN in each and MAX in each for each in statistics):
        return joined
    low = min(statistics, key=lambda each: order(each[MIN][1]))
    high = max(statistics, key=lambda each: order(each[MAX][1]))
    for side, bound, exact in ((low, MIN, _MIN_EXACT), (high, MAX, _MAX_EXACT)):
        joined[bound] = side[bound]
        if exact in side:
            joined[exact] = side[exact]
    return joined


def _order(element: Struct) -> Order | None:
    """Return what stored values are compared by; None where this program does not know it."""
    kind = element[TYPE][1] if TYPE in element else None
    converted = element[CONVERTED][1] if CONVERTED in element else None
    if kind in _NUMBERS and converted not in _UNSIGNED:
        layout = _NUMBERS[kind]
        return lambda value: struct.unpack(layout, value)[0]
    if kind == _BOOLEAN or (kind in (_BYTES, _FIXED) and converted != _DECIMAL):
        return lambda value: value
    if kind in (_BYTES, _FIXED):
        return lambda value: int.from_bytes(value, "big", signed=True)
    return None


ENCODINGS, PATH, CODEC, VALUES, UNCOMPRESSED, COMPRESSED = 2, 3, 4, 5, 6, 7
DATA_OFFSET, DICTIONARY_OFFSET, STATISTICS, PAGES = 9, 11, 12, 13
_BLOOM_OFFSET, _BLOOM_LENGTH, _INDEX_OFFSET, _SIZES, _PLACES = 14, 15, 10, 16, 17
_ELSEWHERE = (_BLOOM_OFFSET, _BLOOM_LENGTH, _INDEX_OFFSET)
"""Fields that point to what lies outside of the chunk, and stays behind."""
_DICTIONARY_PAGE = 2
_PAGE_KIND, _PAGE_ENCODING, _PAGE_COUNT = 1, 2, 3


@dataclass(frozen=True)
class Extent:
    """Some bytes of an open file."""

    source: pa.NativeFile
    start: int
    length: int


@dataclass(frozen=True)
class Chunk:
    """A column chunk.

    Args:
        meta: Its ColumnMetaData; the offsets count from the chunk's first byte.
    """

    meta: Struct
    pieces: tuple[Extent, ...]

    @classmethod
    def at(cls, meta: Struct, source: pa.NativeFile) -> Chunk:
        """Return the chunk that a footer speaks of; what the footer has outside of it for the chunk is left out."""
        start = meta[DATA_OFFSET][1]
        dictionary = meta.get(DICTIONARY_OFFSET, (I64, 0))[1]
        if 0 < dictionary < start:
            start = dictionary
        own = {number: field for number, field in meta.items() if number not in _ELSEWHERE}
        length = meta[COMPRESSED][1]
        return cls(_moved(own, -start), (Extent(source, start, length),))

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return int(self.meta[COMPRESSED][1])

    @property
    def codec(self) -> int:
        """Number of the compression codec."""
        return int(self.meta[CODEC][1])

    @property
    def column(self) -> str:
        """Name of the column of the table that the leaf belongs to."""
        name: bytes = self.meta[PATH][1][1][0]
        return name.decode(errors="replace")

    @property
    def is_nested(self) -> bool:
        """Whether the leaf is a part of a column, and not all of it."""
        return len(self.meta[PATH][1][1]) > 1

    @property
    def has_dictionary(self) -> bool:
        """Whether a page holds values that others name by number."""
        return DICTIONARY_OFFSET in self.meta

    @property
    def has_bounds(self) -> bool:
        """Whether a smallest or largest value is reported, in the fields of today or in those before."""
        statistics: Struct = self.meta.get(STATISTICS, (STRUCT, {}))[1]
        return any(number in statistics for number in BOUNDS)

    @property
    def is_floating(self) -> bool:
        """Whether the values are floating point numbers."""
        return self.meta[TYPE][1] in FLOATING

    @property
    def nulls(self) -> int | None:
        """Number of nulls, None where the footer does not say."""
        statistics: Struct = self.meta.get(STATISTICS, (STRUCT, {}))[1]
        return int(statistics[NULLS][1]) if NULLS in statistics else None

    @property
    def data_pages(self) -> int | None:
        """Number of pages with values, None where the footer does not say."""
        if PAGES not in self.meta:
            return None
        pages: list[Struct] = self.meta[PAGES][1][1]
        return sum(int(each[_PAGE_COUNT][1]) for each in pages if each[_PAGE_KIND][1] != _DICTIONARY_PAGE)

    def placed(self, start: int) -> Struct:
        """Return the ColumnMetaData of the chunk where it begins at a place of a file."""
        return _moved(self.meta, start)

    def read(self) -> Iterator[bytes]:
        """Yield its bytes."""
        for piece in self.pieces:
            found = piece.source.read_at(piece.length, piece.start)
            if len(found) != piece.length:
                raise OSError(f"a column chunk of {piece.length} bytes ends after {len(found)}")
            yield found

    def followed_by(self, more: Chunk, element: Struct) -> Chunk:
        """Return the chunk with the pages of another one behind its own."""
        if more.has_dictionary or more.codec != self.codec:
            raise ValueError("pages that follow have no dictionary, and the codec of those before")
        meta = dict(self.meta)
        for number in (VALUES, UNCOMPRESSED, COMPRESSED):
            meta[number] = I64, self.meta[number][1] + more.meta[number][1]
        codes = self.meta[ENCODINGS][1][1]
        meta[ENCODINGS] = (
            LIST,
            (I32, [*codes, *(each for each in more.meta[ENCODINGS][1][1] if each not in codes)]),
        )
        meta.pop(_SIZES, None)
        meta.pop(_PLACES, None)
        _put(meta, PAGES, _joined_pages(self.meta, more.meta))
        _put(meta, STATISTICS, _joined_statistics(self.meta, more.meta, element))
        return Chunk(meta, (*self.pieces, *more.pieces))


def _moved(meta: Struct, by: int) -> Struct:
    moved = dict(meta)
    for number in (DATA_OFFSET, DICTIONARY_OFFSET):
        if number in meta:
            moved[number] = I64, meta[number][1] + by
    return moved


def _put(meta: Struct, number: int, field: tuple[int, object] | None) -> None:
    if field is None:
        meta.pop(number, None)
    else:
        meta[number] = field


def _joined_pages(first: Struct, second: Struct) -> tuple[int, object] | None:
    """Return how many pages of which kind and encoding two chunks have: readers look there whether a dictionary has all values."""
    if PAGES not in first or PAGES not in second:
        return None
    counts: dict[tuple[int, int], int] = {}
    for page in (*first[PAGES][1][1], *second[PAGES][1][1]):
        kind = page[_PAGE_KIND][1], page[_PAGE_ENCODING][1]
        counts[kind] = counts.get(kind, 0) + page[_PAGE_COUNT][1]
    pages = [
        {_PAGE_KIND: (I32, kind), _PAGE_ENCODING: (I32, encoding), _PAGE_COUNT: (I32, count)}
        for (kind, encoding), count in counts.items()
    ]
    return LIST, (STRUCT, pages)


def _joined_statistics(first: Struct, second: Struct, element: Struct) -> tuple[int, object] | None:
    if STATISTICS not in first or STATISTICS not in second:
        return None
    values = first[VALUES][1], second[VALUES][1]
    return STRUCT, joined_statistics((first[STATISTICS][1], second[STATISTICS][1]), values, element)
