"""What a filter compares a column of floats with: numbers as the column has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_MOST = {32: math.nextafter(2.0**128 - 2.0**103, 0), 64: float(np.finfo(np.float64).max)}
"""The greatest number that has a nearest one of each width in bits; beyond it a number would become infinity."""


def float_members(values: Iterable[object], kind: pa.DataType) -> Sequence[object] | pa.Array:
    """Return the members of a list as the column has them; Arrow takes the two zeros for different ones, but for equal bounds."""
    found = [nearest_float(each, kind) for each in map(_number, values) if not _is_beyond(each, kind)]
    if all(each is None for each in found):
        return pa.array(found, kind)
    return [*found, 0.0, -0.0] if 0 in found else found


def _number(value: object) -> object:
    """Return the number that a text says, of which Arrow would make infinity where it is too large; whatever else as it is."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        return value
    try:
        number = pa.scalar(text).cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return value
    return Decimal(text) if math.isinf(number) and "i" not in text.lower() else number


def _is_beyond(value: object, kind: pa.DataType) -> bool:
    """Tell whether a number is none of a column's, and not infinity either, which Arrow would make of it."""
    is_number = isinstance(value, (int, float, Decimal)) and value == value
    return is_number and _MOST[kind.bit_width] < abs(value) < math.inf  # type: ignore[arg-type]


def nearest_float(value: object, kind: pa.DataType) -> object:
    """Return a number as the column has it: the nearest of 32 bits, say, which its files' bounds and its rows are told in."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if _is_beyond(value, kind):
        return value if abs(value) > _MOST[64] else float(value)
    return pa.scalar(float(value), pa.float64()).cast(kind, safe=False).as_py()


def float_filter(name: str, operator: str, value: object, kind: pa.DataType) -> tuple[Any, ...]:
    """Return a filter that compares a column with one number; one beyond all floats, which Arrow refuses, lies before infinity."""
    is_number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    if not (is_number and _is_beyond(value, pa.float64())):
        return name, operator, nearest_float(value, kind)
    if operator in ("=", "=="):
        return name, "in", pa.array([], kind)
    if operator == "!=":
        return name, "!=", math.nan  # all but those without a value
    is_above, infinity = value > 0, math.inf  # type: ignore[operator]
    if operator in ("<", "<="):
        return (name, "<", infinity) if is_above else (name, "<=", -infinity)
    return (name, ">=", infinity) if is_above else (name, ">", -infinity)
