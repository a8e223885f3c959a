"""Identity of one running write task: tokens, sequence numbers, markers and the zombie check."""

from __future__ import annotations

import itertools
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_engine.format.filegroup.markers import MarkerBook, marker_name, write_marker
from hudi_engine.format.schema.row_hash import ContentChange
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import check_inflight
from hudi_engine.table.handles.write_context import WriteContext


def new_attempt() -> int:
    """Return an attempt number that is unique over processes: two writers must never choose the same name for a log file."""
    return secrets.randbelow(2**31)


@dataclass
class WriteTask:
    """One attempt at one task of a write.

    Args:
        partition_id: Number of the task in its stage.
        stage_id: Spark's stage number, 0 outside Spark.
        attempt_id: Unique number of the attempt.
        markers: Where the markers of all tasks of one process are collected; None writes a file for each.
        keep_keys: Receives the record keys of rewritten base files; None when they are not needed later.
    """

    context: WriteContext
    partition_id: int = 0
    stage_id: int = 0
    attempt_id: int = field(default_factory=new_attempt)
    markers: MarkerBook | None = None
    keep_keys: Callable[[Storage, str, pa.ChunkedArray], None] | None = None
    _next_row: int = field(default=0, init=False)
    _next_log_row: int = field(default=1, init=False)
    _file_numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def write_token(self) -> str:
        """``<task>-<stage>-<attempt>``, different between all attempts at the same file (Hudi table format, file names)."""
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"

    def new_file_id(self, prefix: str = "") -> str:
        """Return a fresh file group id ``<uuid>-<n>``; ``prefix`` replaces its first characters (bucket ids)."""
        text = str(uuid.uuid4())
        return f"{prefix}{text[len(prefix) :]}-{next(self._file_numbers) if not prefix else 0}"

    def content_change(self) -> ContentChange | None:
        """Return what collects the rows that come and go in a file, None where that is not wanted."""
        return ContentChange() if self.context.receipts else None

    def take_row_numbers(self, count: int, *, in_log: bool = False) -> int:
        """Reserve ``count`` sequence numbers; returns the first (base rows count from 0, log records from 1)."""
        if in_log:
            first = self._next_log_row
            self._next_log_row += count
            return first
        first = self._next_row
        self._next_row += count
        return first

    def announce(self, partition: str, file_name: str, io_type: str) -> None:
        """Write the marker that lets a rollback find the file, before the file exists."""
        if self.markers is not None:
            self.markers.announce(marker_name(partition, file_name, io_type))
        else:
            write_marker(self.context.storage, self.context.instant, partition, file_name, io_type)

    def publish_guard(self) -> Callable[[], None]:
        """Return a call made just before a file gets its final name: refuses when the instant was rolled back meanwhile."""
        context = self.context
        return lambda: check_inflight(context.storage, context.config, context.instant, context.action)
