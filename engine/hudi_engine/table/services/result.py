"""What table services report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedResult:
    """A service with a plan of its own that was planned or run.

    Args:
        instant: Its instant, None when there was nothing to do, or it was only looked at.
        state: ``none``, ``scheduled`` or ``completed``.
        rows: Rows in the new base files; 0 while it is only scheduled.
    """

    instant: str | None = None
    state: str = "none"
    file_groups: int = 0
    rows: int = 0
    bytes_written: int = 0
    reason: str = ""


@dataclass(frozen=True)
class CompactionResult(PlannedResult):
    """A compaction that was scheduled or run.

    Args:
        files_compacted: Base and log files that were read (completed) or will be (scheduled).
    """

    files_compacted: int = 0

    @property
    def files_written(self) -> int:
        """New base files: one a file group once it is completed."""
        return self.file_groups if self.state == "completed" else 0


@dataclass(frozen=True)
class ClusteringResult(PlannedResult):
    """A clustering that was planned or run, or would be.

    Args:
        files_read: Base and log files that were read (completed) or will be (scheduled).
    """

    groups: int = 0
    files_read: int = 0
    partitions: tuple[str, ...] = ()
    files_written: int = 0


@dataclass(frozen=True)
class PendingPlan:
    """A plan on the timeline.

    Args:
        state: ``REQUESTED``, ``INFLIGHT`` or ``COMPLETED``.
    """

    instant: str
    state: str
    file_groups: int


@dataclass(frozen=True)
class PendingCompaction(PendingPlan):
    """A compaction on the timeline.

    Args:
        log_bytes: Their size in bytes.
    """

    log_files: int = 0
    log_bytes: int = 0


@dataclass(frozen=True)
class PendingClustering(PendingPlan):
    """A clustering on the timeline."""

    groups: int
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class CleanResult:
    """A clean that was run.

    Args:
        instant: Its instant, None when there was nothing to do.
        files_kept: Files of the plan that were spared, because a reader or a plan needs them by now.
        earliest_retained: Oldest instant that can still be read, None when the policy goes by file versions.
    """

    instant: str | None = None
    files_deleted: int = 0
    files_kept: int = 0
    partitions: int = 0
    earliest_retained: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class ArchiveResult:
    """An archiving that was run, or would be.

    Args:
        instants: Instants that left the active timeline, as ``<requested time>.<action>``.
        file: The new file of the archive, relative to the base path; None when none was written.
        merged_files: Small files of the archive that were merged into one.
    """

    instants: tuple[str, ...] = ()
    file: str | None = None
    merged_files: int = 0
    reason: str = ""


@dataclass(frozen=True)
class ServicesReport:
    """What ran after a commit.

    Args:
        clean: The clean, None when none was asked for.
        failures: One message for every service that failed; the commit stays all the same.
        archive: The archiving, None when none was asked for.
    """

    compactions: tuple[CompactionResult, ...] = ()
    clean: CleanResult | None = None
    failures: tuple[str, ...] = ()
    archive: ArchiveResult | None = None
    clusterings: tuple[ClusteringResult, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """What was done, in words for people; nothing of services that had nothing to do."""
        words = []
        for each in self.compactions:
            if each.instant is not None:
                what = "compacted" if each.state == "completed" else "planned to compact"
                words.append(f"{what} {_counted(each.file_groups, 'file group')}")
        for clustering in self.clusterings:
            if clustering.instant is not None:
                what = "clustered" if clustering.state == "completed" else "planned to cluster"
                words.append(f"{what} {_counted(clustering.file_groups, 'file group')}")
        if self.clean is not None and self.clean.files_deleted:
            words.append(f"cleaned {_counted(self.clean.files_deleted, 'file')}")
        if self.archive is not None and self.archive.instants:
            words.append(f"archived {_counted(len(self.archive.instants), 'instant')}")
        words += [f"{failure.partition(':')[0]} failed" for failure in self.failures]
        return tuple(words)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
