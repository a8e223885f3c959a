"""One unit of a compaction plan: the slice of a file group that becomes a new base file.

Plans are read from the table and may be another writer's, so names in them are taken apart and checked before
they lead to a file (Hudi table format, compaction).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, Written, parse_log_file
from hudi_engine.format.storage.paths import relative_path

MEGABYTE = 1024 * 1024
LOG_FILES = "TOTAL_LOG_FILES"
LOG_BYTES = "TOTAL_LOG_FILES_SIZE"
IO_MB = "TOTAL_IO_MB"
READ_MB = "TOTAL_IO_READ_MB"
WRITE_MB = "TOTAL_IO_WRITE_MB"


@dataclass(frozen=True)
class CompactionOperation:
    """A slice to compact.

    Args:
        data_file: Name of its base file, None for a slice that has logs only.
        log_files: Names of its logs, in the order in which they apply.
        metrics: Hudi's figures by which strategies choose, see the constants of this module.
    """

    partition: str
    file_id: str
    base_instant: str
    data_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes to read, less than a MiB a file too few."""
        return int(self.metrics.get(READ_MB, 0)) * MEGABYTE

    @classmethod
    def of(cls, file_slice: FileSlice, new_file_bytes: int) -> CompactionOperation:
        """Plan a slice.

        Args:
            new_file_bytes: Expected size in bytes of a base file where there is none yet.
        """
        base = file_slice.base_file
        log_bytes = sum(log.size for log in file_slice.log_files)
        read_mb = log_bytes // MEGABYTE + (base.size // MEGABYTE if base else 0)
        write_mb = (base.size if base else new_file_bytes) // MEGABYTE
        metrics = {
            LOG_FILES: float(len(file_slice.log_files)),
            LOG_BYTES: float(log_bytes),
            READ_MB: float(read_mb),
            WRITE_MB: float(write_mb),
            IO_MB: float(read_mb + write_mb),
        }
        return cls(
            file_slice.partition,
            file_slice.file_id,
            file_slice.base_instant,
            base.name if base else None,
            tuple(log.name for log in file_slice.log_files),
            metrics,
        )

    def to_record(self) -> dict[str, Any]:
        """Return the record ``HoodieCompactionOperation``; it holds names, not paths."""
        return {
            "baseInstantTime": self.base_instant,
            "deltaFilePaths": list(self.log_files),
            "dataFilePath": self.data_file,
            "fileId": self.file_id,
            "partitionPath": self.partition,
            "metrics": dict(self.metrics),
            "bootstrapFilePath": None,
        }

    @classmethod
    def from_record(cls, raw: Mapping[str, Any], source: str) -> CompactionOperation:
        """Check and take over a record of a stored plan.

        Args:
            source: Name of the plan's file, for messages.

        Raises:
            CorruptTableError: when a name is not that of a file of the file group.
        """
        partition = relative_path(str(raw.get("partitionPath") or ""))
        data_file = str(raw.get("dataFilePath") or "").rpartition("/")[2] or None
        operation = cls(
            partition,
            str(raw.get("fileId") or ""),
            str(raw.get("baseInstantTime") or ""),
            data_file,
            tuple(str(path).rpartition("/")[2] for path in raw.get("deltaFilePaths") or ()),
            {key: float(value) for key, value in (raw.get("metrics") or {}).items()},
        )
        operation._check(source)
        return operation

    def file_slice(
        self,
        sizes: Mapping[str, int] | None = None,
        written: Mapping[str, tuple[Written, ...]] | None = None,
    ) -> FileSlice:
        """Return the slice.

        Args:
            sizes: Bytes of its files by name.
            written: What completed commits wrote to its logs, by path.
        """
        sizes = sizes or {}
        base = self._base_file()
        if base is not None:
            base = _sized(base, sizes.get(base.name, 0))
        logs = tuple(
            replace(log, size=sizes.get(log.name, 0), written=(written or {}).get(log.path, ()))
            for log in self.logs
        )
        return FileSlice(self.partition, self.file_id, self.base_instant, base, logs)

    @property
    def names(self) -> frozenset[str]:
        """Names of all files that the operation reads."""
        return frozenset(self.log_files) | ({self.data_file} if self.data_file else frozenset())

    def _base_file(self) -> BaseFile | None:
        return parse_base_file(self.data_file, self.partition) if self.data_file else None

    @property
    def logs(self) -> list[LogFile]:
        """Its log files, as their names tell them."""
        parsed = (parse_log_file(name, self.partition) for name in self.log_files)
        return [log for log in parsed if log is not None]

    def _check(self, source: str) -> None:
        base = self._base_file()
        wrong = [log for log in self.logs if log.file_id != self.file_id]
        if (
            not self.file_id
            or (self.data_file is not None and (base is None or base.file_id != self.file_id))
            or wrong
            or len(self.logs) != len(self.log_files)
        ):
            raise CorruptTableError(
                f"{source} plans to compact files of {self.file_id!r} in partition {self.partition!r} that "
                f"are not its own: base file {self.data_file!r}, logs {list(self.log_files)!r}. Look at the "
                "file, and delete the plan if it is not Hudi's"
            )


def _sized(base: BaseFile, size: int) -> BaseFile:
    return BaseFile(base.partition, base.file_id, base.write_token, base.instant, base.extension, size)
