"""The index data in the footer of a base file: key range and Bloom filter.

Serves every table version (Hudi table spec, base files, footer metadata). Java's indexes trust this data: a
key range that is too narrow, or a filter that misses a key, makes them write duplicates without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError, InvalidKeyError
from hudi_engine.format.config.enums import BloomFilterType
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet

BLOOM_KEY = "org.apache.hudi.bloomfilter"
LEGACY_BLOOM_KEY = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"


@dataclass(frozen=True)
class KeyFooter:
    """Keys in the footer of a base file; each part None when the footer lacks it."""

    min_key: str | None
    max_key: str | None
    bloom: BloomFilter | None
    rows: int


def read_key_footer(storage: Storage, path: str) -> KeyFooter:
    """Read the key range and Bloom filter of a base file."""
    with storage.open_input(path) as source, damaged_parquet(f"base file {path!r}"):
        footer = pq.read_metadata(source)
    return key_footer(footer.metadata or {}, footer.num_rows, path)


def key_footer(texts: Mapping[bytes, bytes], rows: int, path: str) -> KeyFooter:
    """Return the keys, their range and filter in the footer of a base file."""
    try:
        return _key_footer(texts, rows)
    except (CorruptTableError, UnicodeDecodeError) as error:
        raise CorruptTableError(f"base file {path!r}: {error}") from error


def _key_footer(texts: Mapping[bytes, bytes], rows: int) -> KeyFooter:
    pairs = {key.decode(errors="replace"): value for key, value in texts.items()}
    text = pairs.get(BLOOM_KEY) or pairs.get(LEGACY_BLOOM_KEY)
    bloom = None if text is None else BloomFilter.from_text(text, _text(pairs.get(BLOOM_TYPE_KEY)))
    return KeyFooter(_text(pairs.get(MIN_KEY)), _text(pairs.get(MAX_KEY)), bloom, rows)


class FilterOptions(Protocol):
    """Options of base files that the footer depends on; see `BaseFileOptions`."""

    @property
    def bloom_enabled(self) -> bool: ...
    @property
    def bloom_type(self) -> BloomFilterType: ...
    @property
    def bloom_entries(self) -> int | None: ...
    @property
    def bloom_fpp(self) -> float | None: ...
    @property
    def bloom_max_entries(self) -> int: ...


class KeyCollector:
    """Gathers the keys of a file while it is written, then makes the footer entries of them."""

    def __init__(self, options: FilterOptions, reuse_bloom: BloomFilter | None = None) -> None:
        self._options = options
        self._bloom = reuse_bloom
        self._keys: list[pa.Array] = []
        self.min_key: str | None = None
        self.max_key: str | None = None

    def add(self, keys: pa.ChunkedArray) -> None:
        """Take the keys of the next rows."""
        if keys.null_count:
            raise InvalidKeyError(
                f"{keys.null_count} row(s) have no record key and cannot be written to a base file; "
                "fill the record key columns, or leave those rows out"
            )
        for chunk in keys.chunks:
            if len(chunk):
                self._widen(*key_range(chunk))
        if self._options.bloom_enabled and self._bloom is None:
            # A copy: rows that came as one message are one block of memory, which a column of theirs would keep.
            self._keys.append(pa.concat_arrays([*keys.chunks, pa.array([], keys.type)]))

    def footer(self) -> dict[str, str]:
        """Return the footer entries for all keys taken."""
        entries = {}
        if self._options.bloom_enabled:
            bloom = self._bloom if self._bloom is not None else self._build()
            entries[BLOOM_KEY] = bloom.to_text()
            entries[BLOOM_TYPE_KEY] = bloom.kind.value
        if self.min_key is not None and self.max_key is not None:
            entries[MIN_KEY] = self.min_key
            entries[MAX_KEY] = self.max_key
        return entries

    def _build(self) -> BloomFilter:
        options = self._options
        return BloomFilter.for_keys(
            pa.chunked_array(self._keys, pa.string()),
            entries=options.bloom_entries,
            fpp=options.bloom_fpp,
            kind=options.bloom_type,
            max_entries=options.bloom_max_entries,
        )

    def _widen(self, low: str, high: str) -> None:
        if self.min_key is None or java_order(low) < java_order(self.min_key):
            self.min_key = low
        if self.max_key is None or java_order(high) > java_order(self.max_key):
            self.max_key = high


def key_range(keys: pa.Array) -> tuple[str, str]:
    """Return smallest and largest of some strings (at least one, none null) in the order of Java strings."""
    if _orders_like_bytes(keys):
        bounds = pc.min_max(keys).as_py()
        return bounds["min"], bounds["max"]
    texts = keys.to_pylist()
    return min(texts, key=java_order), max(texts, key=java_order)


def within_range(keys: pa.Array, low: str, high: str) -> pa.Array:
    """Return which keys lie between two others, both included, in the order of Java strings."""
    if _orders_like_bytes(pa.array([low, high])) and _orders_like_bytes(keys):
        return pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))
    first, last = java_order(low), java_order(high)
    found = [first <= java_order(key) <= last for key in keys.to_pylist()]
    return pa.array(found, pa.bool_())


def java_order(text: str) -> bytes:
    """Sort key of Java's ``String.compareTo``, which compares UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _orders_like_bytes(keys: pa.Array) -> bool:
    """Return whether UTF-8 order and UTF-16 order agree; only characters beyond U+FFFF make them differ."""
    if pc.all(pc.string_is_ascii(keys)).as_py():
        return True
    return not pc.any(pc.match_substring_regex(keys, r"[\x{10000}-\x{10FFFF}]")).as_py()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8")
