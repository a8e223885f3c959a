"""The file slices of a table at one point of its timeline.

Table version 6: a log belongs to the slice whose instant its name carries. Once a compaction is planned, logs carry the instant of
the compaction, whose base file does not exist yet; they are merged into the slice before. Versions 8 and 9: a log belongs to the
newest base file requested before the log's deltacommit completed; tables upgraded from version 6 keep logs that name their base
file, and those go by the name. Within a slice logs go by the instants in their names in every version (Hudi file slicing).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.properties_file import HOODIE_FOLDER
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, Written, parse_log_file
from hudi_engine.format.filegroup.partition_metadata import PARTITION_METADATA_NAMES
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.timeline.active import FileGroupKey, Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import Instant


@dataclass(slots=True)
class FileGroup:
    """All files of one (partition, file id), committed or not."""

    partition: str
    file_id: str
    base_files: list[BaseFile] = field(default_factory=list)
    log_files: list[LogFile] = field(default_factory=list)


@dataclass(frozen=True)
class SliceRules:
    """What decides which files of a group count and where its logs belong.

    Args:
        by_completion_time: True for table versions 8 and 9.
        choose: Picks one of several base files that one instant wrote for one group.
    """

    by_completion_time: bool
    is_committed: Callable[[str], bool]
    completion_time: Callable[[str], str | None]
    as_of: str | None
    choose: Callable[[list[BaseFile]], BaseFile]

    def slices(self, group: FileGroup) -> list[FileSlice]:
        """Return the slices of a group, newest first; empty when nothing of it counts."""
        bases = self._committed_bases(group.base_files)
        if not group.log_files:
            return [
                FileSlice(group.partition, group.file_id, instant, bases[instant])
                for instant in sorted(bases, reverse=True)
            ]
        assign = self._by_completion_time if self.by_completion_time else self._by_name
        logs = assign(bases, group.log_files)
        return [
            FileSlice(
                group.partition,
                group.file_id,
                instant,
                bases.get(instant),
                tuple(log for log in logs.get(instant, ()) if not log.is_cdc),
                tuple(log for log in logs.get(instant, ()) if log.is_cdc),
            )
            for instant in sorted({*bases, *logs}, reverse=True)
        ]

    def _committed_bases(self, files: Iterable[BaseFile]) -> dict[str, BaseFile]:
        found: dict[str, BaseFile] = {}
        rivals: dict[str, list[BaseFile]] = {}
        for file in files:
            if file.instant in found:
                rivals.setdefault(file.instant, [found[file.instant]]).append(file)
            elif self.is_committed(file.instant):
                found[file.instant] = file
        for instant, candidates in rivals.items():
            found[instant] = self.choose(candidates)
        return found

    def _by_name(self, bases: Mapping[str, BaseFile], logs: Iterable[LogFile]) -> dict[str, list[LogFile]]:
        visible = [log for log in logs if self.as_of is None or log.instant <= self.as_of]
        # A name that neither a base file nor a committed write explains is that of a planned compaction, or
        # of one that was given up: its logs continue the slice before. Without one, nothing in it was ever
        # committed.
        # A slice of logs alone is the first of its group. A later log with a name of its own was written in version 8 or 9,
        # before a downgrade.
        first = min(bases, default=None)
        alone = {log.instant for log in visible if self.is_committed(log.instant)}
        starts = sorted(bases.keys() | {each for each in alone if first is None or each < first})
        found: dict[str, list[LogFile]] = {}
        for log in sorted(visible, key=lambda each: each.sort_key):
            position = bisect_right(starts, log.instant)
            if position:
                found.setdefault(starts[position - 1], []).append(log)
        return found

    def _by_completion_time(
        self, bases: Mapping[str, BaseFile], logs: Iterable[LogFile]
    ) -> dict[str, list[LogFile]]:
        starts = sorted(bases)
        found: dict[str, list[LogFile]] = {}
        first_without_base: str | None = None
        for log in sorted(logs, key=lambda each: each.sort_key):
            completed = self.completion_time(log.instant) if self.is_committed(log.instant) else None
            if completed is None:
                continue
            position = bisect_right(starts, log.instant if log.instant in bases else completed)
            if position:
                found.setdefault(starts[position - 1], []).append(log)
            else:
                first_without_base = first_without_base or log.instant
                found.setdefault(first_without_base, []).append(log)
        return found


class WrittenLogs:
    """Looks up what commits of the active timeline wrote into logs; a log that lacks some of it was damaged later.

    Hudi states for each log the offset of a commit's blocks (``logOffset``) and the file's length after them
    (``fileSizeInBytes``). Other bytes are of writes that failed or were rolled back, and of their rollbacks.
    """

    def __init__(
        self, config: TableConfig, timeline: Timeline, is_visible: Callable[[str], bool] | None = None
    ) -> None:
        self._timeline = timeline
        self._named_by_slice = config.layout_version == 1
        self._writes = [
            each
            for each in timeline.completed_writes
            if each.action != "commit" and (is_visible is None or is_visible(each.requested_time))
        ]
        self._read: set[str] = set()
        self._found: dict[str, list[Written]] = {}

    def in_slices(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """Return the slices with the stretches of their logs."""
        given = list(slices)
        found = self.of_logs(log for each in given for log in each.log_files)
        if not found:
            return given
        return [
            replace(
                each, log_files=tuple(replace(log, written=found.get(log.path, ())) for log in each.log_files)
            )
            if each.log_files
            else each
            for each in given
        ]

    def of_logs(self, logs: Iterable[LogFile]) -> dict[str, tuple[Written, ...]]:
        """Return the stretches by path; a log that no commit at hand wrote to has none."""
        given = {log.path: log for log in logs}
        named = {log.instant for log in given.values()}
        self._look([each for each in self._writes if each.requested_time in named])
        # In layout 1 logs are named after their slice, and so are those that an upgraded table has kept.
        later = [
            log.instant for path, log in given.items() if self._named_by_slice or path not in self._found
        ]
        self._look([each for each in self._writes if later and each.requested_time >= min(later)])
        return {path: tuple(self._found[path]) for path in given if path in self._found}

    def _look(self, writes: Iterable[Instant]) -> None:
        """Read the commits that were not read yet."""
        unread = [each for each in writes if each.requested_time not in self._read]
        for write, metadata in zip(unread, on_threads(self._metadata, unread), strict=True):
            self._read.add(write.requested_time)
            for _, stat in metadata.write_stats() if metadata is not None else ():
                if stat.is_log_file and stat.path and stat.file_size_in_bytes:
                    stretch = Written(stat.log_offset or 0, stat.file_size_in_bytes, write.requested_time)
                    self._found.setdefault(stat.path, []).append(stretch)

    def _metadata(self, write: Instant) -> CommitMetadata | None:
        try:
            return self._timeline.commit_metadata(write)
        except (CorruptTableError, TimelineError):
            return (
                None  # rolled back meanwhile, or damaged, which validate finds: nothing is known of its logs
            )


_SKIPPED = frozenset({HOODIE_FOLDER})

PartitionFiles = dict[str, list[FileStatus]]


def list_table_files(storage: Storage, config: TableConfig) -> PartitionFiles:
    """Return the files of every partition, by partition path, from one walk that never enters ``.hoodie``.

    A folder is a partition when it holds partition metadata in one of its formats; a non-partitioned table
    is its base folder.
    """
    folders: PartitionFiles = {}
    partitions = set() if config.is_partitioned else {""}
    for status in storage.list("", recursive=True, skip=_SKIPPED):
        if status.is_dir:
            continue
        folder, _, name = status.path.rpartition("/")
        folders.setdefault(folder, []).append(status)
        if name in PARTITION_METADATA_NAMES:
            partitions.add(folder)
    return {partition: folders.get(partition, []) for partition in sorted(partitions)}


def list_partitions(storage: Storage, config: TableConfig) -> list[str]:
    """Return the partition paths of a table, sorted; ``[""]`` when it is not partitioned."""
    return list(list_table_files(storage, config)) if config.is_partitioned else [""]


def list_partition_files(storage: Storage, partition: str) -> list[FileStatus]:
    """Return the files directly in a partition folder; a missing folder has none."""
    return [status for status in storage.list(partition) if not status.is_dir]


def list_files_of(storage: Storage, partitions: Iterable[str]) -> PartitionFiles:
    """Return the files of the named partitions, by partition path."""
    return {partition: list_partition_files(storage, partition) for partition in sorted(set(partitions))}


def is_merged(base: BaseFile | None, log: LogFile, written: str, completed: str) -> bool:
    """Return whether a base file holds what a write put into a log: it is of that write or a later one, or of a later slice.

    Args:
        completed: When the write completed. A base file that was requested before that does not hold what a log named after the
            write has.
    """
    if base is None:
        return False
    if log.instant == written:
        return base.instant == written or base.instant > completed
    return base.instant >= written or base.instant > log.instant


class FileSystemView:
    """Slices of a table, found by listing each folder once; what is not committed, or replaced, is not in it.

    The logs of a pending compaction are part of the slice before it ("merged view"), so every slice can be
    read as it is.
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
        files: PartitionFiles | None = None,
    ) -> FileSystemView:
        """List a table and sort its files into slices.

        Args:
            partitions: Partitions to list, None for all.
            files: What a metadata table lists; nothing is listed then.
        """
        if files is not None:
            pass
        elif partitions is None:
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

    def newest(self, group: FileGroupKey) -> FileSlice | None:
        """Return the newest committed slice of a file group, of a replaced one too; None where it has none."""
        partition, file_id = group
        return next(iter(self._slices.get(partition, {}).get(file_id, ())), None)

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

    def has_log_file(self, key: FileGroupKey, log: LogFile, write: Instant) -> bool:
        """Return whether a log is there, or its group has a committed base file of a later write, which holds its rows."""
        partition, file_id = key
        slices = self._slices.get(partition, {}).get(file_id, ())
        merged = any(is_merged(each.base_file, log, write.requested_time, write.order) for each in slices)
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
