"""Collected values as dbt reads them: times that SQL takes for the same moments again, structs as dictionaries."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import Row
from pyspark.sql import types as T

Converter = Callable[[Any], Any]

_UTC = frozenset({"UTC", "GMT", "UT", "Z", "ETC/UTC", "ETC/GMT", "+00:00", "-00:00", "ZULU"})
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


def values_for_dbt(rows: list[Row], schema: T.StructType, zone: str | None) -> list[Any]:
    """Return collected rows as dbt reads them.

    A timestamp, that PySpark gives as a naive time of the host's zone, is a naive one in UTC where that is the session's zone,
    as dbt takes naive times for UTC. In another zone it carries its offset: SQL that a model makes of it, ``'{{ max_ts }}'``,
    would mean another moment without.

    Args:
        zone: The session's time zone, as Spark spells it.
    """
    shown = _zone(zone or "UTC")
    converters = [_converter(column.dataType, shown) for column in schema.fields]
    if not any(converters):
        return rows
    return [
        tuple(convert(value) if convert else value for convert, value in zip(converters, row)) for row in rows
    ]


def _zone(name: str) -> datetime.tzinfo | None:
    """Return a zone by Spark's name, None for UTC; one that is known to Java alone is UTC with its offset."""
    if name.upper() in _UTC:
        return None
    if match := _OFFSET.fullmatch(name):
        sign, *parts = match.groups()
        hours, minutes, seconds = (int(part or 0) for part in parts)
        offset = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return datetime.timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return datetime.timezone.utc


def _converter(kind: T.DataType, zone: datetime.tzinfo | None) -> Converter | None:
    """How collected values become those for dbt, also inside of arrays, maps and structs."""
    if isinstance(kind, T.TimestampType):
        return lambda value: None if value is None else _moment(value, zone)
    if isinstance(kind, T.ArrayType):
        inner = _converter(kind.elementType, zone)
        return (
            None
            if inner is None
            else lambda value: None if value is None else [inner(item) for item in value]
        )
    if isinstance(kind, T.MapType):
        # a dictionary is no key of another one
        keys = None if isinstance(kind.keyType, T.StructType) else _converter(kind.keyType, zone)
        return _map_converter(keys, _converter(kind.valueType, zone))
    if isinstance(kind, T.StructType):
        return _struct_converter(kind, zone)
    return None


def _map_converter(keys: Converter | None, values: Converter | None) -> Converter | None:
    if keys is None and values is None:
        return None
    same: Converter = lambda value: value  # noqa: E731
    key, item = keys or same, values or same
    return lambda value: None if value is None else {key(k): item(v) for k, v in value.items()}


def _struct_converter(kind: T.StructType, zone: datetime.tzinfo | None) -> Converter | None:
    """How a struct keeps the names of its fields in what dbt shows; one that has a name twice stays a row."""
    same: Converter = lambda value: value  # noqa: E731
    inner = [_converter(field.dataType, zone) or same for field in kind.fields]
    unique = len(set(kind.names)) == len(kind.names)
    build = (lambda *values: dict(zip(kind.names, values))) if unique else Row(*kind.names)
    return lambda value: (
        None if value is None else build(*(convert(item) for convert, item in zip(inner, value)))
    )


def _moment(value: datetime.datetime, zone: datetime.tzinfo | None) -> datetime.datetime:
    try:
        moment = value.astimezone(zone or datetime.timezone.utc)
    except (OverflowError, ValueError):
        return value
    return moment.replace(tzinfo=None) if zone is None else moment
