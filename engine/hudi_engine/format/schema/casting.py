"""Reading columns as another type than they were stored with: Hudi's promotions, at every level of nesting.

Source: Hudi table format, snapshot read (missing columns are null; int, long, float, double widen; numbers,
dates, decimals and binary become text) and the type changes of schema on read.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.nested import array_of_parts, array_parts, paired_parts, type_parts


# Hudi prints numbers with Java's toString in keys, partition paths and columns widened to string. Before JDK 19 some doubles
# have a digit more than they need (8.7120844719528528E16); here the text is the shortest, that of JDK 19 and later.
def java_float_text(array: pa.Array) -> pa.StringArray:
    """Return text of a float or double array as ``Float.toString`` / ``Double.toString`` give it; nulls stay null."""
    magnitude = pc.abs(array)
    plain = pc.and_(pc.greater_equal(magnitude, 0.001), pc.less(magnitude, 1e7))
    text = pc.cast(array, pa.string())
    whole = pc.invert(pc.match_substring(text, "."))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    special = pc.invert(pc.fill_null(plain, True))
    if not pc.any(special).as_py():
        return text
    return pc.replace_with_mask(text, special, _special_floating_text(array.filter(special)))


def java_floating_text(value: float | np.floating) -> str:
    """Return text of a double, or of a ``numpy.float32``, as Java's ``toString`` gives it.

    The digits are the fewest that read back as the same value, at least two; plain notation from 0.001 up to
    10,000,000, otherwise with an exponent.
    """
    if value != value:
        return "NaN"
    sign = "-" if np.signbit(value) else ""
    magnitude = -value if sign else value
    if np.isinf(magnitude):
        return f"{sign}Infinity"
    if magnitude == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest_digits(magnitude)
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _special_floating_text(array: pa.Array) -> pa.StringArray:
    # Grouped by bits: as numbers 0.0 and -0.0 are equal, but their texts differ.
    bits = array.view(pa.int32() if pa.types.is_float32(array.type) else pa.int64())
    encoded = bits.dictionary_encode()
    values = encoded.dictionary.view(array.type).to_numpy(zero_copy_only=False)
    return pa.array([java_floating_text(value) for value in values], pa.string()).take(encoded.indices)


def _shortest_digits(magnitude: float | np.floating) -> tuple[str, int]:
    """Return significant digits and decimal exponent of a positive finite number."""
    text = np.format_float_scientific(magnitude, unique=True, trim="-")
    digits, _, exponent = text.partition("e")
    digits = digits.replace(".", "")
    if len(digits) == 1:
        # Java prints two digits anyway, and takes the two that are nearest to the value.
        mantissa, _, shifted = f"{float(magnitude):.1e}".partition("e")
        candidate = mantissa.replace(".", "")
        if type(magnitude)(f"{mantissa}e{shifted}") == magnitude:
            return candidate.rstrip("0") or "0", int(shifted)
    return digits, int(exponent)


_UNITS = ("s", "ms", "us", "ns")
_UNIT_NAMES = {"s": "second", "ms": "millisecond", "us": "microsecond"}


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give ``table`` the columns, order and types of ``schema``."""
    if table.schema.equals(schema):
        return table
    positions = {name: index for index, name in reversed(list(enumerate(table.column_names)))}
    columns = []
    for field in schema:
        position = positions.get(field.name)
        if position is None:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
        else:
            columns.append(cast_column(table.column(position), field.type, field.name))
    if not columns:
        return table.select([])
    return pa.Table.from_arrays(columns, schema=schema)


def cast_column(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Cast one column, chunk by chunk."""
    if column.type.equals(kind, check_metadata=True):
        return column
    return pa.chunked_array([cast_array(chunk, kind, name) for chunk in column.chunks], type=kind)


def cast_array(array: pa.Array, kind: pa.DataType, name: str = "") -> pa.Array:
    """Cast one array; nulls stay null, nested values are cast field by field by name."""
    stored = array.type
    if stored.equals(kind, check_metadata=True):
        return array
    if pa.types.is_null(stored):
        return pa.nulls(len(array), kind)
    if pa.types.is_dictionary(stored):
        return cast_array(array.dictionary_decode(), kind, name)
    if paired_parts(stored, kind) is not None:
        return _cast_nested(array, kind, name)
    try:
        return _cast_plain(array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"column {name!r} is stored as {stored} and cannot be read as {kind}: {str(error)[:200]}. "
            "Change the table schema back, or rewrite the column"
        ) from error


def _cast_plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast values that hold no other values, as Hudi promotes them."""
    stored = array.type
    if pa.types.is_floating(stored) and pa.types.is_string(kind):
        return java_float_text(array)
    if pa.types.is_float32(stored) and pa.types.is_float64(kind):
        # Hudi widens a float through its decimal text, so that 1.1 stays 1.1.
        return array.cast(pa.string()).cast(kind)
    if pa.types.is_integer(stored) and pa.types.is_decimal(kind):
        # Arrow wants room for the widest integer; only the values need to fit.
        return array.cast(pa.decimal256(76, kind.scale)).cast(kind)
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(kind):
        array = _floored(array, kind.unit)
    return array.cast(kind, safe=not _may_lose_digits(stored, kind))


def _floored(array: pa.Array, unit: str) -> pa.Array:
    """Return times that a coarser unit holds: the one before, as in Hudi, where Arrow's cast goes towards 1970."""
    stored = array.type
    if _UNITS.index(stored.unit) <= _UNITS.index(unit):
        return array
    # Without its zone, for which Arrow uses the system's data base of zones.
    plain = array.view(pa.int64()).view(pa.timestamp(stored.unit))
    floored = pc.floor_temporal(plain, unit=_UNIT_NAMES[unit])
    return floored.view(pa.int64()).view(stored)


def _may_lose_digits(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether Hudi promotes these types although the last digits can change."""
    if pa.types.is_timestamp(stored) or pa.types.is_floating(kind):
        return True
    return bool(pa.types.is_floating(stored) and pa.types.is_decimal(kind))


def _cast_nested(array: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Cast the parts of a struct, by name, or of a list or map; fields that the stored struct lacks are null."""
    held = dict(zip((part for part, _ in type_parts(array.type)), array_parts(array), strict=True))
    parts = [
        cast_array(held[part], wanted, f"{name}.{part}") if part in held else pa.nulls(len(array), wanted)
        for part, wanted in type_parts(kind)
    ]
    return array_of_parts(array, parts, kind)


def cast_batch(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return Spark's Arrow form of rows in the table's Arrow types; columns outside ``schema`` follow unchanged."""
    data, known = cast_table(table.select(schema.names), schema), set(schema.names)
    for name in table.column_names:
        if name not in known:
            data = data.append_column(name, table.column(name))
    return data


def with_values(rows: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Return rows with other values in some of their columns, by name; `set_column` for each of them copies the list of all."""
    arrays = [columns.get(name, rows.column(name)) for name in rows.column_names]
    fields = [field.with_type(column.type) for field, column in zip(rows.schema, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, rows.schema.metadata))
