"""From the files of one file group to its slices.

Table version 6: a log belongs to the slice whose instant its name carries. Once a compaction is planned,
logs carry the instant of the compaction, whose base file does not exist yet; they are merged into the slice
before. Versions 8 and 9: a log belongs to the newest base file requested before the log's deltacommit
completed; tables upgraded from version 6 keep logs that name their base file, and those go by the name. Within
a slice logs go by the instants in their names in every version, whichever completed first (Hudi file slicing).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile


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
        is_committed: Whether an instant counts, time travel included.
        completion_time: Completion time of a committed instant (versions 8 and 9).
        as_of: Newest requested time that counts, None for now.
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
        starts = sorted(bases.keys() | {log.instant for log in visible if self.is_committed(log.instant)})
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
