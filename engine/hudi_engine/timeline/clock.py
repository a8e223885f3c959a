"""Where new instants come from."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from hudi_engine.errors import TimelineError

_MILLISECOND = timedelta(milliseconds=1)
_POINT_IN_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?)?")


def format_instant(moment: datetime) -> str:
    """Return ``yyyyMMddHHmmssSSS`` of a moment, in UTC."""
    utc = moment.astimezone(timezone.utc)
    return f"{utc:%Y%m%d%H%M%S}{utc.microsecond // 1000:03d}"


def parse_instant_time(instant: str) -> datetime:
    """Return the moment of a 14 or 17 digit instant, taken as UTC.

    A 14-digit instant stands for the last millisecond of its second, as in Hudi.

    Raises:
        TimelineError: when the digits are no date.
    """
    padded = instant + "999" if len(instant) == 14 else instant
    try:
        if len(padded) != 17 or not padded.isdigit():
            raise ValueError("an instant has 14 or 17 digits")
        moment = datetime.strptime(padded[:14], "%Y%m%d%H%M%S")
    except ValueError as error:
        raise TimelineError(
            f"{instant!r} is no instant time: {error}. Legal are yyyyMMddHHmmss and yyyyMMddHHmmssSSS"
        ) from error
    return moment.replace(microsecond=int(padded[14:]) * 1000, tzinfo=timezone.utc)


def query_instant(text: str) -> str:
    """Return the instant that a query's point in time stands for, in the digits of the timeline.

    Args:
        text: ``yyyyMMddHHmmss``, ``yyyyMMddHHmmssSSS``, ``yyyy-MM-dd``, ``yyyy-MM-dd HH:mm:ss`` or
            ``yyyy-MM-dd HH:mm:ss.SSS``, as Hudi takes it: in the time zone of the table's timeline. A date is
            its first moment.

    Raises:
        TimelineError: It is none of these, or no date.
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
            f"as_of is {text!r}, which is no point in time; legal are an instant such as 20260101093000000, and "
            "yyyy-MM-dd, yyyy-MM-dd HH:mm:ss or yyyy-MM-dd HH:mm:ss.SSS in the zone of the table's timeline"
        ) from error
    return digits


class InstantClock:
    """Hands out strictly increasing instants in UTC; safe under threads.

    Args:
        now: Source of the current time; it must return an aware datetime.
    """

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self._now = now or _utc_now
        self._last = ""
        self._lock = threading.Lock()

    def next(self, after: str | None = None) -> str:
        """Return a 17-digit instant greater than ``after`` and than every one handed out before.

        Args:
            after: Newest instant of the table, None for an empty timeline. When it lies ahead of this
                machine's clock, the next millisecond after it is taken.

        Raises:
            TimelineError: when ``after`` lies ahead of the clock and is no date that can be continued.
        """
        with self._lock:
            floor = max(self._last, after or "")
            candidate = format_instant(self._now())
            if candidate <= floor:
                candidate = _millisecond_after(floor)
            self._last = candidate
            return candidate


def _millisecond_after(instant: str) -> str:
    try:
        return format_instant(parse_instant_time(instant) + _MILLISECOND)
    except OverflowError as error:
        raise TimelineError(
            f"no instant can follow {instant}, the last one that its digits can tell, and it is on the timeline. "
            "Remove the files of that instant from the timeline folder if no writer of yours made it"
        ) from error


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)
