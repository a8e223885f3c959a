"""Owner files that tests leave for instants of writers that are elsewhere, or gone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn.owner import Owner, ProcessIdentity, heartbeat_path

DAY_S = 86_400


def write_owner(storage: Storage, instant: str, owner: Owner) -> None:
    """Write the heartbeat file of an instant."""
    storage.replace(heartbeat_path(instant), owner.to_json())


def age(storage: LocalStorage, *paths: str, seconds: float = DAY_S) -> None:
    """Make files older, by a day; all below the timeline folder when none is named."""
    chosen = paths or [each.path for each in storage.list(".hoodie", recursive=True) if not each.is_dir]
    for path in chosen:
        full = os.path.join(storage.base, path)
        old = os.stat(full).st_mtime - seconds
        os.utime(full, (old, old))


class Watch:
    """The time by which a process of this machine that is silent is watched, which stands still until it is told to go on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        patch.setattr("hudi_engine.table.txn.owner.monotonic", lambda: self._now)

    def go_on(self, seconds: float = 71) -> None:
        """Let time pass: for one beat of a minute, and what it may be late."""
        self._now += seconds


def running(process: subprocess.Popen[bytes]) -> Owner:
    """Return an owner in another process of this machine, which runs."""
    return replace(Owner.current(), process=replace(ProcessIdentity.current(), pid=process.pid, started=""))


def is_given_up(storage: Storage, path: str) -> bool:
    """Tell whether the owner that a file names has left its work to others."""
    owner = Owner.parse(storage.read(path))
    return owner is not None and owner.given_up


def wait_until(done: Callable[[], bool]) -> None:
    """Wait for what a thread does; fail after some seconds."""
    for _ in range(2000):
        if done():
            return
        time.sleep(0.01)
    raise AssertionError("it was not done in time")
