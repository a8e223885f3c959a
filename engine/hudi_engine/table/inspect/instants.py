"""The instants of a table's timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.table.state import TableState

_CLOCKS_DIFFER_BY_S = 60


@dataclass(frozen=True)
class InstantFacts:
    """One instant of the active timeline.

    Args:
        action: As in the file name: a completed compaction is a ``commit``.
        state: ``REQUESTED``, ``INFLIGHT`` or ``COMPLETED``.
        requested_at: The moment of the requested time, None when its digits are no date.
        completed_at: When it completed; None while it is pending. Layout 1 stores no such time: the modification time of
            the completed file stands in for it, unless the files are a copy with times of its own.
    """

    instant: str
    action: str
    state: str
    requested_at: datetime | None
    completed_at: datetime | None

    @property
    def seconds(self) -> float | None:
        """Seconds from begin to completion, None while it is pending or when a time is missing.

        None for a savepoint too: its requested time is that of the write which it saves.
        """
        if self.action == "savepoint" or self.requested_at is None or self.completed_at is None:
            return None
        return max(0.0, (self.completed_at - self.requested_at).total_seconds())


def instant_facts(state: TableState) -> list[InstantFacts]:
    """Return the instants of the active timeline, oldest first."""
    written = _written_at(state)
    return [
        InstantFacts(
            instant=each.requested_time,
            action=each.action,
            state=each.state.value,
            requested_at=moment_of(state.config, each.requested_time),
            completed_at=(
                moment_of(state.config, each.completion_time)
                if each.completion_time is not None
                else written.get(each.file_name)
            )
            if each.is_completed
            else None,
        )
        for each in state.timeline.instants
    ]


def moment_of(config: TableConfig, instant: str) -> datetime | None:
    """Return the moment of an instant in the zone of the table's timeline, in UTC; None when its digits are no date.

    Args:
        instant: 14 or 17 digits.
    """
    try:
        return parse_instant_time(instant, config.timeline_zone)
    except TimelineError:
        return None


def _written_at(state: TableState) -> dict[str, datetime]:
    """Return modification times of the timeline's files by name; layout 2 says completion in its names."""
    if state.config.layout_version != 1:
        return {}
    files = [each for each in state.storage.list(state.config.timeline_path) if not each.is_dir]
    begun: dict[str, int] = {}
    for each in files:
        if each.name.endswith((".requested", ".inflight")):
            time = each.name.partition(".")[0]
            begun[time] = min(each.modified_ms, begun.get(time, each.modified_ms))
    copied = {time for time, modified in begun.items() if _is_another_time(state, time, modified)}
    return {
        each.name: datetime.fromtimestamp(each.modified_ms / 1000, timezone.utc)
        for each in files
        if each.name.partition(".")[0] not in copied
    }


def _is_another_time(state: TableState, instant: str, modified_ms: int) -> bool:
    """Tell whether the file that begins an instant was written at another time than it says, as in a copy of a table."""
    moment = moment_of(state.config, instant)
    return moment is not None and abs(modified_ms / 1000 - moment.timestamp()) > _CLOCKS_DIFFER_BY_S
