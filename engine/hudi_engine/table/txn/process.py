"""Which process on which machine this is, and whether another one still lives.

A process is told apart by machine, process number and start time, so that a number that the system gave to a
newer process is not taken for the old one.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessIdentity:
    """A process.

    Args:
        machine: Host name, boot and process number space; processes with equal text can see each other.
        started: Start time as the kernel tells it; ``""`` where it does not tell.
    """

    machine: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> ProcessIdentity:
        """Return the identity of this process."""
        pid = os.getpid()
        return cls(_machine(), pid, _start_time(pid) or "")

    def is_here(self) -> bool:
        """Return whether it runs, or ran, where this process can see it."""
        return self.machine == _machine()

    def is_running(self) -> bool | None:
        """Return whether the process still runs; None when that cannot be told from here."""
        if not self.is_here():
            return None
        if (_PROC / str(self.pid) / "stat").exists():
            started = _start_time(self.pid)
            return started is not None and (self.started in ("", started))
        # Without /proc, or where it hides the processes of others (hidepid), a signal still finds out.
        if sys.platform == "win32":
            return None
        return None if _answers_signal(self.pid) else False

    def stands_still(self) -> bool:
        """Return whether a process that runs here was stopped, as by Ctrl-Z or SIGSTOP, and so can give no sign of life."""
        return (_stat(self.pid) or [""])[0] in ("T", "t")


def slept_ms() -> int:
    """Return how long this machine has slept since it was started, as a laptop that is shut does; 0 where nothing tells it."""
    if sys.platform == "win32":
        return 0
    with_sleep = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return max(0, int((with_sleep - time.monotonic()) * 1000))


def _machine() -> str:
    return "/".join(
        (socket.gethostname(), _first_line(_PROC / "sys/kernel/random/boot_id"), _pid_namespace())
    )


def _pid_namespace() -> str:
    try:
        return os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return ""


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _start_time(pid: int) -> str | None:
    """Return the start time of a running process, None when there is none or it has ended but was not reaped."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def _stat(pid: int) -> list[str] | None:
    """Return what the kernel tells of a process from its state on, None when there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if len(fields) < 20 else fields


def _answers_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
