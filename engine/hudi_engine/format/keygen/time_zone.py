"""Time zones by the names Java accepts, for the timestamp-based key generator of every table version."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hudi_engine.errors import ConfigError

_UTC_NAMES = frozenset({"UTC", "GMT", "Z", "UT", "ETC/UTC", "ETC/GMT", "ZULU", "GMT0", "UNIVERSAL"})
_CUSTOM_ID = re.compile(r"(GMT|UTC)?([+-])(\d{1,2})(?::?(\d{2}))?")
_JAVA_PREFIX = "GMT"
_UNKNOWN_TO_JAVA = re.compile(r"(?:posix|right)/.*|localtime|posixrules|Factory")
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


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo:
    """Find the zone of a setting, as Apache Hudi does: Java looks the id up, and Joda-Time takes what Java found.

    Java takes an id it does not know as UTC, without a word. Such ids are refused here, but those that mean UTC.

    Args:
        name: ``UTC``, an IANA name such as ``Europe/Paris``, an offset such as ``GMT+5:30``, or a short id of
            Java's such as ``PST`` (``EST`` is ``America/New_York``, with summer time).
    """
    text = name.strip()
    prefix, offset = _custom_zone(text)
    found = offset if prefix == _JAVA_PREFIX else None
    if text.upper() in _UTC_NAMES:
        found = timezone.utc
    if found is None and offset is None and not _UNKNOWN_TO_JAVA.fullmatch(text):
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
        return _clock_of(find_zone(one)) == _clock_of(find_zone(other))
    except ConfigError:
        return False


def _clock_of(zone: tzinfo) -> list[timedelta | None]:
    """Return how far a zone is from UTC in each month of a year, 2024."""
    return [datetime(2024, month, 15, tzinfo=zone).utcoffset() for month in range(1, 13)]


def _custom_zone(text: str) -> tuple[str, tzinfo | None]:
    """Return the prefix of an offset, and its zone; None when the text is no offset."""
    custom = _CUSTOM_ID.fullmatch(text)
    if custom is None:
        return "", None
    prefix, sign, hours, minutes = custom.groups("")
    if int(hours) > 23 or int(minutes or 0) > 59:
        return prefix, None
    return prefix, _fixed_zone((int(hours) * 60 + int(minutes or 0)) * 60 * (-1 if sign == "-" else 1))


def _named_zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _fixed_zone(offset_seconds: int) -> tzinfo:
    """Return the zone of a fixed offset from UTC; offset 0 is UTC itself."""
    return timezone(timedelta(seconds=offset_seconds)) if offset_seconds else timezone.utc
