"""How far work on a table has come: files and rows that this process has written, for whoever waits for it.

Files that Spark's executors write are not counted here; Spark shows how many of their tasks are done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_lock = threading.Lock()


@dataclass(eq=False)
class Progress:
    """What one piece of work has done so far.

    Args:
        tables: Tables that a session knows already, while all of a warehouse is registered.
    """

    base: str
    did: str
    thread: int
    files: int = 0
    rows: int = 0
    tables: int = 0
    all_tables: int = 0


_under_way: list[Progress] = []


@contextmanager
def under_way(base: str, did: str) -> Iterator[Progress]:
    """Count what is written to a table until the block ends."""
    progress = Progress(base, did, threading.get_ident())
    with _lock:
        _under_way.append(progress)
    try:
        yield progress
    finally:
        with _lock:
            _under_way.remove(progress)


def note_file(base: str, rows: int) -> None:
    """Note a file of a table that is finished; nothing happens when no one counts."""
    if not _under_way:
        return
    with _lock:
        for progress in _under_way:
            if progress.base == base:
                progress.files += 1
                progress.rows += rows


def progress_of(thread: int) -> Progress | None:
    """Return the newest work that a thread has under way, None when there is none."""
    with _lock:
        return next((each for each in reversed(_under_way) if each.thread == thread), None)
