"""What this process and those it started use: CPU seconds, and the most memory of each kind of process in a step."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DRIVER, JAVA, WORKER = "driver", "java", "worker"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_EVERY_S = 0.2


@dataclass(frozen=True)
class _Process:
    """One process as /proc tells it."""

    pid: int
    parent: int
    name: str
    cpu_s: float


def cpu_seconds() -> float:
    """CPU seconds of this process, the JVM and the Python workers so far; 0 where there is no /proc."""
    return sum(each.cpu_s for each in _family())


@contextmanager
def peaks() -> Iterator[dict[str, float]]:
    """Measure memory while the block runs.

    Yields:
        MiB that the largest process of each kind had resident: ``driver`` (this process), ``java``, ``worker`` (one Python
        worker). Filled when the block ends; empty where there is no /proc.
    """
    found: dict[str, float] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY_S):
            for each in _family():
                kind = _kind(each)
                if kind:
                    found[kind] = max(found.get(kind, 0.0), _resident(each.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        over.set()
        watcher.join()


def _kind(process: _Process) -> str | None:
    """Return what a process is; None for a thread of Java that is about to start a program and still has all its memory."""
    if process.pid == os.getpid():
        return DRIVER
    return JAVA if process.name == "java" else WORKER if process.name.startswith("python") else None


def _resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20
    except (OSError, IndexError):
        return 0.0


def _family() -> list[_Process]:
    """Return this process and all that descend from it."""
    known: dict[int, _Process] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        fields, pid = rest.split(), int(stat.parent.name)
        cpu = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        known[pid] = _Process(pid, int(fields[1]), name.partition("(")[2], cpu)
    return [each for each in known.values() if _descends(each.pid, known)]


def _descends(pid: int, known: dict[int, _Process]) -> bool:
    while pid in known and pid != os.getpid():
        pid = known[pid].parent
    return pid == os.getpid()
