"""The files that make up a table now, or made it up at another time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from hudi_engine.errors import ConfigError
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class FileFacts:
    """One file of the newest slice of a file group.

    Args:
        partition: Partition path, ``""`` for a table without partitions.
        kind: ``base``, ``log`` or ``cdc``.
        modified_ms: When it was written, epoch milliseconds.
        uri: Where it is, as Spark understands it.
    """

    path: str
    partition: str
    file_id: str
    kind: str
    instant: str
    size_bytes: int
    modified_ms: int
    uri: str

    @property
    def modified_at(self) -> datetime:
        """When it was written, in UTC."""
        return datetime.fromtimestamp(self.modified_ms / 1000, timezone.utc)


@dataclass(frozen=True)
class PartitionFacts:
    """One partition.

    Args:
        partition: Its path, ``""`` for a table without partitions.
    """

    partition: str
    file_groups: int
    base_files: int
    log_files: int
    base_bytes: int
    log_bytes: int


def file_facts(state: TableState, *, as_of: str | None = None) -> list[FileFacts]:
    """Return the files that a snapshot reads, in the order of partition and file group.

    Args:
        as_of: Newest requested time that counts, None for now.

    Raises:
        TimelineError: A clean has deleted files of the point in time.
    """
    state.timeline.check_readable(as_of)
    slices = state.view(as_of=as_of).latest_slices()
    later = set() if as_of is None else _begun_after(state, as_of)
    return [facts for each in slices for facts in facts_of(state.storage, each) if facts.path not in later]


def _begun_after(state: TableState, as_of: str) -> set[str]:
    """Return the files that writes after an instant began: a log may have the name of its slice alone, which does not tell.

    One that such a write appended to was there before, and stays (source: Hudi table format, ``logOffset`` of a write stat).
    """
    return {
        stat.path
        for write in state.timeline.completed_writes
        if write.requested_time > as_of
        for _, stat in state.timeline.commit_metadata(write).write_stats()
        if stat.path and not stat.log_offset
    }


def check_partition(wanted: str, known: Collection[str], *, asked: str = "partition") -> None:
    """Refuse a partition in which a table has no files.

    Args:
        known: Paths of the partitions that have some.

    Raises:
        ConfigError: It is none of them; the message names the nearest.
    """
    if wanted not in known:
        some = ", ".join(repr(each) for each in sorted(known)[:5]) or "none"
        raise ConfigError(
            f"{asked} is {wanted!r}, in which the table has no files; {did_you_mean(wanted, known)}it has {len(known)}, for "
            f"example: {some}"
        )


def partition_facts(slices: Iterable[FileSlice]) -> list[PartitionFacts]:
    """Return what lies in each partition, sorted by path; partitions without a live file group are left out.

    Args:
        slices: The newest slices, as a view of the table gives them.
    """
    by_partition: dict[str, list[FileSlice]] = {}
    for each in slices:
        by_partition.setdefault(each.partition, []).append(each)
    return [_partition(name, by_partition[name]) for name in sorted(by_partition)]


def _partition(name: str, slices: list[FileSlice]) -> PartitionFacts:
    bases = [each.base_file for each in slices if each.base_file is not None]
    logs = [log for each in slices for log in each.log_files]
    return PartitionFacts(
        name,
        len(slices),
        len(bases),
        len(logs),
        sum(base.size for base in bases),
        sum(log.size for log in logs),
    )


def facts_of(storage: Storage, piece: FileSlice) -> Iterator[FileFacts]:
    """Yield the files of one slice, the base file first."""
    files: list[tuple[str, BaseFile | LogFile]] = []
    if piece.base_file is not None:
        files.append(("base", piece.base_file))
    files += [("log", log) for log in piece.log_files]
    files += [("cdc", log) for log in piece.cdc_files]
    for kind, file in files:
        yield FileFacts(
            file.path,
            file.partition,
            file.file_id,
            kind,
            file.instant,
            file.size,
            file.modified_ms,
            storage.uri(file.path),
        )
