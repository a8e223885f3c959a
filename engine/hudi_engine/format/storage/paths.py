"""The one place where a path is checked to stay inside its table folder.

Every path given to a :class:`~hudi_engine.format.storage.base.Storage` is a POSIX path relative to the table's base
path. Partition values and file names come from data and from metadata written by others, so nothing reaches a
file system before it went through :func:`relative_path`.
"""

from __future__ import annotations

import re

from hudi_engine.errors import PathEscapeError

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")


def relative_path(path: str, base: str = "") -> str:
    """Return ``path`` unchanged when it stays inside the table folder."""
    if path == "":
        return path
    if path.startswith("/") or "\0" in path or _DRIVE.match(path):
        raise PathEscapeError(path, base)
    for part in path.split("/"):
        if part in ("", ".", ".."):
            raise PathEscapeError(path, base)
    return path


def join(*parts: str) -> str:
    """Join relative path parts, leaving out empty ones (a non-partitioned table has partition ``""``)."""
    return "/".join(part for part in parts if part)


def parent(path: str) -> str:
    """Return the folder of a relative path, ``""`` at the top."""
    return path.rpartition("/")[0]


def name(path: str) -> str:
    """Return the last part of a relative path."""
    return path.rpartition("/")[2]
