"""Column statistics as conditions on the values of a column, by which Arrow simplifies a filter.

A bound counts only where its type is that of the column, and where the order of Java's values is Arrow's.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, localcontext
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import LocalFileSystem

from hudi_engine.format.metadata.records import Record
from hudi_engine.format.metadata.statistics import DATE_ORDINAL, StoredBound, stored_bound

Name = TypeVar("Name")

_FIRST_OF_ANOTHER_ORDER = "\ud800"
"""From this character on UTF-16, by which Java compares, sorts in another order than UTF-8."""
_EXACT = Context(prec=80)
_EPOCH = datetime.date(1970, 1, 1)
_TIME_UNITS = {15: 10**3, 16: 10**6, 17: 10**9, 18: 10**3, 19: 10**6, 20: 10**9}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MOST_CASES = 64
"""Combinations of ranges, and of "is null", of several columns; more columns than make these are not looked at."""


class Bounds(NamedTuple):
    """The values of a column in some rows.

    Args:
        ranges: Each value lies in one of these, both ends included, and of the column's type.
        has_nulls: Whether a row may have no value.
    """

    ranges: tuple[tuple[Any, Any], ...]
    has_nulls: bool


NO_VALUES = Bounds((), True)


def bounds_of(record: Record | None, kind: pa.DataType) -> Bounds | None:
    """Return the bounds in a record of column statistics, for a column of a type; None where they cannot be relied on.

    A record without any value may be of a file that has no statistics, so it bounds nothing.
    """
    stats = (record or {}).get("ColumnStatsMetadata")
    if not stats or stats.get("isDeleted"):
        return None
    count, nulls = stats.get("valueCount"), stats.get("nullCount")
    if count == 0:
        return NO_VALUES  # a log of deletes, or of updates of other columns
    if count is None or nulls is None or stats["minValue"] is None or stats["maxValue"] is None:
        return None
    low, high = (_value(stats, each, kind) for each in ("minValue", "maxValue"))
    if low is None or high is None or low > high:
        return None
    if pa.types.is_floating(kind) and (math.isnan(low) or math.isnan(high) or low <= 0 <= high):
        return None  # where a part of the file has a NaN, Hudi takes 0.0 for both of its bounds
    return Bounds(((low, high),), nulls != 0)


def union_of(bounds: Iterable[Bounds | None]) -> Bounds | None:
    """Return what holds for the rows of all; None where nothing is known of some."""
    found = Bounds((), False)
    for each in bounds:
        if each is None:
            return None
        found = Bounds((*found.ranges, *each.ranges), found.has_nulls or each.has_nulls)
    return found


def possible(
    schema: pa.Schema, known: Mapping[Name, Mapping[str, Bounds | pc.Expression]], filters: pc.Expression
) -> set[Name]:
    """Return the names of which some row may pass a filter, by what is known of the columns of their rows; no file is opened."""
    import pyarrow.dataset as ds  # here, as it imports pandas

    form, nowhere = ds.ParquetFileFormat(), LocalFileSystem()
    names = list(known)
    # Named by number: of a path Arrow makes another one, of "~" the home folder.
    fragments = [
        form.make_fragment(str(number), nowhere, partition_expression=each)
        for number, name in enumerate(names)
        for each in _conditions(schema, known[name])
    ]
    dataset = ds.FileSystemDataset(fragments, schema, form, nowhere)
    return {names[int(each.path)] for each in dataset.get_fragments(filters)}


def _conditions(schema: pa.Schema, known: Mapping[str, Bounds | pc.Expression]) -> list[pc.Expression]:
    """Return conditions of which every row fulfils one; Arrow makes more of "is null" alone than of "or is null"."""
    found = [pc.scalar(True)]
    for name, bounds in known.items():
        if not isinstance(bounds, Bounds):
            found = [each & bounds for each in found]
            continue
        column, kind = pc.field(name), schema.field(name).type
        cases = [
            (column >= pa.scalar(low, kind)) & (column <= pa.scalar(high, kind))
            for low, high in dict.fromkeys(bounds.ranges)
        ]
        if bounds.has_nulls:
            cases.append(column.is_null())
        if cases and len(found) * len(cases) <= _MOST_CASES:
            found = [each & case for each in found for case in cases]
    return found


def _value(stats: Mapping[str, Any], side: str, kind: pa.DataType) -> Any:
    """Return a bound as a scalar of a column's type is made of it; None where it is of another type."""
    read = next((read for test, read in _READERS if test(kind)), None)
    try:
        with localcontext(_EXACT):
            stored = stored_bound(stats, side)
            return None if read is None or stored is None else read(stored, kind)
    except (ArithmeticError, ValueError):
        return None  # a date after the year 9999, or a number of more digits than the column's


def _number(stored: StoredBound, _: pa.DataType) -> Any:
    is_number = stored.wrapper in ("IntWrapper", "LongWrapper") and stored.ordinal in (None, 3, 4)
    return stored.value if is_number else None


def _float(stored: StoredBound, kind: pa.DataType) -> Any:
    # A float that was widened is read as its digits say: 0.1, where the bound is 0.10000000149.
    wrapper = "DoubleWrapper" if pa.types.is_float64(kind) else "FloatWrapper"
    return stored.value if stored.wrapper == wrapper else None


def _boolean(stored: StoredBound, _: pa.DataType) -> Any:
    return stored.value if stored.wrapper == "BooleanWrapper" else None


def _text(stored: StoredBound, _: pa.DataType) -> Any:
    is_text = stored.wrapper == "StringWrapper" and stored.ordinal in (None, 7)
    return stored.value if is_text and max(stored.value, default="") < _FIRST_OF_ANOTHER_ORDER else None


def _bytes(stored: StoredBound, _: pa.DataType) -> Any:
    return stored.value if stored.wrapper == "BytesWrapper" and stored.ordinal in (None, 8, 9) else None


def _date(stored: StoredBound, _: pa.DataType) -> Any:
    if stored.wrapper != "DateWrapper" and (stored.wrapper, stored.ordinal) != ("IntWrapper", DATE_ORDINAL):
        return None
    is_date = isinstance(stored.value, datetime.date)
    return stored.value if is_date else _EPOCH + datetime.timedelta(days=stored.value)


def _decimal(stored: StoredBound, kind: pa.DataType) -> Any:
    value = stored.value
    if not isinstance(value, Decimal):
        return None
    rounded = round(value, kind.scale)
    return rounded if value == rounded else None


def _time(stored: StoredBound, kind: pa.DataType) -> Any:
    """Return a time in the column's unit; version 1 of the index has the numbers of the column as they are stored."""
    unit, of_value = _PER_SECOND[kind.unit], 0
    if stored.wrapper == "TimestampMicrosWrapper":
        of_value = _PER_SECOND["us"]
    elif stored.wrapper == "LongWrapper":
        of_value = unit if stored.ordinal is None else _TIME_UNITS.get(stored.ordinal, 0)
    if not of_value or not isinstance(stored.value, int) or stored.value * unit % of_value:
        return None
    return stored.value * unit // of_value


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[StoredBound, pa.DataType], Any]], ...] = (
    (pa.types.is_integer, _number),
    (lambda kind: pa.types.is_float32(kind) or pa.types.is_float64(kind), _float),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_string, _text),
    (pa.types.is_binary, _bytes),
    (pa.types.is_date32, _date),
    (pa.types.is_decimal128, _decimal),
    (pa.types.is_timestamp, _time),
)
