"""What a commit cost, from its write stats."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat

FIGURES = "hudi_engine.write"
"""Extra metadata of a commit: JSON with the figures of the write, seconds by phase up to the commit among them."""


@dataclass(frozen=True, kw_only=True)
class RowCounts:
    """What a commit did, in numbers.

    Args:
        rows_updated: Rows whose key was in the table.
    """

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    bytes_written: int = 0


@dataclass(frozen=True)
class WriteFigures:
    """Rows and bytes of one write.

    Args:
        bytes_changed: Bytes that the rows which changed take in those files, about.
    """

    rows_in: int | None
    rows_shuffled: int
    rows_written: int
    bytes_rewritten: int
    bytes_changed: int

    @classmethod
    def of(cls, metadata: CommitMetadata, rows_in: int | None, *, shuffled: bool) -> WriteFigures:
        """Add up the write stats of a commit."""
        stats = [stat for _, stat in metadata.write_stats()]
        written = sum(stat.num_writes or 0 for stat in stats)
        came = written if rows_in is None else rows_in
        return cls(
            rows_in,
            came if shuffled else 0,
            written,
            sum(stat.total_write_bytes or 0 for stat in stats if replaces_file(stat)),
            sum(_bytes_changed(stat) for stat in stats),
        )

    def to_json(self, seconds: Mapping[str, float]) -> str:
        """Format as the text that a commit carries."""
        values = {
            "rowsIn": self.rows_in,
            "rowsShuffled": self.rows_shuffled,
            "rowsWritten": self.rows_written,
            "bytesRewritten": self.bytes_rewritten,
            "bytesChanged": self.bytes_changed,
            "seconds": dict(seconds),
        }
        return json.dumps(values)


def time_spent(kind: str, began: float) -> dict[str, int | None]:
    """Return what a write stat has as ``runtimeStats``: milliseconds that a file took.

    Args:
        kind: ``totalCreateTime`` or ``totalUpsertTime``.
        began: Moment of ``time.perf_counter``.
    """
    spent = round((time.perf_counter() - began) * 1000)
    return {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0, kind: spent}


def replaces_file(stat: WriteStat) -> bool:
    """Return whether a file is a base file that takes the place of an earlier one."""
    return not stat.is_log_file and stat.prev_commit not in (None, NO_PREVIOUS_COMMIT)


def _bytes_changed(stat: WriteStat) -> int:
    size, rows = stat.total_write_bytes or 0, stat.num_writes or 0
    if stat.is_log_file or not rows or not replaces_file(stat):
        return size
    changed = (stat.num_inserts or 0) + (stat.num_update_writes or 0)
    return size * min(changed, rows) // rows
