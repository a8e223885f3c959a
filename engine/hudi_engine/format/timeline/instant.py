"""Instants and the names of their timeline files.

Layout 1 (table version 6) names a completed file ``T.action``; layout 2 (versions 8 and 9) names it
``T_C.action`` with the completion time C. Requested and inflight names are the same in both, except that
layout 2 has an action ``clustering`` of its own. A copy-on-write commit in flight is ``T.inflight`` without
an action (Hudi timeline specification).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from hudi_engine.errors import TimelineError

ACTIONS = (
    "commit",
    "deltacommit",
    "replacecommit",
    "clean",
    "rollback",
    "savepoint",
    "restore",
    "compaction",
    "logcompaction",
    "clustering",
    "indexing",
    "schemacommit",
)
WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})

COMPLETED_ACTION = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
"""Actions that complete under another name than they are planned under."""

COMPLETE_AS_WRITES = WRITE_ACTIONS | frozenset(COMPLETED_ACTION)

_FILE_NAME = re.compile(r"^(\d{14,})(?:_(\d{14,}))?(?:\.([a-z]+))?(?:\.(requested|inflight))?\Z", re.ASCII)


class State(str, Enum):
    """How far an instant has come; the values are the words of the archived timeline."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"

    @property
    def rank(self) -> int:
        """0, 1 or 2: a later state counts more."""
        return _RANKS[self]


_RANKS = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


@dataclass(frozen=True, order=True)
class Instant:
    """One action of the table in its newest state.

    Args:
        action: As in the file name, so a completed compaction is a ``commit``.
        completion_time: When the action completed; None in layout 1 and for pending actions.
    """

    requested_time: str
    action: str
    state: State
    completion_time: str | None = None
    file_name: str = ""

    @property
    def order(self) -> str:
        """What orders a completed write among all: its completion time, or its requested time in layout 1."""
        return self.completion_time or self.requested_time

    @property
    def is_completed(self) -> bool:
        """Whether the action has completed."""
        return self.state is State.COMPLETED


@lru_cache(maxsize=8192)  # a write lists the same names some ten times
def parse_instant(file_name: str, layout_version: int) -> Instant | None:
    """Parse the name of a timeline file; None for every other file."""
    match = _FILE_NAME.match(file_name)
    if match is None:
        return None
    requested_time, completion_time, action, suffix = match.groups()
    if action in ("requested", "inflight") and suffix is None:
        action, suffix = None, action
    if suffix == "inflight" and action is None:
        action = "commit"
    if action not in ACTIONS:
        return None
    if suffix is not None:
        if completion_time is not None:
            return None
        return Instant(requested_time, action, State(suffix.upper()), None, file_name)
    if (completion_time is not None) != (layout_version >= 2) or action in COMPLETED_ACTION:
        return None
    return Instant(requested_time, action, State.COMPLETED, completion_time, file_name)


def timeline_file_name(
    requested_time: str, action: str, state: State, completion_time: str | None = None
) -> str:
    """Return the name of the file that brings an instant into a state.

    Args:
        action: Planned action; ``compaction`` completes as ``commit`` and so on.
        completion_time: Part of the names of completed files in layout 2; None in layout 1.

    Raises:
        TimelineError: for an unknown action or a time that is not an instant.
    """
    if action not in ACTIONS or not re.fullmatch(r"\d{14,}", requested_time):
        raise TimelineError(
            f"{requested_time!r} {action!r} names no instant: a time has at least 14 digits, and an action "
            f"is one of {', '.join(ACTIONS)}"
        )
    if state is State.COMPLETED:
        times = requested_time if completion_time is None else f"{requested_time}_{completion_time}"
        return f"{times}.{COMPLETED_ACTION.get(action, action)}"
    if state is State.INFLIGHT and action == "commit":
        return f"{requested_time}.inflight"
    return f"{requested_time}.{action}.{state.value.lower()}"


def newest_states(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """Keep one instant per (time, action); a completed compaction hides its own requested and inflight files."""
    newest: dict[tuple[str, str], Instant] = {}
    for instant in instants:
        key = (instant.requested_time, instant.action)
        known = newest.get(key)
        if known is None or instant.state.rank > known.state.rank:
            newest[key] = instant
    return tuple(sorted(instant for instant in newest.values() if not _is_done(instant, newest)))


def _is_done(instant: Instant, newest: Mapping[tuple[str, str], Instant]) -> bool:
    completed_action = COMPLETED_ACTION.get(instant.action)
    if completed_action is None:
        return False
    completed = newest.get((instant.requested_time, completed_action))
    return completed is not None and completed.is_completed
