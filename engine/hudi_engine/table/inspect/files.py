"""The files that make up a table now, or made it up at another time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import ConfigError, CorruptTableError, TimelineError
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile
from hudi_engine.format.filegroup.missing import GONE
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class FileFacts:
    """One file of the newest slice of a file group."""

    path: str
    partition: str  # partition path, ``""`` for a table without partitions
    file_id: str
    kind: str  # ``base``, ``log`` or ``cdc``
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
    """One partition."""

    partition: str
    file_groups: int
    base_files: int
    log_files: int
    base_bytes: int
    log_bytes: int


def file_facts(state: TableState, *, as_of: str | None = None) -> list[FileFacts]:
    """Return the files that a snapshot reads, in the order of partition and file group."""
    state.timeline.check_readable(as_of)
    slices = state.view(as_of=as_of).latest_slices()
    later = set() if as_of is None else _begun_after(state, as_of)
    return [facts for each in slices for facts in facts_of(state.storage, each) if facts.path not in later]


def _begun_after(state: TableState, as_of: str) -> set[str]:
    """Return the files that writes after an instant began: a log may have the name of its slice alone, which does not show it.

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
    """Refuse a partition in which a table has no files."""
    if wanted not in known:
        some = ", ".join(repr(each) for each in sorted(known)[:5]) or "none"
        raise ConfigError(
            f"{asked} is {wanted!r}, in which the table has no files; {did_you_mean(wanted, known)}it has {len(known)}, for "
            f"example: {some}"
        )


def partition_facts(slices: Iterable[FileSlice]) -> list[PartitionFacts]:
    """Return what lies in each partition, sorted by path; partitions without a live file group are left out."""
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


@dataclass(frozen=True)
class Snapshot:
    """The newest slices of a table."""

    view: FileSystemView
    slices: Sequence[FileSlice]
    base_rows: Mapping[str, int]  # rows of their base files by path, by the footers

    @classmethod
    def of(cls, state: TableState) -> Snapshot:
        """List a table and read the footers of its base files."""
        view = state.view()
        slices = view.latest_slices()
        bases = [each.base_file for each in slices if each.base_file is not None]
        rows = footer_rows(state.storage, bases)
        return cls(view, slices, dict(zip((base.path for base in bases), rows)))

    @property
    def bases(self) -> list[BaseFile]:
        """The base files of the newest slices."""
        return [each.base_file for each in self.slices if each.base_file is not None]


def footer_rows(storage: Storage, bases: Sequence[BaseFile]) -> list[int]:
    """Return the rows of base files, from their footers, in the same order."""
    return on_threads(lambda base: _footer_rows(storage, base), bases)


def _footer_rows(storage: Storage, base: BaseFile) -> int:
    try:
        with storage.open_input(base.path) as source:
            return int(pq.read_metadata(source).num_rows)
    except FileNotFoundError as error:
        raise TimelineError(f"base file {base.path!r} {GONE}; look again") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptTableError(f"the footer of base file {base.path!r} cannot be read: {error}") from error
