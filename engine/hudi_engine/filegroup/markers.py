"""Markers: what a write announced before it created a file, kept in ``.hoodie/.temp/<instant>``.

Direct markers are one empty file each. A timeline server collects them as lines of ``MARKERS0``,
``MARKERS1``, …, and ``MARKERS.type`` says which kind it is; both kinds are read, direct ones are written
(Hudi marker mechanism).
"""

from __future__ import annotations

import re
from contextlib import suppress

from hudi_engine.config.properties_file import HOODIE_FOLDER
from hudi_engine.errors import TimelineError
from hudi_engine.storage.base import TEMP_PREFIX, Storage
from hudi_engine.storage.paths import join

IO_TYPES = ("CREATE", "MERGE", "APPEND")

_TEMP_FOLDER = f"{HOODIE_FOLDER}/.temp"
_COLLECTED = re.compile(r"^MARKERS\d+$")
_MARKER = re.compile(rf"^(.+)\.marker\.({'|'.join(IO_TYPES)})$")


def marker_folder(instant: str) -> str:
    """Return the folder of an instant's markers, relative to the base path.

    Raises:
        TimelineError: when ``instant`` is not made of digits.
    """
    if not instant.isascii() or not instant.isdigit():
        raise TimelineError(f"{instant!r} is no instant time: it must be digits only")
    return f"{_TEMP_FOLDER}/{instant}"


def marker_path(instant: str, partition: str, file_name: str, io_type: str) -> str:
    """Return the path of a direct marker.

    Args:
        instant: Instant that writes the file.
        partition: Partition path, ``""`` for a non-partitioned table.
        file_name: Name of the data file.
        io_type: ``CREATE`` (first file of a group), ``MERGE`` (new version of a base file) or ``APPEND``
            (log file).

    Raises:
        TimelineError: for another ``io_type`` or an instant that is not digits.
    """
    if io_type not in IO_TYPES:
        raise TimelineError(f"marker type {io_type!r} is unknown; legal values: {', '.join(IO_TYPES)}")
    return join(marker_folder(instant), partition, f"{file_name}.marker.{io_type}")


def write_marker(storage: Storage, instant: str, partition: str, file_name: str, io_type: str) -> None:
    """Announce a data file before it is created; announcing it twice is fine. Arguments as marker_path()."""
    with suppress(FileExistsError):
        storage.create(marker_path(instant, partition, file_name, io_type), b"")


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


def delete_markers(storage: Storage, instant: str) -> None:
    """Remove an instant's marker folder; nothing happens when there is none."""
    storage.delete_tree(marker_folder(instant))
