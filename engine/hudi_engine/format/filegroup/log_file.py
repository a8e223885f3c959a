"""Log files: ``.<file id>_<instant>.log.<version>_<write token>[.cdc]`` (Hudi file layout).

The instant is the base instant of the file slice in table version 6, and the deltacommit that wrote the file
in versions 8 and 9. Files that end in ``.cdc`` hold change data, not rows of the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from hudi_engine.errors import DataError
from hudi_engine.format.filegroup.base_file import size_and_time
from hudi_engine.format.storage.base import FileStatus

_NAME = re.compile(r"^\.([^/]+)_(\d+)\.log\.(\d+)(?:_(\d+-\d+-\d+))?(\.cdc)?\Z", re.ASCII)


class Written(NamedTuple):
    """A stretch of a log file that one completed commit wrote."""

    start: int
    end: int
    instant: str


@dataclass(frozen=True, slots=True)
class LogFile:
    """Blocks of changes to one file group.

    Args:
        version: Counts from 1 within (file id, instant); compared as a number.
        write_token: ``<task>-<stage>-<attempt>``; ``""`` in names of very old writers.
        written: What completed commits at hand wrote to it; its readers check that it is there.
    """

    partition: str
    file_id: str
    instant: str
    version: int
    write_token: str = ""
    is_cdc: bool = False
    size: int = 0
    modified_ms: int = 0
    written: tuple[Written, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        """File name without folder."""
        token = f"_{self.write_token}" if self.write_token else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{'.cdc' if self.is_cdc else ''}"

    @property
    def path(self) -> str:
        """Path relative to the table's base path."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def sort_key(self) -> tuple[str, int, str]:
        """Order of log files within a slice."""
        return self.instant, self.version, self.write_token


def parse_log_file(path: str, partition: str, status: FileStatus | None = None) -> LogFile | None:
    """Parse the name of a log file; None for every other file. The arguments are those of `parse_base_file`."""
    match = _NAME.match(path.rpartition("/")[2])
    if match is None:
        return None
    token, is_cdc = match[4] or "", match[5] is not None
    return LogFile(partition, match[1], match[2], int(match[3]), token, is_cdc, *size_and_time(status))


def log_file_name(file_id: str, instant: str, version: int, write_token: str) -> str:
    """Return the name of a log file."""
    name = f".{file_id}_{instant}.log.{version}_{write_token}"
    parsed = parse_log_file(name, "")
    if parsed is None or "_" in file_id or version < 1 or parsed.write_token != write_token:
        raise DataError(
            f"{name!r} is no log file name: a file id has no '_' or '/', an instant is digits, a version is "
            "1 or more, and a write token is three numbers joined by '-'"
        )
    return name
