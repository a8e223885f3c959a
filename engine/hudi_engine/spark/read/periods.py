"""Functions of a time in conditions of SQL, as the period of the column that they mean.

``to_date(ts) = '2026-01-05'`` is about the rows of one day, so that bounds of ``ts`` rule files out. Days begin by the time zone of
the session.
"""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_engine.format.metadata.expressions import sorted_parts
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.plans import JavaPlan

_DAY = "yyyy-MM-dd"
_FUNCTIONS = {"to_date": _DAY, "date": _DAY, "year": "yyyy"}
_STEPS = {"dd": 86_400, "HH": 3_600, "mm": 60, "ss": 1}
_FIRST = (1, 1, 1, 0, 0, 0)
_EPOCH = datetime.datetime(1970, 1, 1)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?")


class Period(NamedTuple):
    """Times from one on, and before another."""

    start: datetime.datetime
    end: datetime.datetime


class TimeFunction(NamedTuple):
    """A function of a column of times.

    Args:
        pattern: Of the texts that its values are compared with.
        is_text: Whether its values are texts: those of times outside of the years 1 to 9999 do not sort by time.
    """

    column: JavaPlan
    pattern: str
    is_text: bool = False


def time_function(function: JavaPlan) -> TimeFunction | None:
    """Return a function of times; None for what is none."""
    kind = plans.kind(function)
    if kind == "Cast" and str(function.dataType().typeName()) == "date":
        return TimeFunction(function.child(), _DAY)
    if kind != "UnresolvedFunction" or function.isDistinct() or function.filter().isDefined():
        return None
    name, given = ".".join(plans.texts(function.nameParts())).lower(), [*plans.items(function.arguments())]
    if name in _FUNCTIONS and len(given) == 1:
        return TimeFunction(given[0], _FUNCTIONS[name])
    is_format = name == "date_format" and len(given) == 2 and plans.kind(given[1]) == "Literal"
    pattern = str(given[1].value()) if is_format else ""
    return TimeFunction(given[0], pattern, is_text=True) if sorted_parts(pattern) is not None else None


def period_of(literal: JavaPlan, pattern: str) -> Period | None:
    """Return the times, on the clock of a zone, whose text by a pattern is a literal; None where there are none."""
    value, given = literal.value(), str(literal.dataType().typeName())
    if value is None:
        return None
    text = str(value)
    if given == "date" and pattern == _DAY:
        with suppress(OverflowError):
            text = (_EPOCH + datetime.timedelta(days=int(value))).date().isoformat()
    elif not (given == "string" or (given in ("integer", "long") and pattern == "yyyy")):
        return None
    return _parsed(text, pattern)


def _parsed(text: str, pattern: str) -> Period | None:
    parts = sorted_parts(pattern) or ()
    form = re.escape(pattern)
    for part in parts:
        form = form.replace(part, rf"(\d{{{len(part)}}})", 1)
    matched = re.fullmatch(form, text, re.ASCII)
    if matched is None:
        return None
    numbers = [int(each) for each in matched.groups()]
    with suppress(ValueError, OverflowError):
        year, month, day, hour, minute, second = [*numbers, *_FIRST[len(numbers) :]]
        start = datetime.datetime(year, month, day, hour, minute, second)
        if parts[-1] == "yyyy":
            return Period(start, start.replace(year=start.year + 1))
        if parts[-1] == "MM":
            return Period(
                start, start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
            )
        return Period(start, start + datetime.timedelta(seconds=_STEPS[parts[-1]]))
    return None


def session_zone(spark: SparkSession) -> ZoneInfo | None:
    """Return the time zone by which a session reads times without one; None for one that Python does not know."""
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone")))
    return None


def on_clock(moment: datetime.datetime, kind: pa.DataType, zone: ZoneInfo | None) -> datetime.date:
    """Return a time of the session's clock as a value of a column's type: in a gap or an overlap of the clock the first."""
    if pa.types.is_date(kind):
        return moment.date()
    return moment.replace(tzinfo=zone).astimezone(datetime.timezone.utc)


def time_of(literal: JavaPlan, kind: pa.DataType, zone: ZoneInfo | None) -> datetime.date | None:
    """Return a literal as Spark compares it with a timestamp; None where it casts the column."""
    value, given = literal.value(), str(literal.dataType().typeName())
    if value is None or kind.tz is None or zone is None:
        return None
    with suppress(ValueError, OverflowError):
        if given == "timestamp":
            moment = _EPOCH + datetime.timedelta(microseconds=int(value))
            return moment.replace(tzinfo=datetime.timezone.utc)
        if given == "date":
            return on_clock(_EPOCH + datetime.timedelta(days=int(value)), kind, zone)
        if given == "string" and _TIME.fullmatch(str(value)):
            return on_clock(datetime.datetime.fromisoformat(str(value)), kind, zone)
    return None
