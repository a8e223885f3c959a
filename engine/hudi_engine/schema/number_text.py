"""Text of floating point numbers as Java prints them.

Hudi turns numbers into text with Java's ``toString`` when a column is widened to string; readers must print
the same digits.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def java_float_text(values: pa.Array) -> pa.StringArray:
    """Return text of a float or double array as ``Float.toString`` / ``Double.toString`` give it; nulls stay null.

    Args:
        values: Arrow array of float32 or float64.
    """
    encoded = pc.dictionary_encode(values)
    single = pa.types.is_float32(values.type)
    texts = [_java_text(number, single) for number in encoded.dictionary.to_numpy(zero_copy_only=False)]
    text_array = pa.array(texts, pa.string())
    # -0.0 and 0.0 share a dictionary entry, so the sign is looked at in the values themselves.
    result = text_array.take(encoded.indices)
    numbers = values.fill_null(1.0).to_numpy(zero_copy_only=False)
    negative_zero = np.signbit(numbers) & (numbers == 0)
    if negative_zero.any():
        result = pc.if_else(pa.array(negative_zero), pa.scalar("-0.0"), result)
    return result


def _java_text(number: np.floating, single: bool) -> str:
    """Return a number as Java's toString does: shortest digits, with an exponent below 1e-3 and from 1e7."""
    value = float(number)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0.0"
    # numpy prints the shortest digits that give the same number back in its own width.
    shortest = np.format_float_scientific(
        np.float32(value) if single else np.float64(value), unique=True, trim="-"
    )
    mantissa, exponent_text = shortest.split("e")
    sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    digits = digits.replace(".", "")
    exponent = int(exponent_text)
    if -3 <= exponent < 7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"
