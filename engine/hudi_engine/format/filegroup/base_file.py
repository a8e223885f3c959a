"""Base files: ``<file id>_<write token>_<instant>.<format>`` (Hudi file layout, all table versions)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_engine.errors import DataError
from hudi_engine.format.storage.base import FileStatus

_NAME = re.compile(r"^([^_/]+)_(\d+-\d+-\d+)_(\d+)\.(parquet|hfile|lance|orc)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One version of a file group's rows.

    Args:
        write_token: ``<task>-<stage>-<attempt>`` of the task that wrote the file.
        instant: Requested time of the action that wrote the file.
    """

    partition: str
    file_id: str
    write_token: str
    instant: str
    extension: str = "parquet"
    size: int = 0
    modified_ms: int = 0

    @property
    def name(self) -> str:
        """File name without folder."""
        return f"{self.file_id}_{self.write_token}_{self.instant}.{self.extension}"

    @property
    def path(self) -> str:
        """Path relative to the table's base path."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


def parse_base_file(path: str, partition: str, status: FileStatus | None = None) -> BaseFile | None:
    """Parse the name of a base file; None for every other file."""
    match = _NAME.match(path.rpartition("/")[2])
    if match is None:
        return None
    return BaseFile(partition, match[1], match[2], match[3], match[4], *size_and_time(status))


def size_and_time(status: FileStatus | None) -> tuple[int, int]:
    """Return size in bytes and modification time in epoch milliseconds; zeros without a status."""
    return (status.size, status.modified_ms) if status is not None else (0, 0)


def base_file_name(file_id: str, write_token: str, instant: str, extension: str = "parquet") -> str:
    """Return the name of a base file."""
    name = f"{file_id}_{write_token}_{instant}.{extension}"
    if _NAME.match(name) is None:
        raise DataError(
            f"{name!r} is no base file name: a file id has no '_' or '/', a write token is three numbers "
            "joined by '-', an instant is digits, and the format is parquet, orc, hfile or lance"
        )
    return name
