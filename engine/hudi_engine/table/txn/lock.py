"""The table's lock: one holder at a time, in this process and among all.

The file is ``.hoodie/lock``, created exclusively, as Apache Hudi's file system lock provider does by default,
so both exclude each other. It is held while an instant is started, rolled back or completed, never while data
is written. The lock of a holder that is provably gone is broken: same machine and no such process, or no
beat.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

from hudi_engine.errors import StorageError, WriteConflictError
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.txn.owner import (
    LOCK_FILES,
    LOCK_PATH,
    Beating,
    Owner,
    OwnerState,
    owner_in,
    read_with_time,
    register,
    storage_now_ms,
    unregister,
)

logger = logging.getLogger(__name__)

_BREAK_KEPT_MS = 3_600_000
_SILENT_SECONDS = 2.0
"""After so many seconds of waiting it is said once for whom."""


@dataclass
class _Local:
    """The lock of one base path among the threads of this process."""

    mutex: threading.Lock = field(default_factory=threading.Lock)
    holder: int | None = None
    depth: int = 0
    lock: TableLock | None = None
    """The outermost lock of the holder, whose file it is."""


_locals: dict[str, _Local] = {}
_locals_guard = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locals.clear)


class TableLock:
    """Context manager that holds the table's lock; the same thread may enter again.

    Args:
        expire_ms: Age in ms after which the lock file of another program, which names no process, is broken;
            0 never, as ``hoodie.write.lock.filesystem.expire``.
        single_writer: The caller vouches that no other process writes; then a storage that cannot create a file
            exclusively will do, and the file only informs others.
    """

    def __init__(
        self, storage: Storage, wait_ms: int = 60_000, expire_ms: int = 0, *, single_writer: bool = False
    ) -> None:
        self._storage = storage
        self._wait_ms = wait_ms
        self._expire_ms = expire_ms
        self._single_writer = single_writer
        self._owner = Owner.current()
        self._beating: Beating | None = None
        self._is_watching = False
        with _locals_guard:
            self._local = _locals.setdefault(storage.base, _Local())

    def __enter__(self) -> TableLock:
        deadline = time.monotonic() + self._wait_ms / 1000
        if self._local.holder == threading.get_ident():
            self._local.depth += 1
            return self
        if not self._acquire_mutex():
            raise WriteConflictError(
                f"the lock of {self._storage.base!r} was not free within {self._wait_ms} ms: another thread of this process "
                "holds it. Try again, or raise hoodie.write.lock.wait_time_ms"
            )
        try:
            self._acquire_file(deadline)
        except BaseException as error:
            try:
                # A create that was cut off, or whose answer was lost, may have made the file.
                if not isinstance(error, (WriteConflictError, PermissionError)):
                    self._give_up_file()
            finally:
                self._leave()
            raise
        self._local.holder, self._local.depth, self._local.lock = threading.get_ident(), 1, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._local.depth -= 1
        if self._local.depth:
            return
        try:
            self._release_file()
        finally:
            self._local.holder = self._local.lock = None
            self._leave()

    def _leave(self) -> None:
        unregister(self._owner)
        self._local.mutex.release()

    def is_held(self) -> bool:
        """Return whether the lock file is still this process's own."""
        mine = self._local.lock
        return mine is not None and mine._owner.holds(self._storage, LOCK_PATH)

    def check_held(self) -> None:
        """Raise WriteConflictError unless the lock file is still this process's own."""
        if not self.is_held():
            raise WriteConflictError(
                f"the lock {LOCK_PATH} of {self._storage.base!r} was taken from this process, which stood still for so long "
                "that it counted as dead. Nothing was committed; run the write again"
            )

    def regain(self) -> None:
        """Take the lock again after it was taken from this process."""
        lost = self._local.lock
        assert lost is not None
        if lost._beating is not None:
            lost._beating.stop()
            lost._beating = None
        unregister(lost._owner)
        # Another name than before: who has the right to break the lock of that name does not lose it.
        lost._owner = Owner.current()
        try:
            lost._acquire_file(time.monotonic() + lost._wait_ms / 1000)
        except WriteConflictError as error:
            raise StorageError(str(error)) from error

    def _acquire_mutex(self) -> bool:
        wait = max(0.0, self._wait_ms / 1000)
        if self._local.mutex.acquire(timeout=min(wait, _SILENT_SECONDS)):
            return True
        if wait <= _SILENT_SECONDS:
            return False
        self._tell_waiting("another thread of this process")
        return self._local.mutex.acquire(timeout=wait - _SILENT_SECONDS)

    def _tell_waiting(self, holder: str) -> None:
        logger.warning(
            "waiting for the lock %s of %s, which %s holds, for at most %d s",
            LOCK_PATH,
            self._storage.base,
            holder,
            self._wait_ms // 1000,
        )

    def _holder(self) -> str:
        holder = owner_in(self._storage, LOCK_PATH)
        return "another program" if holder is None else str(holder)

    def _acquire_file(self, deadline: float) -> None:
        """Create the lock file, once it is free or its holder is dead."""
        if not self._single_writer:
            self._storage.require_exclusive_create("the table's lock")
        register(self._owner)
        content = self._owner.to_json(lockCreateTime=int(time.time() * 1000), lockThreadName=str(self._owner))
        self._beating = Beating(self._storage, LOCK_PATH, self._owner, content)
        pause, silent_until = 0.005, time.monotonic() + _SILENT_SECONDS
        while True:
            try:
                self._storage.create(LOCK_PATH, content)
                break
            except FileExistsError:
                if self._break_dead():
                    continue
            # what runs and is silent is waited for until it is sure to beat no more, which takes one interval
            if time.monotonic() + pause > deadline and not self._is_watching:
                raise WriteConflictError(
                    f"the lock {LOCK_PATH} of {self._storage.base!r} was not free within {self._wait_ms} ms: {self._holder()} "
                    "holds it. Try again, raise hoodie.write.lock.wait_time_ms, or remove the file if you know that its holder "
                    "has ended"
                )
            if time.monotonic() > silent_until:
                self._tell_waiting(self._holder())
                silent_until = math.inf
            time.sleep(pause)
            pause = min(pause * 2, 0.5)
        self._beating.start()

    def _release_file(self) -> None:
        """Remove the file if it is still this holder's; one that could not be removed is marked for others to break."""
        try:
            if self._beating is not None:
                self._beating.stop()
            if self._owner.holds(self._storage, LOCK_PATH):
                self._storage.remove(LOCK_PATH)
        except BaseException as error:
            self._give_up_file()
            if not isinstance(error, (OSError, StorageError)):
                raise
            logger.warning(
                "could not remove the lock of %s, the next writer will: %s", self._storage.base, error
            )

    def _give_up_file(self) -> None:
        if self._beating is not None:
            self._beating.give_up(self._local.mutex)

    def _break_dead(self) -> bool:
        """Remove the lock file of a dead holder; return whether trying again at once makes sense."""
        self._is_watching = False
        found = read_with_time(self._storage, LOCK_PATH)
        if found is None:
            return True
        content, modified_ms = found
        holder = Owner.parse(content)
        if holder is None:
            name = f"foreign-{modified_ms}"
            age_ms = storage_now_ms(self._storage) - modified_ms if self._expire_ms else 0
            dead = self._expire_ms > 0 and age_ms > self._expire_ms
        else:
            name = holder.token
            dead = self._is_dead(holder, modified_ms)
        right = self._may_break(name) if dead else None
        if right is None:
            return False
        logger.warning(
            "breaking the lock of %s: its holder %s has ended", self._storage.base, holder or "(unnamed)"
        )
        try:
            if self._storage.read(LOCK_PATH) == content:
                self._storage.remove(LOCK_PATH)
        except FileNotFoundError:
            pass
        except BaseException:
            self._pass_on(right)
            raise
        self._sweep_breaks()
        return True

    def _may_break(self, name: str) -> str | None:
        """Win the right to break the lock called ``name``: of all that see it dead, exactly one removes it.

        Without this, a slow second breaker could remove the lock that the first one holds by then.

        Returns:
            The file of the right, None when another has it.
        """
        generation = 0
        while True:
            path = f"{LOCK_FILES}/broken-{name}-{generation}"
            try:
                self._storage.create(path, self._owner.to_json())
                return path
            except FileExistsError:
                if not self._is_dead_breaker(path):
                    return None
            except BaseException:
                self._pass_on(path)
                raise
            generation += 1

    def _pass_on(self, right: str) -> None:
        """Leave a right that was won, or may have been, to the next process; the lock is unchanged."""
        Beating(self._storage, right, self._owner, self._owner.to_json()).give_up()

    def _is_dead_breaker(self, path: str) -> bool:
        """Return whether the one that won the right to break a lock died before it had done so."""
        found = read_with_time(self._storage, path)
        if found is None:
            return False
        breaker = Owner.parse(found[0])
        return breaker is None or self._is_dead(breaker, found[1])

    def _is_dead(self, owner: Owner, modified_ms: int) -> bool:
        state = owner.state_in(self._storage, modified_ms)
        self._is_watching = state is OwnerState.ALIVE and owner.is_waited_for(modified_ms)
        return state is OwnerState.DEAD

    def _sweep_breaks(self) -> None:
        """Remove old permissions to break locks; the fresh ones still hold back slow breakers."""
        found = self._storage.list(LOCK_FILES)
        newest_ms = max((status.modified_ms for status in found), default=0)
        for status in found:
            if newest_ms - status.modified_ms > _BREAK_KEPT_MS:
                self._storage.remove(status.path)
