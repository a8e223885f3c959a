"""A folder in the place of a user's runtime folder, with a path short enough for the address of a Unix socket."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def runtime_folder() -> Iterator[Path]:
    """Make such a folder for a while; a server that is left in it is ended."""
    folder = Path(tempfile.mkdtemp(prefix="rt", dir="/tmp"))  # noqa: S108
    try:
        yield folder
    finally:
        for process in servers(folder):
            os.kill(process, signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)


def servers(folder: Path) -> list[int]:
    """Return the process ids of the servers that run in such a folder."""
    return [int(lock.read_text()) for lock in folder.rglob("lock") if _is_held(lock)]


def _is_held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
