"""Rebuilt tables that are on the way to their places while the names of a warehouse are looked at."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from hudi_engine.errors import HudiError, WriteConflictError
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.planned import is_own_folder, plan_wish

logger = logging.getLogger(__name__)

_WAIT_S = 75.0
"""Longer than a process that runs and is silent is watched before its work is taken over."""
_PAUSE_S = 0.5
_SIDE_FOLDER = re.compile(r"^\.(.+)\.(?:rebuild|replaced|removed)-[0-9a-f]+$")


def rebuilt_beside(statuses: Sequence[FileStatus]) -> set[str]:
    """Return the tables of a schema's folder next to which a folder of a rebuild or removal is."""
    matches = (_SIDE_FOLDER.match(each.name) for each in statuses if each.is_dir)
    return {match[1] for match in matches if match is not None}


class Settling:
    """One look at the names of a warehouse, which waits little more than a minute for all tables together.

    It finishes the rebuilds that were cut off, and waits for those of which another process moves the table, file by file. Names
    lead to the place of a table alone, so one that is not there yet would not be shown for as long as the session lives.

    Args:
        recover: Finishes the rebuild of the table at a base path, and raises WriteConflictError while another process does; None
            where nothing is to be changed.
        warnings: Gets what is left out, or could not be settled, one sentence each.
        in_vain: Base paths of tables for which an earlier look has waited to its end: this one does not wait for them.
    """

    def __init__(
        self,
        recover: Callable[[str], None] | None,
        warnings: list[str],
        in_vain: set[str],
        wait_s: float = _WAIT_S,
    ) -> None:
        self.warnings = warnings
        self._recover = recover
        self._in_vain = in_vain
        self._wait_s = wait_s
        self._deadline: float | None = None

    @property
    def settles(self) -> bool:
        """Whether the look changes anything."""
        return self._recover is not None

    def settle(self, places: Mapping[str, str]) -> None:
        """Finish the rebuilds of some tables, or wait for them."""
        left = dict(places)
        while True:
            moving = self._moving(left)
            waited_for = {label: places[label] for label in moving if places[label] not in self._in_vain}
            if waited_for and self._may_wait(waited_for):
                self._warn(moving, set(moving) - set(waited_for))
                left = waited_for
                time.sleep(_PAUSE_S)
                continue
            self._in_vain.update(waited_for.values())
            self._warn(moving, set(moving))
            return

    def _moving(self, places: Mapping[str, str]) -> dict[str, WriteConflictError]:
        """Finish what can be finished; return what other processes are moving."""
        found: dict[str, WriteConflictError] = {}
        for label, base in places.items():
            if self._recover is None:
                continue
            try:
                self._recover(base)
            except WriteConflictError as error:
                found[label] = error
                continue
            except (HudiError, OSError) as error:
                self.warnings.append(f"the rebuild of {label} was not tidied up: {error}")
            self._in_vain.discard(base)
        return found

    def _may_wait(self, waited_for: Mapping[str, str]) -> bool:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._wait_s
            if self._wait_s:
                logger.warning(
                    "waiting for the rebuilt %s, for at most %d s", ", ".join(waited_for), self._wait_s
                )
        return time.monotonic() < self._deadline

    def _warn(self, moving: Mapping[str, WriteConflictError], labels: set[str]) -> None:
        self.warnings += [
            f"{label} was not registered: {error}" for label, error in moving.items() if label in labels
        ]


def is_read_only(root: str) -> bool:
    """Return whether a folder of a disk must not be written to; of other stores only a write would show that."""
    if plan_wish() is not None:
        return True
    storage = open_storage(root)
    if not isinstance(storage, LocalStorage):
        return False
    return os.path.isdir(storage.base) and not os.access(storage.base, os.W_OK)


@lru_cache(maxsize=1)
def folder_of_process() -> str:
    """Return a folder that goes when this process ends, for what is derived from tables that must not be written to."""
    folder = is_own_folder(tempfile.mkdtemp(prefix="hudi-engine-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def place_beside(storage: Storage) -> Storage:
    """Return the storage for what is derived from a table that must not be written to."""
    digest = hashlib.sha256(storage.uri().encode()).hexdigest()[:24]
    return open_storage(f"{folder_of_process()}/{digest}")
