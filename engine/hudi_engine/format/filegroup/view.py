"""The file slices of a table at one point of its timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_group import FileGroup, SliceRules
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.listing import PartitionFiles, list_files_of, list_table_files
from hudi_engine.format.filegroup.log_file import LogFile, parse_log_file
from hudi_engine.format.filegroup.written import WrittenLogs
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.timeline.active import FileGroupKey, Timeline


def is_merged(base: BaseFile | None, log: LogFile, written: str) -> bool:
    """Return whether a base file holds what a write put into a log: it is of that write or a later one, or of a later slice."""
    return base is not None and (base.instant >= written or base.instant > log.instant)


class FileSystemView:
    """Slices of a table, found by listing each folder once; what is not committed, or replaced, is not in it.

    The logs of a pending compaction are part of the slice before it ("merged view"), so every slice can be
    read as it stands. An up-to-date metadata table is not needed and not looked at.
    """

    def __init__(
        self,
        slices: Mapping[str, Mapping[str, list[FileSlice]]],
        replaced: Mapping[FileGroupKey, str],
        files: PartitionFiles,
        written: WrittenLogs,
    ) -> None:
        self._slices = slices
        self._replaced = replaced
        self._files = files
        self._written = written

    @classmethod
    def build(
        cls,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        *,
        as_of: str | None = None,
        partitions: Iterable[str] | None = None,
    ) -> FileSystemView:
        """List a table and sort its files into slices."""
        if partitions is None:
            files = list_table_files(storage, config)
        else:
            files = list_files_of(storage, partitions)
        rules = SliceRules(
            by_completion_time=config.layout_version >= 2,
            is_committed=timeline.committed(as_of),
            completion_time=timeline.completion_time,
            as_of=as_of,
            choose=ChosenByCommit(timeline),
        )
        slices = {
            partition: _partition_slices(rules, partition, statuses) for partition, statuses in files.items()
        }
        written = WrittenLogs(config, timeline, rules.is_committed)
        return cls(slices, timeline.replaced_file_groups(as_of), files, written)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths of the view, sorted; some may have no file slice."""
        return tuple(self._slices)

    @property
    def replaced_groups(self) -> Mapping[FileGroupKey, str]:
        """File groups taken out by an insert overwrite, delete partition or clustering, with its instant."""
        return self._replaced

    @property
    def listed(self) -> PartitionFiles:
        """Every file the listing found, by partition."""
        return self._files

    def files(self, partition: str) -> tuple[FileStatus, ...]:
        """Return every file the listing found in a partition, whatever it is."""
        return tuple(self._files.get(partition, ()))

    def latest_slices(self, partition: str | None = None) -> list[FileSlice]:
        """Return the newest slice of every live file group, of one partition if named; their logs carry what commits wrote."""
        return self._written.in_slices(slices[0] for slices in self._live(partition))

    def latest_base_files(self, partition: str | None = None) -> list[BaseFile]:
        """Return the newest base file of every live file group that has one (read-optimized)."""
        found = []
        for slices in self._live(partition):
            newest = next((each.base_file for each in slices if each.base_file is not None), None)
            if newest is not None:
                found.append(newest)
        return found

    def all_slices(self, partition: str) -> dict[str, list[FileSlice]]:
        """Return every committed slice by file id, newest first, replaced file groups included."""
        return {file_id: list(slices) for file_id, slices in self._slices.get(partition, {}).items()}

    def every_slice(self) -> Iterator[FileSlice]:
        """Yield every committed slice of every partition, replaced file groups included."""
        for partition in self.partitions:
            for slices in self._slices.get(partition, {}).values():
                yield from slices

    def has_base_file(self, key: FileGroupKey, path: str, instant: str) -> bool:
        """Return whether a file, or a base file of its group that is not older, is there; others count only if committed."""
        partition, file_id = key
        slices = self._slices.get(partition, {}).get(file_id, ())
        bases = [each.base_file for each in slices if each.base_file is not None]
        newer = any(base.instant >= instant for base in bases)
        return newer or any(status.path == path for status in self.files(partition))

    def has_log_file(self, key: FileGroupKey, log: LogFile, written: str) -> bool:
        """Return whether a log is there, or its group has a committed base file of a later write, which holds its rows."""
        partition, file_id = key
        slices = self._slices.get(partition, {}).get(file_id, ())
        merged = any(is_merged(each.base_file, log, written) for each in slices)
        if merged or any(log.path == other.path for each in slices for other in each.log_files):
            return True
        return any(status.path == log.path for status in self.files(partition))

    def _live(self, partition: str | None) -> Iterator[list[FileSlice]]:
        for name in self._slices if partition is None else (partition,):
            for file_id, slices in self._slices.get(name, {}).items():
                if (name, file_id) not in self._replaced:
                    yield slices


def _partition_slices(
    rules: SliceRules, partition: str, statuses: Iterable[FileStatus]
) -> dict[str, list[FileSlice]]:
    groups = file_groups(partition, statuses)
    found = ((file_id, rules.slices(groups[file_id])) for file_id in sorted(groups))
    return {file_id: slices for file_id, slices in found if slices}


def file_groups(partition: str, statuses: Iterable[FileStatus]) -> dict[str, FileGroup]:
    """Return the data files of a folder by file id, committed or not."""
    groups: dict[str, FileGroup] = {}
    for status in statuses:
        base = parse_base_file(status.name, partition, status)
        if base is not None:
            group = groups.get(base.file_id) or groups.setdefault(
                base.file_id, FileGroup(partition, base.file_id)
            )
            group.base_files.append(base)
            continue
        log = parse_log_file(status.name, partition, status)
        if log is not None:
            group = groups.get(log.file_id) or groups.setdefault(
                log.file_id, FileGroup(partition, log.file_id)
            )
            group.log_files.append(log)
    return groups


class ChosenByCommit:
    """Decides between base files of one group and instant that attempts at one task left behind."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._written: dict[str, set[str]] = {}

    def __call__(self, candidates: list[BaseFile]) -> BaseFile:
        """Return the file the commit names, or the one with the greatest token when the commit is archived."""
        written = self._paths(candidates[0].instant)
        named = [file for file in candidates if file.path in written]
        return max(named or candidates, key=lambda file: file.write_token)

    def _paths(self, instant: str) -> set[str]:
        if instant not in self._written:
            self._written[instant] = {
                stat.path
                for write in self._timeline.completed_writes
                if write.requested_time == instant
                for _, stat in self._timeline.commit_metadata(write).write_stats()
                if stat.path
            }
        return self._written[instant]
