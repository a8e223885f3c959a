"""Smallest and largest value of two column chunks that become one.

Source: Apache Parquet, ``parquet.thrift`` (Statistics, ColumnOrder, SchemaElement).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from hudi_engine.format.parquet.thrift import I64, Struct

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
    told = [
        each
        for each, count in zip(both, values, strict=True)
        if each.get(NULLS, (I64, -1))[1] != count or MIN in each
    ]
    order = _order(element)
    if order is None or not told or not all(MIN in each and MAX in each for each in told):
        return joined
    low = min(told, key=lambda each: order(each[MIN][1]))
    high = max(told, key=lambda each: order(each[MAX][1]))
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
