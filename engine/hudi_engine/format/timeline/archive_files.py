"""The files of the layout 1 archive, ``.commits_.archive.N_W-T-W``: the higher N, the newer the entries.

A file is written whole, so a killed writer leaves either all of its entries or none (Hudi table format,
archived timeline).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.archive_log import read_archive_log

_NAME = re.compile(r"^\.commits_\.archive\.(\d+)(?:_[0-9-]+)?$")
_WRITE_TOKEN = "1-0-1"

EntryKey = tuple[str, str, str]
"""(requested time, action, state) of an entry: what it is known by."""


@dataclass(frozen=True, order=True)
class ArchiveFile:
    """One file of the archive."""

    number: int
    path: str
    size: int


def list_archive_files(storage: Storage, folder: str) -> list[ArchiveFile]:
    """Return the files of an archive, oldest first; none when nothing was archived."""
    found = []
    for status in storage.list(folder):
        match = _NAME.match(status.name)
        if match is not None and not status.is_dir:
            found.append(ArchiveFile(int(match[1]), status.path, status.size))
    return sorted(found)


def archive_file_path(folder: str, number: int) -> str:
    """Return the path of the file with this number, as this engine writes it."""
    return f"{folder}/.commits_.archive.{number}_{_WRITE_TOKEN}"


def create_archive_file(storage: Storage, folder: str, number: int, data: bytes) -> str:
    """Write a file with the first free number from ``number`` on; return its path."""
    while True:
        path = archive_file_path(folder, number)
        try:
            storage.create(path, data)
            return path
        except FileExistsError:
            number += 1


def entry_key(entry: Mapping[str, Any]) -> EntryKey:
    """Return what an entry is known by; entries of versions before 0.11 have no state and are completed."""
    return (
        str(entry.get("commitTime")),
        str(entry.get("actionType")),
        str(entry.get("actionState") or "COMPLETED"),
    )


def archived_since(storage: Storage, files: Iterable[ArchiveFile], oldest: str = "") -> set[EntryKey]:
    """Return the entries of the newest files, as far back as one is ``oldest`` or younger.

    A saved commit whose savepoint went is archived after younger ones, so what is asked of a bounded search must bear that
    entries are missed: those of a killed archiving are then written twice, and readers take each once.
    """
    found: set[EntryKey] = set()
    for file in reversed(list(files)):
        keys = {entry_key(entry) for entry in read_archive_log(storage.read(file.path), file.path)}
        found |= keys
        if keys and all(time < oldest for time, _, _ in keys):
            break
    return found
