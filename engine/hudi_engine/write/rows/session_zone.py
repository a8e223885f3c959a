"""Times without a zone, taken in the time zone of a Spark session, which may have a name that only Java knows."""

from __future__ import annotations

import re

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
        times: Timestamps without a zone.
        zone: The session's time zone, as Spark spells it.

    Raises:
        ConfigError: Arrow does not know the zone.
    """
    try:
        return pc.assume_timezone(times, _arrow_zone(zone), ambiguous="earliest", nonexistent="latest")
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"{ZONE} is {zone!r}, in which times without a zone cannot be taken ({error}); set it to UTC, a name such as "
            "'Europe/Paris' or an offset such as '+05:30', or give the times a zone"
        ) from error


def _arrow_zone(name: str) -> str:
    match = _OFFSET.fullmatch(name)
    if match:
        sign, hours, minutes = match.groups()
        return f"{sign}{int(hours):02}:{int(minutes or 0):02}"
    return _SHORT.get(name, name)
