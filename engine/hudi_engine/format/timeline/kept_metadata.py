"""What completed writes wrote, kept between the looks that one process takes at its tables.

A write looks at the timeline before it begins, when it has begun, when it commits and for the services behind it, and a row's bytes
are measured by the last commits: of a store that is far away each of their files would be a request each time. A completed
instant never changes under its name; what has another size or time is read again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from hudi_engine.format.storage.base import FileStatus
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

_MOST_BYTES = 4 * 1024 * 1024
"""Of files; in memory they take about ten times as much."""

_Name = tuple[str, str, int, int]


class KeptMetadata:
    """The commits that were read last; safe to use by several threads. What it gives out is not to be changed."""

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._most, self._bytes = most, 0
        self._held: OrderedDict[_Name, CommitMetadata] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, base: str, status: FileStatus) -> CommitMetadata | None:
        """Return what a completed write wrote, None where it is not kept."""
        name = _name(base, status)
        with self._lock:
            if name in self._held:
                self._held.move_to_end(name)
            return self._held.get(name)

    def keep(self, base: str, status: FileStatus, metadata: CommitMetadata) -> None:
        """Keep what a completed write wrote; those asked for longest ago go for it."""
        name = _name(base, status)
        with self._lock:
            if name in self._held or status.size > self._most:
                return
            self._held[name] = metadata
            self._bytes += status.size
            while self._bytes > self._most:
                (_, _, size, _), _ = self._held.popitem(last=False)
                self._bytes -= size


def _name(base: str, status: FileStatus) -> _Name:
    return base, status.path, status.size, status.modified_ms


KEPT_METADATA = KeptMetadata()
"""Of this process."""
