"""Which instants count: the test that decides whether a data file or log block is visible."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommittedInstants:
    """Small picklable answer to "is this instant committed?", for readers on executors.

    An instant older than the first completed write of the active timeline was archived, and only completed
    writes are archived, unless it is still pending on the active timeline. Savepointed writes do not count
    as the first, since archiving leaves them behind while it takes younger ones (Hudi timeline
    specification).

    Args:
        completed: Requested times of completed writes on the active timeline.
        first: Requested time of the first completed write that is not savepointed; None for an empty timeline.
    """

    completed: frozenset[str]
    pending: frozenset[str]
    first: str | None
    as_of: str | None = None

    def __call__(self, requested_time: str) -> bool:
        """Return whether files and log blocks of this instant belong to the table."""
        if self.as_of is not None and requested_time > self.as_of:
            return False
        if requested_time in self.completed:
            return True
        return self.first is not None and requested_time < self.first and requested_time not in self.pending
