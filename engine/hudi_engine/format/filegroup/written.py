"""What completed commits wrote into log files, by their write stats: a log that lacks some of it was damaged later.

Hudi states for each log that a commit wrote to the offset of its blocks (``logOffset``) and the file's length after them
(``fileSizeInBytes``). Bytes outside of these stretches are of writes that failed or were rolled back, and of their rollbacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, Written
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import Instant


class WrittenLogs:
    """Looks up the stretches of logs that commits of the active timeline wrote; each of the commits is read once.

    Args:
        is_visible: Whether a requested instant time counts; None for all completed writes.
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
