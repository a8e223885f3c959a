"""The Bloom filters in the footers of base files.

Serves every table version; the serialized form is Hadoop's (Hudi table spec, base files, Bloom filter). Two
kinds exist: ``SIMPLE``, one row of bits, and ``DYNAMIC_V0``, which opens a further row when one is full. A
filter may be built for fewer keys than Hudi's default of 60,000: readers take all parameters from the
serialized form.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.errors import ConfigError, CorruptTableError, UnsupportedTableError
from hudi_engine.format.config.enums import BloomFilterType
from hudi_engine.format.index.filters.murmur import KeyBlock, key_blocks

DEFAULT_FALSE_POSITIVE_RATE = 1e-9
SIZED_FALSE_POSITIVE_RATE = 1e-5
"""Of a filter that is made for exactly the keys of its file. Hudi's, made for a given number of keys whatever the file holds,
has 1e-9 up to that and one in three with eight times as many. Half the bits are half the work of a writer, and of every reader
of the file that is not asking for keys: a filter lies in the footer, so Spark reads it with each scan."""
DEFAULT_MAX_ENTRIES = 100_000

_ROW_HEADER = struct.Struct(">iibi")
_DYNAMIC_HEADER = struct.Struct(">iii")
_VERSION = -1
_MURMUR = 1
_MAX_BITS = (1 << 31) - 1

Bits = npt.NDArray[np.uint8]


@dataclass(eq=False)
class BloomFilter:
    """A set of record keys that may report a key it does not hold, but never misses one that it holds.

    Build one with `sized_for`, `for_keys` or `from_text`.

    Args:
        row_capacity: Keys that a row is made for.
        max_entries: A dynamic filter opens no further row once its rows are made for this many keys.
    """

    kind: BloomFilterType
    bits: int
    hashes: int
    rows: list[Bits]
    row_capacity: int = field(default=0, kw_only=True)
    keys_in_last_row: int = field(default=0, kw_only=True)
    max_entries: int = field(default=DEFAULT_MAX_ENTRIES, kw_only=True)
    _overflow: int = field(default=-1, init=False)

    @classmethod
    def sized_for(
        cls,
        entries: int,
        *,
        fpp: float = DEFAULT_FALSE_POSITIVE_RATE,
        kind: BloomFilterType = BloomFilterType.DYNAMIC_V0,
        max_entries: int = DEFAULT_MAX_ENTRIES,
        few_hashes: bool = False,
    ) -> BloomFilter:
        """Make an empty filter.

        Args:
            entries: Keys one row is made for, at least 1.
            fpp: False-positive rate at that number of keys, between 0 and 1, both excluded.
            max_entries: A dynamic filter opens no further row once its rows are made for this many keys.
            few_hashes: Take half the hash functions of the smallest filter, and a fifth more bits for the same rate; what
                a filter has of both is in its header. Making and asking it costs half.
        """
        if entries < 1 or not 0 < fpp < 1:
            raise ConfigError(
                f"a Bloom filter for {entries} keys with false-positive rate {fpp} cannot be built; "
                "the number of keys must be at least 1 and the rate between 0 and 1 (for example 1e-9)"
            )
        bits = math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2))))
        hashes = math.ceil(math.log(2) * bits / entries)
        if few_hashes and hashes > 1:
            hashes = -(-hashes // 2)
            bits = math.ceil(-hashes * entries / math.log1p(-(fpp ** (1 / hashes))))
        if bits > _MAX_BITS:
            raise ConfigError(
                f"a Bloom filter for {entries} keys with false-positive rate {fpp} would need {bits} bits, "
                f"more than the format holds ({_MAX_BITS}); lower the number of entries or raise the rate"
            )
        return cls(kind, bits, hashes, [_empty_row(bits)], row_capacity=entries, max_entries=max_entries)

    @classmethod
    def for_keys(
        cls,
        keys: pa.Array | pa.ChunkedArray,
        *,
        entries: int | None = None,
        fpp: float | None = None,
        kind: BloomFilterType = BloomFilterType.DYNAMIC_V0,
        max_entries: int = DEFAULT_MAX_ENTRIES,
    ) -> BloomFilter:
        """Build a filter that holds the keys.

        Args:
            entries: Keys a row is made for; None sizes one row to exactly these keys, with few hash functions.
            fpp: False-positive rate, between 0 and 1, both excluded; None is `DEFAULT_FALSE_POSITIVE_RATE` for given
                ``entries`` and `SIZED_FALSE_POSITIVE_RATE` without.
        """
        size = max(len(keys), 1) if entries is None else entries
        if fpp is None:
            fpp = SIZED_FALSE_POSITIVE_RATE if entries is None else DEFAULT_FALSE_POSITIVE_RATE
        bloom = cls.sized_for(size, fpp=fpp, kind=kind, max_entries=max_entries, few_hashes=entries is None)
        bloom.add(keys)
        return bloom

    @classmethod
    def from_text(cls, text: str | bytes, type_code: str | None = None) -> BloomFilter:
        """Read the text of a footer.

        Args:
            text: Value of ``org.apache.hudi.bloomfilter``, base64.
            type_code: Value of ``hoodie_bloom_filter_type_code``; None means ``SIMPLE``.
        """
        try:
            kind = BloomFilterType(type_code or BloomFilterType.SIMPLE)
        except ValueError:
            raise UnsupportedTableError(
                f"unknown Bloom filter type {type_code!r}; "
                f"known are {', '.join(kind.value for kind in BloomFilterType)}"
            ) from None
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise CorruptTableError(f"a Bloom filter in a footer is not base64 text: {error}") from error
        return _decode(data, kind)

    def to_text(self) -> str:
        """Serialize to the text of a footer."""
        parts = []
        if self.kind is BloomFilterType.DYNAMIC_V0:
            parts.append(self._row_header())
            parts.append(_DYNAMIC_HEADER.pack(self.row_capacity, self.keys_in_last_row, len(self.rows)))
        for row in self.rows:
            parts.append(self._row_header())
            parts.append(row.tobytes())
        return base64.b64encode(b"".join(parts)).decode("ascii")

    @property
    def row_count(self) -> int:
        """Number of bit rows; 1 unless a dynamic filter overflowed its first row."""
        return len(self.rows)

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add record keys (string, no nulls); a dynamic filter opens further rows as it fills up."""
        position = 0
        while position < len(keys):
            row, count = self._place(len(keys) - position)
            self._set_bits(row, keys.slice(position, count))
            self.keys_in_last_row += count
            position += count

    def might_contain_all(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return for each key whether the filter may hold it; False is certain."""
        found = np.zeros(len(keys), dtype=np.bool_)
        for block in key_blocks(keys):
            for row in self.rows:
                found[self._survivors(row, block)] = True
        return found

    def _row_header(self) -> bytes:
        return _ROW_HEADER.pack(_VERSION, self.hashes, _MURMUR, self.bits)

    def _place(self, wanted: int) -> tuple[Bits, int]:
        """Choose the row of the next keys and how many of them go there."""
        if self.kind is BloomFilterType.SIMPLE:
            return self.rows[-1], wanted
        if self._overflow >= 0:
            if len(self.rows) == 1:
                return self.rows[0], wanted
            row = self.rows[self._overflow % len(self.rows)]
            self._overflow += 1
            return row, 1
        if self.keys_in_last_row >= self.row_capacity:
            if self.row_capacity * len(self.rows) >= self.max_entries:
                self._overflow = 0
                return self.rows[0], 1
            self.rows.append(_empty_row(self.bits))
            self.keys_in_last_row = 0
        return self.rows[-1], min(wanted, self.row_capacity - self.keys_in_last_row)

    def _set_bits(self, row: Bits, keys: pa.Array | pa.ChunkedArray) -> None:
        flags = np.zeros(len(row) * 8, dtype=np.bool_)
        for block in key_blocks(keys):
            hashes: npt.NDArray[np.uint32] = np.zeros(len(block), dtype=np.uint32)
            for _ in range(self.hashes):
                hashes = block.murmur2(hashes)
                flags[self._positions(hashes)] = True
        np.bitwise_or(row, np.packbits(flags, bitorder="little"), out=row)

    def _survivors(self, row: Bits, block: KeyBlock) -> npt.NDArray[np.int64]:
        hashes: npt.NDArray[np.uint32] = np.zeros(len(block), dtype=np.uint32)
        for _ in range(self.hashes):
            hashes = block.murmur2(hashes)
            positions = self._positions(hashes)
            hit = (row[positions >> 3] >> (positions & 7).astype(np.uint8)) & 1 == 1
            if not hit.all():
                block, hashes = block.select(hit), hashes[hit]
                if not len(block):
                    break
        return block.rows

    def _positions(self, hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        # Java's remainder of a signed int, made positive: the remainder of its magnitude.
        magnitude = np.abs(hashes.view(np.int32)).view(np.uint32)
        # numpy divides by a scalar with vector instructions but has none for the remainder.
        quotient = np.floor_divide(magnitude, np.uint32(self.bits))
        quotient *= np.uint32(self.bits)
        positions: npt.NDArray[np.int64] = np.subtract(magnitude, quotient, out=magnitude).astype(np.int64)
        return positions


def _empty_row(bits: int) -> Bits:
    return np.zeros((bits + 7) // 8, dtype=np.uint8)


def _decode(data: bytes, kind: BloomFilterType) -> BloomFilter:
    """Read Hadoop's bytes of a filter, simple or in rows; a length or shape that does not add up is a damaged footer."""
    position = 0
    capacity = in_last_row = 0
    row_count = 1
    if kind is BloomFilterType.DYNAMIC_V0:
        if len(data) < _ROW_HEADER.size + _DYNAMIC_HEADER.size:
            raise CorruptTableError(f"a dynamic Bloom filter is cut short: {len(data)} bytes")
        _read_row_header(data, 0)
        capacity, in_last_row, row_count = _DYNAMIC_HEADER.unpack_from(data, _ROW_HEADER.size)
        position = _ROW_HEADER.size + _DYNAMIC_HEADER.size
    hashes, bits = _read_row_header(data, position)
    row_bytes = (bits + 7) // 8
    expected = position + row_count * (_ROW_HEADER.size + row_bytes)
    if row_count < 1 or len(data) != expected:
        raise CorruptTableError(
            f"a {kind.value} Bloom filter with {row_count} rows of {bits} bits has {len(data)} bytes "
            f"where {expected} belong; the footer is damaged or carries the wrong type code"
        )
    rows: list[Bits] = []
    for _ in range(row_count):
        if _read_row_header(data, position) != (hashes, bits):
            raise CorruptTableError("the rows of a dynamic Bloom filter differ in shape")
        start = position + _ROW_HEADER.size
        rows.append(np.frombuffer(data, dtype=np.uint8, count=row_bytes, offset=start).copy())
        position = start + row_bytes
    return BloomFilter(kind, bits, hashes, rows, row_capacity=capacity, keys_in_last_row=in_last_row)


def _read_row_header(data: bytes, position: int) -> tuple[int, int]:
    if len(data) < position + _ROW_HEADER.size:
        raise CorruptTableError(f"a Bloom filter is cut short: {len(data)} bytes")
    version, hashes, hash_type, bits = _ROW_HEADER.unpack_from(data, position)
    if version != _VERSION or hashes < 1 or bits < 1:
        raise CorruptTableError(
            f"a Bloom filter starts with version {version}, {hashes} hashes and {bits} bits; "
            f"version {_VERSION} and positive numbers belong there"
        )
    if hash_type != _MURMUR:
        raise UnsupportedTableError(
            f"a Bloom filter uses hash function number {hash_type}; only {_MURMUR} (murmur) is supported"
        )
    return hashes, bits
