"""Where new instants come from, and which moment an instant represents.

The digits of a timeline are in the zone that ``hoodie.table.timeline.timezone`` names: ``UTC``, or ``LOCAL``, the
zone of the machine that writes. The newest slice is the one with the greatest digits, so all writers of a table
have to use the same zone.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo

from hudi_engine.errors import TimelineError

logger = logging.getLogger(__name__)

LOCAL: None = None
"""The zone of this machine, as the operating system has it at a moment."""

AHEAD = timedelta(minutes=5)
"""By how much clocks of writers may differ before a warning."""

_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BEFORE_ALL = {"00000000000000": 0, "00000000000001": 1, "00000000000002": 2}
"""The instants that are no dates, and the millisecond of 1970 of each: Hudi's first one, and those of a table's
bootstrap of keys alone and of whole rows (``HoodieTimeline``, ``parseDateFromInstantTimeSafely``)."""
_POINT_IN_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?)?")


def format_instant(moment: datetime, zone: tzinfo | None = timezone.utc) -> str:
    """Return ``yyyyMMddHHmmssSSS`` of a moment."""
    return instant_digits(moment.astimezone(zone))


def instant_digits(there: datetime) -> str:
    """Return ``yyyyMMddHHmmssSSS`` as a clock shows it, whatever its zone."""
    # %Y does not pad the years before 1000
    return f"{there.year:04d}{there:%m%d%H%M%S}{there.microsecond // 1000:03d}"


def parse_instant_time(instant: str, zone: tzinfo | None = timezone.utc) -> datetime:
    """Return the moment of a 14 or 17 digit instant, in UTC.

    A 14-digit instant represents the last millisecond of its second, as in Hudi, and those of a bootstrap for the first ones
    of 1970.
    """
    if instant in _BEFORE_ALL:
        return _EPOCH + _BEFORE_ALL[instant] * _MILLISECOND
    padded = instant + "999" if len(instant) == 14 else instant
    try:
        if len(padded) != 17 or not (padded.isascii() and padded.isdigit()):
            raise ValueError("an instant has 14 or 17 digits")
        moment = datetime.strptime(padded[:14], "%Y%m%d%H%M%S")
    except ValueError as error:
        raise TimelineError(
            f"{instant!r} is no instant time: {error}. Legal are yyyyMMddHHmmss and yyyyMMddHHmmssSSS"
        ) from error
    moment = moment.replace(microsecond=int(padded[14:]) * 1000, tzinfo=zone)
    try:
        return moment.astimezone(timezone.utc)
    except (OverflowError, OSError) as error:
        raise TimelineError(f"{instant!r} is no instant time: its year cannot be converted to UTC") from error


def query_instant(text: str) -> str:
    """Return the instant that a query's point in time represents, in the digits of the timeline.

    Args:
        text: ``yyyyMMddHHmmss``, ``yyyyMMddHHmmssSSS``, ``yyyy-MM-dd``, ``yyyy-MM-dd HH:mm:ss`` or
            ``yyyy-MM-dd HH:mm:ss.SSS``, as Hudi takes it: in the time zone of the table's timeline. A date is
            its first moment.
    """
    given = str(text).strip()
    found = _POINT_IN_TIME.fullmatch(given)
    digits = given if found is None else "".join(part or "" for part in found.groups())
    if found is not None:
        digits = digits.ljust(17, "0")
    try:
        if not digits.isascii():
            raise TimelineError(f"{given!r} is no instant time")
        parse_instant_time(digits)
    except TimelineError as error:
        raise TimelineError(
            f"{text!r} is no point in time; legal values: an instant such as 20260101093000000, and "
            "yyyy-MM-dd, yyyy-MM-dd HH:mm:ss or yyyy-MM-dd HH:mm:ss.SSS in the zone of the table's timeline"
        ) from error
    return digits


def time_shown(digits: str) -> datetime:
    """Return what a clock showed, without a zone, when it gave 14 or 17 digits; raises ValueError for other texts."""
    shown = datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
    return shown + int(digits[14:] or 999) * _MILLISECOND


class InstantClock:
    """Hands out strictly increasing instants; safe under threads."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self._now = now or _utc_now
        self._last = ""
        self._lock = threading.Lock()

    def next(self, after: str | None = None, zone: tzinfo | None = timezone.utc) -> str:
        """Return a 17-digit instant greater than ``after`` and than every one handed out before.

        Args:
            after: Newest instant of the table, None for an empty timeline. When it lies ahead of this
                machine's clock, the next millisecond after it is taken.
        """
        with self._lock:
            floor = max(self._last, after or "")
            now = self._now()
            candidate = format_instant(now, zone)
            if candidate <= floor:
                candidate = _millisecond_after(floor)
                _warn_when_ahead(floor, now, zone)
            self._last = candidate
            return candidate


def _warn_when_ahead(newest: str, now: datetime, zone: tzinfo | None) -> None:
    """Warn that a timeline is ahead of the present: a writer in another zone, or with a wrong clock.

    What such a writer commits by its own clock may sort before what follows the newest instant, and be invisible.
    """
    ahead = parse_instant_time(newest) - parse_instant_time(format_instant(now, zone))
    if ahead > AHEAD:
        logger.warning(
            "the newest instant %s lies %s ahead of the present in the zone of its timeline (%s). Writers of a table "
            "need the same zone and right clocks, or rows of the one that is behind may not be seen until then",
            newest,
            ahead,
            zone if zone is not LOCAL else f"LOCAL, here {now.astimezone():%Z %z}",
        )


def _millisecond_after(instant: str) -> str:
    try:
        return format_instant(parse_instant_time(instant) + _MILLISECOND)
    except OverflowError as error:
        raise TimelineError(
            f"no instant can follow {instant}, the last one of so many digits, and it is on the timeline. "
            "Remove the files of that instant from the timeline folder if no writer of yours made it"
        ) from error


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)
