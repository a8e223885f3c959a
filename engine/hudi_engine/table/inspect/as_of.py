"""Names for a state of a table: an instant, a moment, a savepoint, or the newest one."""

from __future__ import annotations

import logging
import re
from datetime import datetime, timezone

from hudi_engine.errors import ConfigError, TimelineError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.clock import AHEAD, format_instant
from hudi_engine.format.timeline.moments import Moment, digits_of
from hudi_engine.format.timeline.rolled_back import of_a_replaced_table, rolled_back_by
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.savepoint import list_savepoints

logger = logging.getLogger(__name__)

LATEST_STATE = "latest"
A_MOMENT = "'2026-11-01 09:30:00'"
"""A moment that cannot be mistaken for an instant, for messages."""
_POINT = re.compile(r"\d{14,17}|\d{4}-\d\d-\d\d.*")


def instant_as_of(state: TableState, when: Moment, *, asked: str = "as_of") -> str | None:
    """Return the newest requested time that counts in a state, None for a table without writes.

    Args:
        when: An instant, a moment, the comment of a savepoint, or ``latest``.

    Raises:
        TimelineError: It is none of these, several savepoints have that comment, or it is an instant that was taken back or is of
            a table that was here before.
    """
    if when == LATEST_STATE:
        writes = state.timeline.completed_writes
        return writes[-1].requested_time if writes else None
    if not isinstance(when, str) or _POINT.fullmatch(when.strip()):
        digits = digits_of(when, state.config)
        check_not_gone(state, when, asked=asked)
        _warn_of_the_future(state, digits, f"{asked} is {str(when)!r}")
        return digits
    saved = list_savepoints(state.storage)
    found = [each.instant for each in saved if when in (each.comments, each.instant) and when]
    if len(found) != 1:
        named = (f"{each.comments!r} ({each.instant})" if each.comments else each.instant for each in saved)
        raise TimelineError(
            f"{asked} is {when!r}, which is no point in time, and {len(found)} savepoints are called that; legal values: an "
            "instant such as 20260101093000000, yyyy-MM-dd[ HH:mm:ss[.SSS]], 'latest' and the comment of a savepoint: "
            f"{', '.join(named) or 'none'}"
        )
    return found[0]


def check_not_gone(state: TableState, when: Moment, *, asked: str) -> None:
    """Refuse an instant that the table no longer has: its state is none that anybody who names it has seen.

    A moment that is no instant is any moment.
    """
    digits = digits_of(when, state.config)
    is_instant = isinstance(when, str) and when.strip() == digits
    why = rolled_back_by(state.timeline, digits, is_moment=not is_instant)
    if why is None and is_instant:
        why = of_a_replaced_table(state.timeline, state.config, digits)
    if why is not None:
        raise TimelineError(
            f"{asked} of table {state.config.name!r} is {str(when)!r}: {why}. Name a commit that is there, or a moment such as "
            f"{A_MOMENT}"
        )


def commit_named(storage: Storage, name: str) -> str:
    """Return the instant of a commit that is named by its digits, or by the comment of its savepoint."""
    return name if name.isdigit() else str(instant_as_of(TableState.load(storage), name, asked="instant"))


def check_comment(comments: str) -> None:
    """Refuse a comment that cannot name a savepoint."""
    if comments == LATEST_STATE or comments.isdigit() or _POINT.fullmatch(comments.strip()):
        raise ConfigError(
            f"comments is {comments!r}, and a savepoint is named by its comment: digits, a date and {LATEST_STATE!r} mean "
            "other states; legal: any other text, such as 'before 2026-01-01', or none"
        )


def _warn_of_the_future(state: TableState, digits: str, subject: str) -> None:
    """Say that a moment has not come yet: its state is the newest one, as in Apache Hudi, and may change until then."""
    writes = state.timeline.completed_writes
    soon = format_instant(datetime.now(timezone.utc) + AHEAD, state.config.timeline_zone)
    if digits > soon and not (writes and digits <= writes[-1].requested_time):
        logger.warning(
            "%s, which lies in the future: it is the newest state, and commits may still come before it",
            subject,
        )
