"""Text of floating point numbers as Java prints them.

Hudi turns numbers into text with Java's ``toString`` where they are part of a key or a partition path, and when a column is
widened to string; readers must print the same digits. One form depends on the Java version: before JDK 19 some doubles of
sixteen digits before the point and more print a digit more than they need (``8.7120844719528528E16``); the shortest text, that
of JDK 19 and later, is used here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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
