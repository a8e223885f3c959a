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
_CUSTOM_ID = re.compile(r"(GMT|UTC)?([+-])(\d{1,2})(?::?(\d{2}))?")
_JAVA_PREFIX = "GMT"
_NONE_OF_JAVA = re.compile(r"(?:posix|right)/.*|localtime|posixrules|Factory")
_SHORT_IDS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "CET", "EST": "America/New_York", "HST": "Pacific/Honolulu",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MET": "CET",
    "MIT": "Pacific/Apia", "MST": "America/Denver", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
"""What Joda-Time makes of Java's short ids; of those that IANA has too, it is another zone."""
_EPOCH = date(1970, 1, 1)
_SECONDS_PER_CYCLE = _DAYS_PER_CYCLE * 86_400
# Two days less than datetime reaches, for the offset of any zone.
_SAFE_SECONDS = (-719_160 * 86_400, 2_932_894 * 86_400)


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo:
    """Find the zone of a setting, as Apache Hudi does: Java looks the id up, and Joda-Time takes what Java found.

    Java takes an id it does not know as UTC, without a word. Such ids are refused here, but those that mean UTC.

    Args:
        name: ``UTC``, an IANA name such as ``Europe/Paris``, an offset such as ``GMT+5:30``, or a short id of
            Java's such as ``PST`` (``EST`` is ``America/New_York``, with summer time).

    Raises:
        ConfigError: There is no such zone.
    """
    text = name.strip()
    prefix, offset = _custom_zone(text)
    found = offset if prefix == _JAVA_PREFIX else None
    if text.upper() in _UTC_NAMES:
        found = timezone.utc
    if found is None and offset is None and not _NONE_OF_JAVA.fullmatch(text):
        found = _named_zone(_SHORT_IDS.get(text, text))
    if found is None:
        meant = f"{_JAVA_PREFIX}{text.removeprefix(prefix)}" if offset is not None else f"{_JAVA_PREFIX}+5:30"
        raise ConfigError(
            f"time zone {name!r} is not known to Java, so Apache Hudi reads it as UTC; use a name such as "
            f"'America/Los_Angeles' or an offset such as {meant!r}, and 'UTC' for a table that Hudi wrote with it"
        )
    return found


def is_known_zone(name: str) -> bool:
    """Return whether Java knows a zone; it takes every other id for UTC."""
    try:
        find_zone(name)
    except ConfigError:
        return False
    return True


def is_one_zone(one: str, other: str) -> bool:
    """Return whether two texts are zones that Java knows and that go by one clock."""
    try:
        return clock_of(find_zone(one)) == clock_of(find_zone(other))
    except ConfigError:
        return False


def clock_of(zone: tzinfo) -> list[timedelta | None]:
    """Return how far a zone is from UTC in each month of a year, 2024."""
    return [datetime(2024, month, 15, tzinfo=zone).utcoffset() for month in range(1, 13)]


@lru_cache(maxsize=256)
def zone_of_text(name: str) -> tzinfo:
    """Find the zone that a text names, where Joda-Time asks no one else.

    Args:
        name: ``UTC``, an IANA name such as ``Europe/Paris``, or an offset such as ``GMT+5:30`` or ``+05:30``.

    Raises:
        ConfigError: There is no such zone.
    """
    found = timezone.utc if name.upper() in _UTC_NAMES else _custom_zone(name)[1] or _named_zone(name)
    if found is None:
        raise ConfigError(
            f"time zone {name!r} is not known; use UTC, a name such as 'Europe/Paris' "
            "or an offset such as 'GMT+5:30'"
        )
    return found


def _custom_zone(text: str) -> tuple[str, tzinfo | None]:
    """Return what stands before an offset, and its zone; None when the text is no offset."""
    custom = _CUSTOM_ID.fullmatch(text)
    if custom is None:
        return "", None
    prefix, sign, hours, minutes = custom.groups("")
    if int(hours) > 23 or int(minutes or 0) > 59:
        return prefix, None
    return prefix, fixed_zone((int(hours) * 60 + int(minutes or 0)) * 60 * (-1 if sign == "-" else 1))


def _named_zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


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
