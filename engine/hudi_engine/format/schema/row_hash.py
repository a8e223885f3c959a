"""A hash of rows that depends on their values alone: not on their order, their files, nor on how a column is encoded.

The hash of a row is made of its columns' names and values; a null is nothing, so that a column which is added changes no row. Whole
numbers of any width are one type; times count in microseconds; a value of another kind of type, or of a decimal of another scale,
is another value. Rows of a table are summed modulo 2^64, so that a write can add the rows that come and take away those that go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.format.schema.meta_fields import META_FIELDS, OPERATION
from hudi_engine.format.schema.nested import is_list, type_parts

Hashes = npt.NDArray[np.uint64]
_MULTIPLY, _AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_LENGTH, _NULL = np.uint64(0xA0761D6478BD642F), np.uint64(0xE7037ED1A0B428DB)
_HALF = np.uint64(32)
MODULUS = 1 << 64
_ROWS_AT_ONCE = 32_768
"""Rows whose temporary arrays stay in a processor's cache."""
_LONG_BYTES = 256
"""Longer texts are hashed one by one."""
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


@dataclass
class ContentChange:
    """How many rows come or go, and what that adds to the sum of the hashes, modulo 2^64."""

    rows: int = 0
    hash: int = 0

    def add(self, rows: pa.Table) -> None:
        """Note rows that come."""
        self.rows, self.hash = self.rows + rows.num_rows, (self.hash + content_hash(rows)) % MODULUS

    def remove(self, rows: pa.Table) -> None:
        """Note rows that go."""
        self.rows, self.hash = self.rows - rows.num_rows, (self.hash - content_hash(rows)) % MODULUS

    def collect(self, _: str, before: pa.Table | None, after: pa.Table | None) -> None:
        """Note rows that become others, that go or that come."""
        if before is not None:
            self.remove(before)
        if after is not None:
            self.add(after)


def content_hash(rows: pa.Table) -> int:
    """Return the sum of the hashes of rows, over all columns but Hudi's meta columns, modulo 2^64."""
    return int(row_hashes(rows).sum(dtype=np.uint64)) if rows.num_rows else 0


def row_hashes(rows: pa.Table) -> Hashes:
    """Return a hash for each row, over all columns but Hudi's meta columns."""
    names = [name for name in rows.column_names if name not in META_FIELDS and name != OPERATION]
    data = rows.select(names)
    parts = [_of_batch(each) for each in data.to_batches(max_chunksize=_ROWS_AT_ONCE)]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _of_batch(batch: pa.RecordBatch) -> Hashes:
    found = np.zeros(batch.num_rows, np.uint64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        found += _named(name, column)
    return _mixed(found)


def _named(name: str, column: pa.Array) -> Hashes:
    """Return the part of a row's hash that a column is; nothing where it is null."""
    digest = hashlib.blake2b(name.lower().encode(), digest_size=8).digest()
    hashes = _mixed(_of_values(column) ^ np.uint64(int.from_bytes(digest, "little")))
    if column.null_count:
        hashes[~np.asarray(column.is_valid())] = 0
    return hashes


def _mixed(values: Hashes) -> Hashes:
    """Spread the bits of numbers, in place."""
    values *= _MULTIPLY
    values ^= values >> _HALF
    values *= _AGAIN
    values ^= values >> _HALF
    return values


def _of_values(column: pa.Array) -> Hashes:
    """Return numbers for values, any number for a null; those of two kinds of types are never the same by rule."""
    if not len(column):
        return np.zeros(0, np.uint64)
    if pa.types.is_dictionary(column.type):
        return _taken(column)
    found = _untagged(column)
    found ^= _tag(_kind(column.type))
    return found


@cache
def _tag(kind: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(kind.encode(), digest_size=8).digest(), "little"))


def _untagged(column: pa.Array) -> Hashes:
    """Return numbers for values that differ within their kind of type, in an array of its own."""
    kind: Any = column.type
    if pa.types.is_struct(kind):
        found = np.full(len(column), _LENGTH, np.uint64)
        for field, child in zip(kind, column.flatten(), strict=True):
            found += _named(field.name, child)
        return found
    if pa.types.is_map(kind):
        return _of_lists(column, _of_items(column.keys, column.items), ordered=False)
    if is_list(kind):
        return _of_lists(column, _elements(column.values), ordered=True)
    if pa.types.is_decimal(kind):
        if kind.bit_width < 128:
            column, kind = column.cast(pa.decimal128(kind.precision, kind.scale)), pa.decimal128(1)
        words = _buffer(column, np.uint64, kind.byte_width // 8).reshape(len(column), -1)
        factors = _LENGTH ** np.arange(words.shape[1], dtype=np.uint64)
        summed: Hashes = (words * factors).sum(axis=1, dtype=np.uint64)
        return summed
    return _of_numbers(column)


def _of_numbers(column: pa.Array) -> Hashes:
    """Return numbers for values of one width, and for texts."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column, kind = column.cast(pa.uint8()), pa.uint8()
    elif pa.types.is_timestamp(kind) and kind.unit != "us":
        column, kind = column.cast(pa.timestamp("us", kind.tz), safe=False), pa.timestamp("us")
    elif pa.types.is_time32(kind):
        column, kind = column.cast(pa.time64("us")), pa.time64("us")
    if pa.types.is_floating(kind):
        numbers = _buffer(column, kind.to_pandas_dtype()).astype(np.float64)
        numbers[numbers == 0] = 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint64)
    if pa.types.is_integer(kind):
        return _buffer(column, kind.to_pandas_dtype()).astype(np.int64).view(np.uint64)
    if pa.types.is_temporal(kind):
        width = np.int32 if kind.bit_width == 32 else np.int64
        return _buffer(column, width).astype(np.int64).view(np.uint64)
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    is_text = wide or pa.types.is_string(kind) or pa.types.is_binary(kind)
    return _of_texts(column if is_text else column.cast(pa.binary()), np.int64 if wide else np.int32)


def _buffer(column: pa.Array, kind: Any, width: int = 1) -> npt.NDArray[Any]:
    """Return the values of an array of a fixed width, without a copy."""
    start, end = column.offset * width, (column.offset + len(column)) * width
    return np.frombuffer(column.buffers()[1] or b"", kind)[start:end]


def _taken(column: pa.Array) -> Hashes:
    """Return the numbers of a coded column: those of its values, at their places."""
    values = _of_values(column.dictionary)
    if not len(values):
        return np.zeros(len(column), np.uint64)
    found: Hashes = values[np.asarray(column.indices.fill_null(0))]
    return found


def _of_texts(column: pa.Array, offset: Any) -> Hashes:
    """Return numbers for texts: eight bytes at a time of all that have so many."""
    data, starts, lengths = _bytes(column, offset)
    found = lengths.astype(np.uint64) * _LENGTH
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    is_long = lengths > _LONG_BYTES
    rows = None if not is_long.any() else np.flatnonzero(~is_long)
    left, places = (lengths, starts) if rows is None else (lengths[rows], starts[rows])
    while len(left):
        active = left > 0
        if not active.all():
            rows = np.flatnonzero(active) if rows is None else rows[active]
            left, places = left[active], places[active]
            if not len(left):
                break
        word = words[places] & _MASKS[np.minimum(left, 8)]
        if rows is None:
            found = _mixed(found ^ word)
        else:
            found[rows] = _mixed(found[rows] ^ word)
        left, places = left - 8, places + 8
    for row in np.flatnonzero(is_long):
        text = data[starts[row] : starts[row] + lengths[row]]
        found[row] = int.from_bytes(hashlib.blake2b(text.tobytes(), digest_size=8).digest(), "little")
    return found


def _bytes(
    column: pa.Array, kind: Any
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the bytes of texts with eight more behind them, and where each begins and how long it is."""
    _, offsets, body = column.buffers()
    if offsets is None or not len(column):
        return np.zeros(8, np.uint8), *(2 * (np.zeros(len(column), np.int64),))
    ends = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, last = ends[0], ends[-1]
    data = np.zeros(last - first + 8, np.uint8)
    if body is not None and last > first:
        data[:-8] = np.frombuffer(body, np.uint8)[first:last]
    return data, ends[:-1] - first, np.diff(ends)


def _elements(values: pa.Array) -> Hashes:
    """Return hashes of elements; a null is one."""
    hashes = _mixed(_of_values(values) ^ _MULTIPLY)
    if values.null_count:
        hashes[~np.asarray(values.is_valid())] = _NULL
    return hashes


def _of_items(keys: pa.Array, values: pa.Array) -> Hashes:
    return _mixed(_elements(keys) + _AGAIN * _elements(values))


def _of_lists(column: pa.Array, elements: Hashes, *, ordered: bool) -> Hashes:
    """Return numbers for lists of elements: of all elements of the array that they are a part of."""
    ends = np.asarray(column.offsets).astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    if ordered:
        first, last = ends[0], ends[-1]
        place = np.arange(first, last) - np.repeat(starts, lengths)
        part = _mixed(elements[first:last] + _LENGTH * (place + 1).astype(np.uint64))
        elements = np.concatenate([elements[:first], part])
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(elements, dtype=np.uint64)])
    found: Hashes = sums[ends[1:]] - sums[starts] + lengths.astype(np.uint64) * _LENGTH
    return found


def same_hash(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether a value has the same hash in two types, so that a column may change from the one to the other."""
    return bool(_family(one) == _family(other))


def _family(kind: Any) -> Any:
    """Return what the hash goes by of a type, to the innermost."""
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    return _kind(kind), [(name.lower(), _family(part)) for name, part in type_parts(kind)]


_KINDS: Mapping[str, tuple[Callable[[Any], bool], ...]] = {
    "integer": (pa.types.is_integer,),
    "timestamp": (pa.types.is_timestamp,),
    "time": (pa.types.is_time,),
    "date": (pa.types.is_date32,),
    "text": (pa.types.is_string, pa.types.is_large_string),
    "struct": (pa.types.is_struct,),
    "map": (pa.types.is_map,),
    "list": (is_list,),
    "binary": (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
}


def _kind(kind: Any) -> str:
    """Return the name of all types of which a value has one hash; a float's is not that of the double it is widened to."""
    if pa.types.is_decimal(kind):
        return f"decimal of scale {kind.scale}"
    return next((name for name, tests in _KINDS.items() if any(test(kind) for test in tests)), str(kind))
