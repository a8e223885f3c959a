"""Time zones by the names Java accepts, and instants in them.

Serves the timestamp-based key generator of every table version. Years outside the range of Python's
``datetime`` are reached by moving whole cycles of 400 years, after which the Gregorian calendar repeats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hudi_engine.errors import ConfigError

MILLIS_PER_SECOND = 1_000
MILLIS_PER_DAY = 86_400_000
_DAYS_PER_CYCLE = 146_097
_YEARS_PER_CYCLE = 400
_UTC_NAMES = frozenset({"UTC", "GMT", "Z", "UT", "ETC/UTC", "ETC/GMT", "ZULU", "GMT0", "UNIVERSAL"})
_CUSTOM_ID = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::?(\d{2}))?")
_EPOCH = date(1970, 1, 1)
_SECONDS_PER_CYCLE = _DAYS_PER_CYCLE * 86_400
# Two days less than datetime reaches, for the offset of any zone.
_SAFE_SECONDS = (-719_160 * 86_400, 2_932_894 * 86_400)


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo:
    """Find a zone.

    Args:
        name: ``UTC``, an IANA name such as ``Europe/Paris``, or an offset such as ``GMT+5:30`` or ``+05:30``.

    Raises:
        ConfigError: There is no such zone.
    """
    text = name.strip()
    if text.upper() in _UTC_NAMES:
        return timezone.utc
    custom = _CUSTOM_ID.fullmatch(text)
    if custom:
        sign, hours, minutes = custom.groups()
        if int(hours) <= 23 and int(minutes or 0) <= 59:
            return fixed_zone((int(hours) * 60 + int(minutes or 0)) * 60 * (-1 if sign == "-" else 1))
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"time zone {name!r} is not known; use UTC, a name such as 'Europe/Paris' "
            "or an offset such as 'GMT+5:30'"
        ) from None


def fixed_zone(offset_seconds: int) -> tzinfo:
    """Return the zone of a fixed offset from UTC; offset 0 is UTC itself."""
    return timezone(timedelta(seconds=offset_seconds)) if offset_seconds else timezone.utc


@dataclass(frozen=True)
class LocalTime:
    """An instant as calendar and clock show it in one zone."""

    year: int
    month: int
    day: int
    day_of_year: int
    iso_year: int
    iso_week: int
    iso_weekday: int
    millis_of_day: int
    offset_seconds: int


def local_time(millis: int, zone: tzinfo) -> LocalTime:
    """Show an instant in a zone.

    Args:
        millis: Milliseconds since 1970 in UTC, negative before.
        zone: The zone.
    """
    offset = _offset_at(millis, zone)
    days, millis_of_day = divmod(millis + offset * MILLIS_PER_SECOND, MILLIS_PER_DAY)
    cycles, day_in_cycle = divmod(days, _DAYS_PER_CYCLE)
    day = _EPOCH + timedelta(days=day_in_cycle)
    iso = day.isocalendar()
    shift = cycles * _YEARS_PER_CYCLE
    return LocalTime(
        year=day.year + shift,
        month=day.month,
        day=day.day,
        day_of_year=day.timetuple().tm_yday,
        iso_year=iso[0] + shift,
        iso_week=iso[1],
        iso_weekday=iso[2],
        millis_of_day=millis_of_day,
        offset_seconds=offset,
    )


def millis_of_local(days: int, millis_of_day: int, zone: tzinfo) -> int | None:
    """Find the instant that calendar and clock show in a zone.

    Args:
        days: Days since 1970-01-01.
        millis_of_day: Milliseconds since midnight on the clock.
        zone: The zone.

    Returns:
        Milliseconds since 1970 in UTC, the earlier instant where clocks were turned back; None where clocks
        were turned forward over this time.
    """
    local = days * MILLIS_PER_DAY + millis_of_day
    clock = _near_datetime(days * 86_400) + timedelta(milliseconds=millis_of_day)
    offset = clock.replace(tzinfo=zone).utcoffset() or timedelta()
    millis = local - int(offset.total_seconds()) * MILLIS_PER_SECOND
    return millis if _offset_at(millis, zone) == int(offset.total_seconds()) else None


def zone_id(zone: tzinfo) -> str:
    """Name of a zone, such as ``Europe/Paris``, ``UTC`` or ``+05:30``."""
    name = str(getattr(zone, "key", zone))
    return name.removeprefix("UTC") or "UTC"


def short_zone_name(zone: tzinfo, millis: int) -> str:
    """Return abbreviation a zone uses at an instant, such as ``CET``; its id where it has none."""
    if not hasattr(zone, "key"):
        return zone_id(zone)
    instant = _near_datetime(millis // MILLIS_PER_SECOND).replace(tzinfo=timezone.utc)
    return instant.astimezone(zone).tzname() or zone_id(zone)


def _offset_at(millis: int, zone: tzinfo) -> int:
    if zone is timezone.utc:
        return 0
    instant = _near_datetime(millis // MILLIS_PER_SECOND).replace(tzinfo=timezone.utc)
    offset = instant.astimezone(zone).utcoffset() or timedelta()
    return int(offset.total_seconds())


def _near_datetime(seconds: int) -> datetime:
    """Return date and time so many seconds after 1970, moved by whole cycles where ``datetime`` does not reach."""
    if not _SAFE_SECONDS[0] <= seconds < _SAFE_SECONDS[1]:
        seconds %= _SECONDS_PER_CYCLE
    return datetime(1970, 1, 1) + timedelta(seconds=seconds)
