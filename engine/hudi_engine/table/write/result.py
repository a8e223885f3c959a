"""What a write reports back to its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_engine.format.telemetry.figures import RowCounts, WriteFigures
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.table.handles.examples import Example


@dataclass(frozen=True)
class WritePlan:
    """What a write would do beyond its counts of rows, which are those of a `WriteResult`.

    Args:
        rows_read: Rows that the query gives.
        rows_unchanged: Those of them that change nothing: equal to what is stored or older, or one of several of a key.
        file_groups: File groups that are made, rewritten, appended to or taken out.
        bytes_to_rewrite: Bytes of the base files that others take the place of.
        columns: Changes of the table's columns, such as ``+ city string``.
        services: Services that the commit would start, such as ``clean``.
        seconds: About how long the write takes, by earlier commits of its operation; None where there are none.
        examples: Rows that change; of those that an overwrite takes out there are none.
    """

    rows_read: int
    rows_unchanged: int
    partitions: tuple[str, ...]
    file_groups: int
    bytes_to_rewrite: int
    columns: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    seconds: float | None = None
    examples: tuple[Example, ...] = ()


NO_ROWS = WritePlan(0, 0, (), 0, 0)
"""Of a write that has nothing to do."""


@dataclass(frozen=True)
class WriteResult(RowCounts):
    """Counts of one write.

    Args:
        instant: Instant time of the commit, None when the write had nothing to do and made none.
        operation: Hudi's operation name, e.g. ``UPSERT``.
        services: What services did after the commit, in words such as ``cleaned 3 files``.
        path_taken: How the work was done: ``driver``, ``executors``, ``partitions``, ``bulk``, ``joined`` or ``metadata``.
        figures: Rows that came and were shuffled, bytes rewritten and changed; None when nothing was written.
        seconds: Seconds by phase: ``prepare``, ``begin``, ``write``, ``commit``, ``publish``, ``services``.
        action: What the instant is: ``commit``, ``deltacommit`` or ``replacecommit``.
        metadata: The metadata of the commit; None when there is none.
        committed: The timeline right after the commit; None when there is none, or it is not known.
        plan: What the write would do, where it was only planned; then there is no instant.
    """

    instant: str | None
    operation: str
    files_written: int = 0
    partitions_written: tuple[str, ...] = ()
    path_taken: str = "metadata"
    services: tuple[str, ...] = ()
    figures: WriteFigures | None = None
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    action: str = ""
    metadata: CommitMetadata | None = field(default=None, repr=False, compare=False)
    committed: Timeline | None = field(default=None, repr=False, compare=False)
    plan: WritePlan | None = field(default=None, repr=False, compare=False)


def summarise(
    instant: str | None, metadata: CommitMetadata, path_taken: str, rows_replaced: int = 0
) -> WriteResult:
    """Add up the write stats of a commit."""
    stats = [stat for _, stat in metadata.write_stats()]
    return WriteResult(
        instant=instant,
        operation=metadata.operation_type,
        rows_inserted=sum(stat.num_inserts or 0 for stat in stats),
        rows_updated=sum(stat.num_update_writes or 0 for stat in stats),
        rows_deleted=sum(stat.num_deletes or 0 for stat in stats) + rows_replaced,
        files_written=len({stat.path for stat in stats if stat.path}),
        bytes_written=sum(stat.total_write_bytes or 0 for stat in stats),
        partitions_written=tuple(sorted(metadata.partitions)),
        path_taken=path_taken,
        metadata=metadata,
    )
