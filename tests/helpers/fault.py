"""A storage that fails or dies at a chosen call, to prove that a write survives being killed anywhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from hudi_engine.errors import ConfigError
from hudi_engine.format.storage import paths
from hudi_engine.format.storage.base import TEMP_PREFIX, Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.read_only import ForwardingStorage

FAULTS = ("before", "after", "torn", "error")


class SimulatedCrash(BaseException):
    """Stands for the death of the process in tests; no ``except Exception`` catches it."""


def kill_process() -> None:
    """End this process at once, as SIGKILL would."""
    os._exit(137)


def raise_crash() -> None:
    """Raise SimulatedCrash: a crash that a test in the same process can look back at."""
    raise SimulatedCrash("the storage stopped this writer on purpose")


@dataclass(frozen=True)
class FaultPlan:
    """When and how to fail.

    Args:
        call: Number of the mutating call, counted from 1 in the order they begin.
        when: ``before`` or ``after`` the call, ``torn`` in the middle of it, or ``error``: the call raises
            and does nothing, and the process lives on.
        error: Error that an ``error`` fault raises.
        crash: Ends the process for the other faults.
    """

    call: int
    when: str
    error: type[Exception] = OSError
    crash: Callable[[], None] = kill_process

    def __post_init__(self) -> None:
        if self.when not in FAULTS or self.call < 1:
            raise ConfigError(
                f"fault {self.when!r} at call {self.call} is unknown; legal values: {', '.join(FAULTS)} at call "
                "1 or later"
            )


class FaultInjectingStorage(ForwardingStorage):
    """Passes everything on to another storage and counts the calls that change something.

    A torn call leaves what a killed process would leave on that storage: half of a temporary file, or half
    of a folder deleted. After a crash every further change is refused, since the dead do not clean up.
    Copies sent to other processes count on their own.

    Attributes:
        calls: (method, path) of every mutating call so far.
    """

    def __init__(self, storage: Storage, plan: FaultPlan | None = None) -> None:
        super().__init__(storage)
        self.calls: list[tuple[str, str]] = []
        self._plan = plan
        self._crashed = False
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def create(self, path: str, data: bytes) -> None:
        with self._fault("create", path, lambda: self._leave_half(path, data)):
            self._storage.create(path, data)

    def replace(self, path: str, data: bytes) -> None:
        with self._fault("replace", path, lambda: self._leave_half(path, data)):
            self._storage.replace(path, data)

    def take_over(self, path: str, before: bytes, data: bytes) -> None:
        with self._fault("take_over", path):
            self._storage.take_over(path, before, data)

    def refresh(self, path: str, data: bytes) -> None:
        with self._fault("refresh", path):
            self._storage.refresh(path, data)

    def set_modified(self, path: str, modified_ms: int) -> None:
        with self._fault("set_modified", path):
            self._storage.set_modified(path, modified_ms)

    def delete(self, path: str) -> bool:
        with self._fault("delete", path):
            return self._storage.delete(path)

    def delete_tree(self, path: str) -> None:
        with self._fault("delete_tree", path, lambda: self._delete_half(path)):
            self._storage.delete_tree(path)

    def rename(self, source: str, target: str) -> None:
        with self._fault("rename", source):
            self._storage.rename(source, target)

    def make_dirs(self, path: str) -> None:
        with self._fault("make_dirs", path):
            self._storage.make_dirs(path)

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        return self._output(path, before_publish)

    @contextmanager
    def _output(self, path: str, before_publish: Callable[[], None] | None) -> Iterator[BinaryIO]:
        fault = self._count("open_output", path)
        self._act(fault, "before")

        def publish() -> None:
            if fault is not None and fault.when == "torn":
                self._leave_half(path, b"PAR1" * 8)
                self._act(fault, "torn")
            self._refuse_after_crash()
            if before_publish is not None:
                before_publish()

        with self._storage.open_output(path, before_publish=publish) as sink:
            yield sink
        self._act(fault, "after")

    @contextmanager
    def _fault(self, method: str, path: str, tear: Callable[[], None] | None = None) -> Iterator[None]:
        """Run one mutating call, and the fault that is planned for it."""
        fault = self._count(method, path)
        self._act(fault, "before")
        if fault is not None and fault.when == "torn":
            if tear is not None:
                tear()
            self._act(fault, "torn")
        yield
        self._act(fault, "after")

    def _count(self, method: str, path: str) -> FaultPlan | None:
        """Note a call and return the plan if this is the call it names."""
        with self._lock:
            self._refuse_after_crash()
            self.calls.append((method, path))
            plan = self._plan if self._plan is not None and self._plan.call == len(self.calls) else None
        if plan is not None and plan.when == "error":
            raise plan.error(f"injected failure of {method} of {path!r}")
        return plan

    def _act(self, fault: FaultPlan | None, moment: str) -> None:
        if fault is not None and fault.when == moment:
            self._crashed = True
            fault.crash()

    def _refuse_after_crash(self) -> None:
        if self._crashed and threading.current_thread().name.startswith("give up "):
            raise FileNotFoundError(self.base)  # a thread of the dead ends without a word
        if self._crashed:
            raise SimulatedCrash("this writer is dead already and cannot change anything")

    def _leave_half(self, path: str, data: bytes) -> None:
        leftover = paths.join(paths.parent(path), f"{TEMP_PREFIX}torn-{len(self.calls)}")
        self._storage.replace(leftover, data[: len(data) // 2])

    def _delete_half(self, path: str) -> None:
        files = [status.path for status in self._storage.list(path, recursive=True) if not status.is_dir]
        for file in files[: (len(files) + 1) // 2]:
            self._storage.delete(file)


class FailingStorage(FaultInjectingStorage):
    """Fails at one mutating call, or from one on.

    Args:
        storage: Where the other calls go.
        call: Number of the first call to fail, counted from 1.
        number: The error.
        lasting: Whether all later calls fail too, as on a full disk.
        late: Whether the call does its work before it fails, as when an answer is lost.
    """

    def __init__(
        self, storage: Storage, call: int, number: int, *, lasting: bool = False, late: bool = False
    ) -> None:
        super().__init__(storage)
        self._first = call
        self._number = number
        self._lasting = lasting
        self._late = late

    @contextmanager
    def _fault(self, method: str, path: str, tear: Callable[[], None] | None = None) -> Iterator[None]:
        call = len(self.calls) + 1
        fails = call == self._first or (self._lasting and call > self._first)
        error = OSError(self._number, os.strerror(self._number), path)
        if fails and not self._late:
            self.calls.append((method, path))
            raise error
        with super()._fault(method, path, tear):
            yield
        if fails:
            raise error


class Interrupted(LocalStorage):
    """Does something else before it creates or deletes a file; whoever is killed by that changes nothing any more."""

    def __init__(self, base: str, call: str, suffix: str, act: Callable[[], None] = raise_crash) -> None:
        super().__init__(base)
        self._at, self._act = (call, suffix), act
        self._done = self._dead = False

    def _before(self, call: str, path: str) -> None:
        if self._dead:
            raise_crash()
        if not self._done and call == self._at[0] and path.endswith(self._at[1]):
            self._done = self._dead = True
            self._act()
            self._dead = False

    def create(self, path: str, data: bytes) -> None:
        self._before("create", path)
        super().create(path, data)

    def delete(self, path: str) -> bool:
        self._before("delete", path)
        return super().delete(path)
