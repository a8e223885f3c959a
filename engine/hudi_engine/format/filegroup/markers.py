"""Markers: what a write announced before it created a file, kept in ``.hoodie/.temp/<instant>``.

Direct markers are one empty file each. A timeline server collects them as lines of ``MARKERS0``,
``MARKERS1``, …, and ``MARKERS.type`` states which kind it is; both kinds are read (Hudi marker mechanism). Tasks
of Spark write direct ones; threads of one process, whose files are known before, collect them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from contextlib import suppress

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.properties_file import HOODIE_FOLDER
from hudi_engine.format.storage.base import TEMP_PREFIX, Storage
from hudi_engine.format.storage.paths import join

IO_TYPES = ("CREATE", "MERGE", "APPEND")

_TEMP_FOLDER = f"{HOODIE_FOLDER}/.temp"
_COLLECTED = re.compile(r"^MARKERS\d+$")
_KIND, _COLLECTING = "MARKERS.type", b"TIMELINE_SERVER_BASED"
_MARKER = re.compile(rf"^(.+)\.marker\.({'|'.join(IO_TYPES)})$")


def marker_folder(instant: str) -> str:
    """Return the folder of an instant's markers, relative to the base path."""
    if not instant.isascii() or not instant.isdigit():
        raise TimelineError(f"{instant!r} is no instant time: it must be digits only")
    return f"{_TEMP_FOLDER}/{instant}"


def marker_path(instant: str, partition: str, file_name: str, io_type: str) -> str:
    """Return the path of a direct marker.

    Args:
        io_type: ``CREATE`` (first file of a group), ``MERGE`` (new version of a base file) or ``APPEND``
            (log file).
    """
    return join(marker_folder(instant), marker_name(partition, file_name, io_type))


def marker_name(partition: str, file_name: str, io_type: str) -> str:
    """Return the path of a marker below its instant's folder, which is a line where markers are collected."""
    if io_type not in IO_TYPES:
        raise TimelineError(f"marker type {io_type!r} is unknown; legal values: {', '.join(IO_TYPES)}")
    return join(partition, f"{file_name}.marker.{io_type}")


def write_marker(storage: Storage, instant: str, partition: str, file_name: str, io_type: str) -> None:
    """Announce a data file before it is created; announcing it twice is fine. Arguments as marker_path()."""
    with suppress(FileExistsError):
        storage.create(marker_path(instant, partition, file_name, io_type), b"")


class MarkerBook:
    """The markers of a write that one process makes, collected: one file for all that is foreseen, instead of one for each."""

    def __init__(self, storage: Storage, instant: str, foreseen: Iterable[str]) -> None:
        self._storage = storage
        self._instant = instant
        self._folder = marker_folder(instant)
        self._foreseen = frozenset(foreseen)
        self._begun: set[str] = set()
        self._numbers = itertools.count()
        self._first = join(self._folder, f"MARKERS{next(self._numbers)}")

    def open(self) -> None:
        """Write down what is foreseen; files that it names may be begun from now on."""
        self._storage.create(join(self._folder, _KIND), _COLLECTING)
        self._storage.create(self._first, _lines(self._foreseen))

    def announce(self, marker: str) -> None:
        """Announce a data file before it is created; several threads may do so at once."""
        self._begun.add(marker)
        if marker not in self._foreseen:
            self._storage.create(join(self._folder, f"MARKERS{next(self._numbers)}"), _lines([marker]))

    def close(self) -> None:
        """Let go of what was foreseen and is not begun; no one announces anything after it."""
        if not self._begun:
            delete_markers(self._storage, self._instant)
        elif not self._foreseen <= self._begun:
            self._storage.replace(self._first, _lines(self._foreseen & self._begun))


def list_markers(storage: Storage, instant: str) -> list[tuple[str, str]]:
    """Return (path of the data file relative to the base path, io type) of every marker, sorted.

    A last line that a dying timeline server cut short is ignored, as its file was not begun yet.
    """
    folder = marker_folder(instant)
    found: set[tuple[str, str]] = set()
    for status in storage.list(folder, recursive=True):
        below = status.path[len(folder) + 1 :]
        if status.is_dir or status.name.startswith(TEMP_PREFIX):
            continue
        lines = [below]
        if _COLLECTED.match(below):
            lines = storage.read(status.path).decode("utf-8", "replace").split("\n")
        for line in lines:
            match = _MARKER.match(line)
            if match is not None:
                found.add((storage.checked(match[1]), match[2]))
    return sorted(found)


def _lines(markers: Iterable[str]) -> bytes:
    return "".join(f"{marker}\n" for marker in sorted(markers)).encode()


def delete_markers(storage: Storage, instant: str) -> None:
    """Remove an instant's marker folder; nothing happens when there is none."""
    storage.delete_tree(marker_folder(instant))
