"""Names for a state of a table: an instant, a moment, a savepoint, or the newest one."""

from __future__ import annotations

import re

from hudi_engine.errors import TimelineError
from hudi_engine.table_state import TableState
from hudi_engine.timeline.moments import Moment, digits_of
from hudi_engine.txn.savepoint import list_savepoints

LATEST_STATE = "latest"
_POINT = re.compile(r"\d{14,17}|\d{4}-\d\d-\d\d.*")


def instant_as_of(state: TableState, when: Moment, *, asked: str = "as_of") -> str | None:
    """Return the newest requested time that counts in a state, None for a table without writes.

    Args:
        state: The table.
        when: An instant, a moment, the comment of a savepoint, or ``latest``.
        asked: Name of the argument, for messages.

    Raises:
        TimelineError: It is none of these, or several savepoints have that comment.
    """
    if when == LATEST_STATE:
        writes = state.timeline.completed_writes
        return writes[-1].requested_time if writes else None
    if not isinstance(when, str) or _POINT.fullmatch(when.strip()):
        return digits_of(when, state.config)
    saved = list_savepoints(state.storage)
    found = [each.instant for each in saved if when in (each.comments, each.instant)]
    if len(found) != 1:
        names = ", ".join(f"{each.comments!r} ({each.instant})" for each in saved) or "none"
        raise TimelineError(
            f"{asked} is {when!r}, which is no point in time, and {len(found)} savepoints are called that; legal are an instant "
            "such as 20260101093000000, yyyy-MM-dd[ HH:mm:ss[.SSS]], 'latest' and the comment of a savepoint: "
            f"{names}"
        )
    return found[0]
