"""Where the tests write: into memory, when the machine has the room."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 * 1024**3


@contextmanager
def scratch() -> Iterator[dict[str, str]]:
    """Give the variables that put pytest's temporary folders into memory; none where that has less than 4 GiB to give.

    Tables of tests are small and many, and each commit waits for the disk several times.
    """
    if not _has_room(_MEMORY):
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="dbt-hudi-tests-", dir=_MEMORY)
    try:
        yield {"PYTEST_DEBUG_TEMPROOT": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_room(folder: Path) -> bool:
    """Whether a folder takes files, programs among them, and has room for what a run of all tests leaves."""
    if not hasattr(os, "statvfs") or not os.access(folder, os.W_OK):
        return False
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize >= _ROOM_BYTES and not status.f_flag & os.ST_NOEXEC
