"""The text that a value becomes in a record key or a partition path.

Serves every table version: the forms are those of Java's ``toString`` for the values Hudi reads from Avro
(Hudi table spec, record key encoding).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.casting import java_float_text

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"


def complex_keys(columns: Sequence[tuple[str, pa.StringArray]]) -> pa.StringArray:
    """Join the texts of several fields to record keys; null where every field is null or empty."""
    parts = []
    usable = None
    for name, texts in columns:
        value = pc.fill_null(texts, NULL_PLACEHOLDER)
        value = pc.if_else(pc.equal(value, ""), EMPTY_PLACEHOLDER, value)
        parts.append(pc.binary_join_element_wise(pa.scalar(f"{name}:"), value, ""))
        filled = pc.fill_null(pc.not_equal(texts, ""), False)
        usable = filled if usable is None else pc.or_(usable, filled)
    keys = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")
    return pc.if_else(usable, keys, pa.scalar(None, pa.string()))


_DAY_OF_YEAR_10000 = 2_932_897
_DAYS_PER_400_YEARS = 146_097
# Arrow prints dates only between the years -32767 and 32767.
_PRINTABLE_DAYS = 11_248_737
_HEX_PAIRS = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)


def key_text(
    array: pa.Array | pa.ChunkedArray, *, consistent_logical_timestamp: bool = False
) -> pa.StringArray:
    """Turn a column into the text its values have in record keys and partition paths; nulls stay null.

    Args:
        consistent_logical_timestamp: Write timestamps as ``2024-02-03 04:05:06.123`` in UTC instead of their raw
            number of microseconds (option
            ``hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled``).
    """
    if isinstance(array, pa.ChunkedArray):
        chunks = [
            key_text(chunk, consistent_logical_timestamp=consistent_logical_timestamp)
            for chunk in array.chunks
        ]
        return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
    kind = array.type
    if pa.types.is_dictionary(kind):
        plain = array.dictionary_decode()
        return key_text(plain, consistent_logical_timestamp=consistent_logical_timestamp)
    if pa.types.is_timestamp(kind):
        return _timestamp_text(array) if consistent_logical_timestamp else _raw_text(array)
    convert = _converter(kind)
    if convert is None:
        raise SchemaError(
            f"a column of type {kind} cannot be a record key or partition column; "
            "use a string, boolean, integer, float, double, decimal, date, timestamp or binary column"
        )
    return convert(array)


def map_distinct(array: pa.Array, convert: Callable[[object], str | None]) -> pa.StringArray:
    """Apply a Python function once to every distinct value of a column; nulls stay null."""
    encoded = array.dictionary_encode()
    texts = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _converter(kind: pa.DataType) -> Callable[[pa.Array], pa.StringArray] | None:
    """Choose how values of a type become text as Java writes them; None for types that are no key."""
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind):
        return _cast_text
    if types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind):
        return _cast_text
    if types.is_date32(kind):
        return _date_text
    if types.is_float32(kind) or types.is_float64(kind):
        return java_float_text
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _hex_text
    return None


def _cast_text(array: pa.Array) -> pa.StringArray:
    return pc.cast(array, pa.string())


def _raw_text(array: pa.Array) -> pa.StringArray:
    return pc.cast(pc.cast(array, pa.int64()), pa.string())


def _date_text(array: pa.Array) -> pa.StringArray:
    days = pc.cast(array, pa.int32())
    if pc.any(pc.greater_equal(pc.abs(days), _PRINTABLE_DAYS)).as_py():
        return map_distinct(days, _far_date_text)
    text = pc.cast(array, pa.string())
    late = pc.greater_equal(days, _DAY_OF_YEAR_10000)
    return pc.if_else(late, pc.binary_join_element_wise("+", text, ""), text)


def _far_date_text(day: object) -> str:
    cycles, rest = divmod(int(str(day)), _DAYS_PER_400_YEARS)
    near = np.datetime64(rest, "D").astype(object)
    year = near.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{near.month:02d}-{near.day:02d}"


def _timestamp_text(array: pa.Array) -> pa.StringArray:
    # Java divides by a thousand towards zero, so an instant before 1970 moves up.
    raw = pc.cast(array, pa.int64())
    per_milli = {"s": None, "ms": 1, "us": 1_000, "ns": 1_000_000}[array.type.unit]
    millis = pc.multiply(raw, 1000) if per_milli is None else pc.divide(raw, per_milli)
    local = pc.cast(millis, pa.timestamp("ms"))
    text = pc.strftime(local, format="%Y-%m-%d %H:%M:%S")
    return pc.replace_substring_regex(text, pattern=r"(\.[0-9]+?)0+$", replacement=r"\1")


def _hex_text(array: pa.Array) -> pa.StringArray:
    plain = pc.cast(array, pa.large_binary())
    _, offset_buffer, data_buffer = plain.buffers()
    if len(plain) == 0 or data_buffer is None:
        return pc.cast(plain, pa.string())
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[plain.offset : plain.offset + len(plain) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
    pairs = _HEX_PAIRS[data]
    doubled = (offsets - offsets[0]) * 2
    text = pa.LargeStringArray.from_buffers(len(plain), pa.py_buffer(doubled), pa.py_buffer(pairs))
    if plain.null_count:
        text = pc.if_else(plain.is_valid(), text, pa.scalar(None, pa.large_string()))
    return pc.cast(text, pa.string())
