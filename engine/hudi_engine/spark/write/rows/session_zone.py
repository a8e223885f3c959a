"""Times without a zone, taken in the time zone of a Spark session, which may have a name that only Java knows."""

from __future__ import annotations

import re
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError

ZONE = "spark.sql.session.timeZone"
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?00)?)?")
# java.time.ZoneId.SHORT_IDS, which Spark takes beside the names of the time zone database
_SHORT = {
    "Z": "UTC", "UT": "UTC", "GMT": "UTC",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


def in_session_zone(times: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Return times without a zone as moments; one that clocks show twice is the earlier, one they skip the later.

    Args:
        zone: The session's time zone, as Spark spells it.

    Raises:
        ConfigError: Arrow does not know the zone.
    """
    name = _SHORT.get(zone, zone)
    offset = _offset(name)
    if offset is not None:
        # Arrow takes names of the time zone database only, offsets beside them no sooner than in its later releases
        unit = times.type.unit
        return pc.subtract(times, pa.scalar(offset, pa.duration(unit))).cast(pa.timestamp(unit, "UTC"))
    try:
        return pc.assume_timezone(times, name, ambiguous="earliest", nonexistent="latest")
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"{ZONE} is {zone!r}, in which times without a zone cannot be taken ({error}); set it to UTC, a name such as "
            "'Europe/Paris' or an offset such as '+05:30', or give the times a zone"
        ) from error


def _offset(name: str) -> timedelta | None:
    match = _OFFSET.fullmatch(name)
    if match is None:
        return None
    sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return -offset if sign == "-" else offset
