"""Where new instants come from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from hudi_engine.errors import TimelineError

_MILLISECOND = timedelta(milliseconds=1)


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
                candidate = format_instant(parse_instant_time(floor) + _MILLISECOND)
            self._last = candidate
            return candidate


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)
