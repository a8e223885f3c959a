"""Values as unsigned 64-bit words whose order is that of the values.

Null is 0. What 64 bits cannot tell apart (texts that agree in eight bytes, long decimals) gets one word.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)
_ALL = np.uint64(2**64 - 1)
_WORD_BYTES = 8
_EXACT_DECIMAL_DIGITS = 18


def is_orderable(kind: pa.DataType) -> bool:
    """Tell whether rows can be ordered by a column of a type: any but lists, maps and structs."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def is_text(kind: pa.DataType) -> bool:
    """Tell whether values of a type are ordered by their bytes."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
    )


def order_words(values: pa.Array, *, prefix: bytes = b"") -> Words:
    """Return a word a value.

    Args:
        prefix: Texts only: bytes with which values begin, so that the eight bytes after it make the word. A value that
            does not begin so comes before or after all that do.
    """
    kind = values.type
    if is_text(kind):
        words = _text_words(values.cast(pa.large_binary()), prefix)
    elif pa.types.is_floating(kind):
        words = _float_words(_numbers(values, pa.float64()))
    elif pa.types.is_decimal(kind):
        words = _decimal_words(values)
    else:
        words = _whole_words(_numbers(_as_whole(values), pa.int64()))
    if values.null_count:
        words[np.asarray(values.is_null())] = 0
    return words


def _numbers(values: pa.Array, kind: pa.DataType) -> npt.NDArray[np.generic]:
    zero = pa.scalar(0, kind)
    found: npt.NDArray[np.generic] = np.asarray(pc.fill_null(pc.cast(values, kind), zero))
    return found


def _as_whole(values: pa.Array) -> pa.Array:
    if pa.types.is_boolean(values.type):
        return pc.cast(values, pa.int8())
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        return pc.cast(values, pa.int32())
    return values


def _whole_words(numbers: npt.NDArray[np.generic]) -> Words:
    words: Words = np.ascontiguousarray(numbers, dtype=np.int64).view(np.uint64) ^ _SIGN
    return words


def _float_words(numbers: npt.NDArray[np.generic]) -> Words:
    """Order as Spark does: -0.0 equals 0.0, and NaN is greater than everything."""
    floats = np.array(numbers, dtype=np.float64) + 0.0
    floats[np.isnan(floats)] = np.nan
    bits = floats.view(np.uint64)
    negative = (bits & _SIGN) != 0
    words: Words = np.where(negative, ~bits, bits | _SIGN)
    return words


def _decimal_words(values: pa.Array) -> Words:
    kind = values.type
    if kind.precision <= _EXACT_DECIMAL_DIGITS:
        wide = values.cast(pa.decimal128(38, kind.scale))
        # 16 bytes a value, little endian: the lower half holds all of a number of 18 digits.
        raw = np.frombuffer(wide.buffers()[1], dtype=np.int64, count=2 * (wide.offset + len(wide)))
        lower = np.array(raw[0::2][wide.offset :])
        return _whole_words(lower)
    return _float_words(_numbers(values, pa.float64()))


def _text_words(values: pa.Array, prefix: bytes) -> Words:
    values = pc.fill_null(values, b"")
    words = _eight_bytes(values, len(prefix))
    if prefix:
        other = ~np.asarray(pc.starts_with(values, pattern=prefix))
        if other.any():
            after = np.asarray(pc.greater(values, pa.scalar(prefix, values.type)))
            words[other] = np.where(after[other], _ALL, np.uint64(0))
    return words


def _eight_bytes(values: pa.Array, skip: int) -> Words:
    """Return the bytes from ``skip`` on as one big-endian number; a shorter text is filled up with zeros."""
    words: Words = np.zeros(len(values), dtype=np.uint64)
    data = values.buffers()[2]
    if not len(values) or data is None or not data.size:
        return words
    ends = np.frombuffer(values.buffers()[1], dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data, dtype=np.uint8)
    for position in range(skip, skip + _WORD_BYTES):
        at = ends[:-1] + position
        inside = at < ends[1:]
        byte = content[np.minimum(at, len(content) - 1)]
        words = (words << np.uint64(8)) | np.where(inside, byte, 0).astype(np.uint64)
    return words
