"""Which process works on an instant, and whether it still does.

Every open instant has a file ``.hoodie/.heartbeat/<instant>`` (Hudi table format, heartbeats): its modification time is the
beat, as for Apache Hudi, and its content names the process, which Apache Hudi ignores. Whether a process on this machine has ended
is looked up, and this one knows its own work; of any other one the beat decides, on this machine after more patience, and of a
process that runs here not at one look. Apache Hudi and Flink write no heartbeat file by default, so the age of an instant's files
is the only sign that their writer may be at work; it counts as long as a heartbeat would.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from time import monotonic

from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.markers import marker_folder
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.format.timeline.writer import TimelineWriter


class Liveness:
    """Judges the owners of pending instants by one clock, the storage's."""

    def __init__(self, storage: Storage, config: TableConfig, options: Options) -> None:
        self._storage = storage
        self._config = config
        self._interval_ms = options[WriterOptions.HEARTBEAT_INTERVAL]
        self._misses = options[WriterOptions.TOLERABLE_MISSES]

    @cached_property
    def now_ms(self) -> int:
        """The storage's time, epoch ms: that of the lock, if there is one, was just made by it."""
        lock = self._storage.stat(LOCK_PATH)
        return lock.modified_ms if lock is not None else storage_now_ms(self._storage)

    def of_time(self, instant: str) -> OwnerState:
        """Judge the owner file of an instant by its time."""
        return owner_state(
            self._storage,
            instant,
            interval_ms=self._interval_ms,
            tolerable_misses=self._misses,
            now_ms=self.now_ms,
        )

    def of(self, instant: Instant) -> OwnerState:
        """Judge a pending instant; ``UNNAMED`` when it has no owner file and is young."""
        state = self.of_time(instant.requested_time)
        if state is OwnerState.UNKNOWN and self._age_ms(instant) <= self._interval_ms * self._misses:
            return OwnerState.UNNAMED
        return state

    def is_at_work(self, instant: Instant) -> bool:
        """Return whether the owner of a pending instant lives, or may live."""
        return self.of(instant) in (OwnerState.ALIVE, OwnerState.UNNAMED)

    def _age_ms(self, instant: Instant) -> int:
        """Return how long ago the newest timeline file or marker of an instant was made."""
        paths = [
            TimelineWriter(self._storage, self._config).path(instant.requested_time, instant.action, state)
            for state in (State.REQUESTED, State.INFLIGHT)
        ]
        found = [self._storage.stat(path) for path in paths]
        found += self._storage.list(marker_folder(instant.requested_time), recursive=True)
        made = [each.modified_ms for each in found if each is not None and not each.is_dir]
        return self.now_ms - max(made, default=0)


_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessIdentity:
    """A process.

    Args:
        machine: Host name, boot and process number space; processes with equal text can see each other.
        started: Start time by the kernel; ``""`` if it is not known.
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
        """Return whether the process still runs; None when that is not known from here."""
        if not self.is_here():
            return None
        if (_PROC / str(self.pid) / "stat").exists():
            started = _start_time(self.pid)
            return started is not None and (self.started in ("", started))
        # Without /proc, or where it hides the processes of others (hidepid), a signal still finds out.
        if sys.platform == "win32":
            return None
        return None if _answers_signal(self.pid) else False

    def is_stopped(self) -> bool:
        """Return whether it runs here and was stopped, as by Ctrl-Z or SIGSTOP, and so can give no sign of life."""
        return (_stat(self.pid) or [""])[0] in ("T", "t")


def slept_ms() -> int:
    """Return how long this machine has slept since it was started, as a closed laptop does; 0 if that is not known."""
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
    """Return the fields of a process in /proc from its state on, None when there is none."""
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


logger = logging.getLogger(__name__)

HEARTBEAT_FOLDER = ".hoodie/.heartbeat"
LOCK_PATH = ".hoodie/lock"
LOCK_FILES = ".hoodie/.locks"
"""Folder of what is there for a moment: who may break the lock, and the storage's time."""
NEAR_MS = 600_000
"""How much longer than one elsewhere a running process of this machine may be silent."""

_live_tokens: set[str] = set()
"""Owners whose work continues in this process: an instant of this process that is not here was given up."""


class OwnerState(str, Enum):
    """What is known about the writer of an instant."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"
    """There is no heartbeat file."""
    UNNAMED = "unnamed"
    """There is no heartbeat file, and the instant is so young that its writer may be at work."""


@dataclass(frozen=True)
class Owner:
    """The writer of an instant or the holder of a lock.

    Args:
        given_up: Whether the owner has left its work to others, though its process lives on.
    """

    process: ProcessIdentity
    token: str
    interval_ms: int
    tolerable_misses: int
    given_up: bool = False

    @classmethod
    def current(cls, interval_ms: int = 60_000, tolerable_misses: int = 2) -> Owner:
        """Return a new owner in this process."""
        return cls(ProcessIdentity.current(), uuid.uuid4().hex, interval_ms, tolerable_misses)

    @classmethod
    def parse(cls, data: bytes) -> Owner | None:
        """Return the owner a file names, None for a file of another writer or a torn one."""
        try:
            raw = json.loads(data)
            process = ProcessIdentity(
                str(raw["process"]["machine"]), int(raw["process"]["pid"]), str(raw["process"]["started"])
            )
            return cls(
                process,
                str(raw["token"]),
                int(raw["interval_ms"]),
                int(raw["tolerable_misses"]),
                bool(raw.get("given_up")),
            )
        except (ValueError, KeyError, TypeError):
            return None

    def to_json(self, **more: object) -> bytes:
        """Return the file content; ``more`` adds entries for people."""
        return json.dumps({**asdict(self), **more}, sort_keys=True).encode()

    def state(self, modified_ms: int, now_ms: int, *, beats: bool = True) -> OwnerState:
        """Judge whether the owner lives; a process that runs here and is silent counts as dead at a later look only.

        Args:
            beats: Whether the file is kept fresh, so that a beat may be waited for.
        """
        known = self._known_state()
        if known is not None:
            return known
        state = self._state_by_beat(modified_ms, now_ms)
        if state is OwnerState.DEAD and beats and self.process.is_running():
            is_over = heartbeat_expired(self.token, modified_ms, self.interval_ms)
            return OwnerState.DEAD if is_over else OwnerState.ALIVE
        return state

    def state_in(self, storage: Storage, modified_ms: int, *, beats: bool = True) -> OwnerState:
        """Judge whether the owner lives; the storage's clock is read only if nothing nearer decides."""
        known = self._known_state()
        if known is None and self.process.is_here():
            # a clock of this machine that is behind makes others wait, and with one that is ahead the storage's is read
            near = self._state_by_beat(modified_ms, int(time.time() * 1000))
            known = near if near is OwnerState.ALIVE else None
        if known is None and self.is_waited_for(modified_ms):
            known = OwnerState.ALIVE
        return known or self.state(modified_ms, storage_now_ms(storage), beats=beats)

    def is_waited_for(self, modified_ms: int) -> bool:
        """Return whether it was judged to be alive only because another beat may still come."""
        is_watched = (self.token, modified_ms) in _since
        return is_watched and not heartbeat_expired(self.token, modified_ms, self.interval_ms)

    def _state_by_beat(self, modified_ms: int, now_ms: int) -> OwnerState:
        # A process that works beats, also in a machine that has just woken up; what ended unheard in it does not.
        patience_ms = NEAR_MS + slept_ms() if self.process.is_here() else 0
        return _state_by_age(modified_ms, now_ms - patience_ms, self.interval_ms, self.tolerable_misses)

    def _known_state(self) -> OwnerState | None:
        """Return what is certain without a look at the beat."""
        if self.given_up:
            return OwnerState.DEAD
        running = self.process.is_running()
        if running and self.process == ProcessIdentity.current():
            return OwnerState.ALIVE if self.token in _live_tokens else OwnerState.DEAD
        if running is False:
            return OwnerState.DEAD
        return OwnerState.ALIVE if running and self.process.is_stopped() else None

    def holds(self, storage: Storage, path: str) -> bool:
        """Return whether a file names this owner; False when it is not there."""
        found = owner_in(storage, path)
        return found is not None and found.token == self.token

    def __str__(self) -> str:
        return f"process {self.process.pid} on {self.process.machine.partition('/')[0]}"


def owner_in(storage: Storage, path: str) -> Owner | None:
    """Return the owner that a file names, None without one."""
    try:
        return Owner.parse(storage.read(path))
    except FileNotFoundError:
        return None


def heartbeat_path(instant: str) -> str:
    """Return the path of an instant's heartbeat file."""
    return f"{HEARTBEAT_FOLDER}/{instant}"


def owner_state(
    storage: Storage, instant: str, *, interval_ms: int, tolerable_misses: int, now_ms: int
) -> OwnerState:
    """Return whether the writer of an instant lives.

    Args:
        interval_ms: Milliseconds between two beats of a writer whose file does not say it.
    """
    found = read_with_time(storage, heartbeat_path(instant))
    if found is None:
        return OwnerState.UNKNOWN
    content, modified_ms = found
    owner = Owner.parse(content)
    if owner is not None:
        return owner.state(modified_ms, now_ms)
    return _state_by_age(modified_ms, now_ms, interval_ms, tolerable_misses)


def read_with_time(storage: Storage, path: str) -> tuple[bytes, int] | None:
    """Return the content of a file that others replace, and its modification time in epoch ms; None when there is none.

    Both are of one file: by the time of the one before it an owner that has just begun would count as dead.
    """
    status = storage.stat(path)
    while status is not None and not status.is_dir:
        try:
            content = storage.read(path)
        except FileNotFoundError:
            return None
        before, status = status, storage.stat(path)
        if status is not None and status.modified_ms == before.modified_ms:
            return content, status.modified_ms
    return None


def register(owner: Owner) -> None:
    """Say that ``owner`` works in this process from now on."""
    _live_tokens.add(owner.token)


@contextmanager
def at_work(owner: Owner) -> Iterator[None]:
    """Have an owner count as working in this process for a block."""
    register(owner)
    try:
        yield
    finally:
        unregister(owner)


def unregister(owner: Owner) -> None:
    """Say that ``owner`` works no longer; what it left behind may be rolled back by anybody."""
    _live_tokens.discard(owner.token)


def _state_by_age(modified_ms: int, now_ms: int, interval_ms: int, tolerable_misses: int) -> OwnerState:
    return OwnerState.DEAD if now_ms - modified_ms > interval_ms * tolerable_misses else OwnerState.ALIVE


class Beating:
    """Keeps one file's modification time fresh from a thread until stopped."""

    def __init__(self, storage: Storage, path: str, owner: Owner, content: bytes) -> None:
        self._storage = storage
        self._path = path
        self._owner = owner
        self._content = content
        self._stopped = threading.Event()
        self._busy = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"beat {path}", daemon=True)

    def start(self) -> None:
        """Start beating; the first beat comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; no beat is written after the return."""
        self._stopped.set()
        with self._busy:
            pass

    def beat(self) -> bool:
        """Write one beat; return False when the file is gone or belongs to another owner by now.

        A beat changes no content where the storage can do without: a file that another owner takes between
        look and beat stays that owner's.
        """
        with self._busy:
            if self._stopped.is_set():
                return False
            try:
                if not self._owner.holds(self._storage, self._path):
                    return False
                self._storage.refresh(self._path, self._content)
            except FileNotFoundError:
                return False
            return True

    def give_up(self, guard: AbstractContextManager[object] | None = None) -> None:
        """Stop, and mark the file as left to others, again and again until the storage takes it."""
        marked = False
        try:
            self.stop()
            marked = self._mark()
        finally:
            if not marked:
                later = threading.Thread(
                    target=self._mark_later,
                    args=(guard or nullcontext(),),
                    name=f"give up {self._path}",
                    daemon=True,
                )
                later.start()

    def _mark(self) -> bool:
        given_up = json.dumps({**json.loads(self._content), "given_up": True}).encode()
        try:
            self._storage.take_over(self._path, self._content, given_up)
        except FileNotFoundError:
            return True
        except Exception as error:  # whatever failed now may work later
            logger.warning("could not mark %s as given up, trying again: %s", self._path, error)
            return False
        return True

    def _mark_later(self, guard: AbstractContextManager[object]) -> None:
        while True:
            with guard:
                if self._mark():
                    return
            time.sleep(self._owner.interval_ms / 1000)

    def _run(self) -> None:
        while not self._stopped.wait(self._owner.interval_ms / 1000):
            try:
                if not self.beat():
                    return
            except Exception as error:  # a missed beat is tolerable, a dead thread is not
                logger.warning("could not refresh %s: %s", self._path, error)


def storage_now_ms(storage: Storage) -> int:
    """Return the time by the storage's clock, in epoch ms.

    Beats are modification times, so ages are taken by the clock that made them and not by this machine's.
    """
    path = f"{LOCK_FILES}/now-{uuid.uuid4().hex}"
    storage.create(path, b"")
    try:
        status = storage.stat(path)
        return status.modified_ms if status is not None else int(time.time() * 1000)
    finally:
        storage.remove(path)


_MARGIN_S = 10.0
"""How much later than it is due a beat may come, as on a busy machine or a slow store."""
_since: dict[tuple[str, int], float] = {}
"""When a beat, by its owner's token and its time, was first seen to be old."""


def heartbeat_expired(token: str, beat_ms: int, interval_ms: int) -> bool:
    """Return whether an old beat has been watched for so long that another one would have come; the first look begins that."""
    begun = _since.setdefault((token, beat_ms), monotonic())
    return monotonic() - begun > interval_ms / 1000 + _MARGIN_S
