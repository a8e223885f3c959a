"""What table services report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedResult:
    """A service with a plan of its own that was planned or run."""

    instant: str | None = None  # its instant, None when there was nothing to do, or it was only looked at
    state: str = "none"  # ``none``, ``scheduled`` or ``completed``
    file_groups: int = 0
    rows: int = 0
    bytes_written: int = 0
    reason: str = ""


@dataclass(frozen=True)
class CompactionResult(PlannedResult):
    """A compaction that was scheduled or run."""

    files_compacted: int = 0

    @property
    def files_written(self) -> int:
        """New base files: one a file group once it is completed."""
        return self.file_groups if self.state == "completed" else 0


@dataclass(frozen=True)
class ClusteringResult(PlannedResult):
    """A clustering that was planned or run, or would be."""

    groups: int = 0
    files_read: int = 0
    partitions: tuple[str, ...] = ()
    files_written: int = 0


@dataclass(frozen=True)
class PendingPlan:
    """A plan on the timeline."""

    instant: str
    state: str  # ``REQUESTED``, ``INFLIGHT`` or ``COMPLETED``
    file_groups: int


@dataclass(frozen=True)
class PendingCompaction(PendingPlan):
    """A compaction on the timeline."""

    log_files: int = 0
    log_bytes: int = 0


@dataclass(frozen=True)
class PendingClustering(PendingPlan):
    """A clustering on the timeline."""

    groups: int
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class CleanResult:
    """A clean that was run."""

    instant: str | None = None  # its instant, None when there was nothing to do
    files_deleted: int = 0
    files_kept: int = 0  # files of the plan that were spared, because a reader or a plan needs them by now
    partitions: int = 0
    earliest_retained: str | None = (
        None  # oldest instant that can still be read, None when the policy goes by file versions
    )
    reason: str = ""


@dataclass(frozen=True)
class ArchiveResult:
    """An archiving that was run, or would be."""

    instants: tuple[str, ...] = ()  # instants that left the active timeline, as ``<requested time>.<action>``
    file: str | None = (
        None  # the new file of the archive, relative to the base path; None when none was written
    )
    merged_files: int = 0
    reason: str = ""


@dataclass(frozen=True)
class ServicesReport:
    """What ran after a commit."""

    compactions: tuple[CompactionResult, ...] = ()
    clean: CleanResult | None = None
    failures: tuple[str, ...] = ()
    archive: ArchiveResult | None = None
    clusterings: tuple[ClusteringResult, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """What was done, in words for people; nothing of services that had nothing to do."""
        words = []
        for verb, each in (
            *(("compact", each) for each in self.compactions),
            *(("cluster", each) for each in self.clusterings),
        ):
            if each.instant is not None:
                what = f"{verb}ed" if each.state == "completed" else f"planned to {verb}"
                words.append(f"{what} {_counted(each.file_groups, 'file group')}")
        if self.clean is not None and self.clean.files_deleted:
            words.append(f"cleaned {_counted(self.clean.files_deleted, 'file')}")
        if self.archive is not None and self.archive.instants:
            words.append(f"archived {_counted(len(self.archive.instants), 'instant')}")
        words += [f"{failure.partition(':')[0]} failed" for failure in self.failures]
        return tuple(words)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
