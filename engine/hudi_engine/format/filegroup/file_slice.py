"""One version of a file group: a base file and the logs on top of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.log_file import LogFile


@dataclass(frozen=True, slots=True)
class FileSlice:
    """What has to be merged to get the rows of a file group at one time.

    Args:
        base_instant: Instant of the base file, or of the first log of a group that has none.
        log_files: Logs in the order in which they apply.
        cdc_files: Change data files written with this slice; they hold no rows of the table.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None = None
    log_files: tuple[LogFile, ...] = ()
    cdc_files: tuple[LogFile, ...] = ()

    @property
    def without_logs(self) -> FileSlice:
        """The base file alone."""
        return replace(self, log_files=())

    @property
    def size(self) -> int:
        """Bytes of the base file and the logs."""
        base = self.base_file.size if self.base_file is not None else 0
        return base + sum(log.size for log in self.log_files)

    def merged_size(self, log_ratio: float) -> int:
        """Return about the bytes of the base file that the slice would be compacted to.

        Args:
            log_ratio: Bytes of a base file that a byte of logs becomes.
        """
        base = self.base_file.size if self.base_file is not None else 0
        return base + int(sum(log.size for log in self.log_files) * log_ratio)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file of the slice, change data included, relative to the table's base path."""
        return self.row_paths + tuple(log.path for log in self.cdc_files)

    @property
    def row_paths(self) -> tuple[str, ...]:
        """The files that hold rows: base file and logs, relative to the table's base path."""
        base = (self.base_file.path,) if self.base_file is not None else ()
        return base + tuple(log.path for log in self.log_files)
