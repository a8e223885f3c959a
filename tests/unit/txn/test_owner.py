"""Who owns an instant, and when an owner counts as dead."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn.open_instant import Ownership
from hudi_engine.table.txn.owner import (
    Beating,
    Liveness,
    Owner,
    OwnerState,
    ProcessIdentity,
    heartbeat_path,
    owner_state,
    register,
    slept_ms,
    storage_now_ms,
    unregister,
)
from hudi_engine.table.txn.swap import read_swap_record

from tests.helpers.owners import age, is_given_up, running, wait_until, write_owner

INSTANT = "20260101000000001"
HOUR_MS = 3_600_000


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def state_after(storage: LocalStorage, age_ms: int) -> OwnerState:
    """State when the heartbeat file is ``age_ms`` old by the storage's clock."""
    status = storage.stat(heartbeat_path(INSTANT))
    now_ms = (status.modified_ms if status else 0) + age_ms
    return owner_state(storage, INSTANT, interval_ms=60_000, tolerable_misses=2, now_ms=now_ms)


def elsewhere(owner: Owner) -> Owner:
    return dataclasses.replace(owner, process=ProcessIdentity("other-host/boot/pid:[1]", os.getpid(), "1"))


def test_an_instant_without_a_heartbeat_file_has_an_unknown_owner(storage: LocalStorage) -> None:
    assert state_after(storage, 0) is OwnerState.UNKNOWN


def test_work_of_this_process_is_alive_until_it_is_given_up(storage: LocalStorage) -> None:
    owner = Owner.current()
    write_owner(storage, INSTANT, owner)
    register(owner)
    assert state_after(storage, HOUR_MS) is OwnerState.ALIVE
    unregister(owner)
    assert state_after(storage, 0) is OwnerState.DEAD


class TakenOver(LocalStorage):
    """A dead owner's file gets the name of another one between the look at its time and that at its name."""

    def __init__(self, base: str, path: str, content: bytes) -> None:
        super().__init__(base)
        self._path: str | None = path
        self._content = content

    def read(self, path: str) -> bytes:
        if path == self._path:
            self._path = None
            self.replace(path, self._content)
        return super().read(path)


def test_an_owner_is_not_judged_by_the_beat_of_the_one_before_it(storage: LocalStorage) -> None:
    path = heartbeat_path(INSTANT)
    write_owner(storage, INSTANT, elsewhere(Owner.current()))
    now_ms = storage_now_ms(storage)
    age(storage, path)
    overtaken = TakenOver(storage.base, path, elsewhere(Owner.current()).to_json())
    found = owner_state(overtaken, INSTANT, interval_ms=60_000, tolerable_misses=2, now_ms=now_ms)
    assert found is OwnerState.ALIVE


def test_a_swap_is_not_judged_by_the_beat_of_the_process_before(storage: LocalStorage) -> None:
    storage.create("record", elsewhere(Owner.current()).to_json(new="new-1"))
    age(storage, "record")
    overtaken = TakenOver(storage.base, "record", elsewhere(Owner.current()).to_json(new="new-1"))
    record = read_swap_record(overtaken, "record", "new-")
    assert record is not None and record.is_at_work(storage)


def test_a_process_of_this_machine_that_has_ended_is_dead_at_once(storage: LocalStorage) -> None:
    script = (
        "from hudi_engine.format.storage.local import LocalStorage\n"
        "from hudi_engine.table.txn.owner import Owner\n"
        f"LocalStorage({storage.base!r}).create({heartbeat_path(INSTANT)!r}, Owner.current().to_json())\n"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert state_after(storage, 0) is OwnerState.DEAD


@pytest.fixture
def beside() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of this machine."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_of_this_machine_that_was_stopped_is_not_judged_by_its_silence(
    storage: LocalStorage, beside: subprocess.Popen[bytes]
) -> None:
    write_owner(storage, INSTANT, running(beside))
    beside.send_signal(signal.SIGSTOP)
    os.waitpid(beside.pid, os.WUNTRACED)
    assert state_after(storage, 1000 * HOUR_MS) is OwnerState.ALIVE


def test_a_young_beat_of_this_machine_needs_no_look_at_the_storages_clock(
    storage: LocalStorage, beside: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("hudi_engine.table.txn.owner.storage_now_ms")
    assert running(beside).state_in(storage, int(time.time() * 1000)) is OwnerState.ALIVE


def test_a_machine_that_never_slept_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hudi_engine.table.txn.owner.time.clock_gettime", lambda clock: time.monotonic() + 3.5
    )
    assert 3400 < slept_ms() <= 3500
    monkeypatch.setattr(
        "hudi_engine.table.txn.owner.time.clock_gettime", lambda clock: time.monotonic() - 3.5
    )
    assert slept_ms() == 0


@pytest.mark.parametrize("failing", [None, OSError, KeyboardInterrupt])
def test_what_was_not_released_is_given_up_at_the_end(
    failing: type[BaseException] | None, storage: LocalStorage
) -> None:
    """Also where the storage fails first, or the mark is interrupted."""

    class Failing(LocalStorage):
        def replace(self, path: str, data: bytes) -> None:
            if failing is not None and not failed:
                failed.append(path)
                raise failing
            super().replace(path, data)

    failed: list[str] = []
    options = resolve_options({"hoodie.client.heartbeat.interval_in_ms": 10})
    ownership = Ownership(Failing(storage.base), INSTANT, options)
    assert ownership.announce()
    with pytest.raises(KeyboardInterrupt) if failing is KeyboardInterrupt else nullcontext():
        ownership.end()
    wait_until(lambda: is_given_up(storage, heartbeat_path(INSTANT)))


def test_an_instant_whose_taking_was_interrupted_is_given_up(storage: LocalStorage) -> None:
    class Interrupting(LocalStorage):
        def replace(self, path: str, data: bytes) -> None:
            super().replace(path, data)
            if not done:
                done.append(path)
                raise KeyboardInterrupt

    done: list[str] = []
    ownership = Ownership(Interrupting(storage.base), INSTANT, resolve_options({}))
    with pytest.raises(KeyboardInterrupt):
        ownership.take()
    assert is_given_up(storage, heartbeat_path(INSTANT))


def test_after_a_release_nothing_is_given_up(storage: LocalStorage) -> None:
    ownership = Ownership(storage, INSTANT, resolve_options({}))
    assert ownership.announce()
    ownership.release()
    later = Owner.current()
    write_owner(storage, INSTANT, later)
    ownership.end()
    assert Owner.parse(storage.read(heartbeat_path(INSTANT))) == later


def test_a_process_number_given_to_a_newer_process_is_not_the_old_owner(storage: LocalStorage) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    here = ProcessIdentity.current()
    write_owner(
        storage, INSTANT, Owner(dataclasses.replace(here, pid=os.getppid(), started="1"), "t", 60_000, 2)
    )
    assert state_after(storage, 0) is OwnerState.DEAD


@pytest.mark.parametrize(
    ("age_ms", "expected"),
    [(0, OwnerState.ALIVE), (120_000, OwnerState.ALIVE), (120_001, OwnerState.DEAD)],
)
def test_a_process_elsewhere_is_judged_by_its_beat(
    storage: LocalStorage, age_ms: int, expected: OwnerState
) -> None:
    write_owner(storage, INSTANT, elsewhere(Owner.current()))
    assert state_after(storage, age_ms) is expected


def test_a_process_elsewhere_is_judged_by_its_own_interval(storage: LocalStorage) -> None:
    write_owner(storage, INSTANT, elsewhere(Owner.current(interval_ms=HOUR_MS, tolerable_misses=3)))
    assert state_after(storage, 2 * HOUR_MS) is OwnerState.ALIVE


def test_the_empty_heartbeat_of_another_program_is_judged_by_its_age(storage: LocalStorage) -> None:
    storage.replace(heartbeat_path(INSTANT), b"")
    assert state_after(storage, 120_000) is OwnerState.ALIVE
    assert state_after(storage, 120_001) is OwnerState.DEAD


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"process": {}}', b"\xff\xfe", b"null"])
def test_a_torn_owner_file_names_nobody(content: bytes) -> None:
    assert Owner.parse(content) is None


def test_an_owner_file_names_its_owner() -> None:
    owner = Owner.current(1000, 3)
    assert Owner.parse(owner.to_json(lockCreateTime=1)) == owner


def test_a_beat_renews_the_modification_time(storage: LocalStorage) -> None:
    owner = Owner.current()
    write_owner(storage, INSTANT, owner)
    os.utime(f"{storage.base}/{heartbeat_path(INSTANT)}", (1, 1))
    assert Beating(storage, heartbeat_path(INSTANT), owner, owner.to_json()).beat()
    status = storage.stat(heartbeat_path(INSTANT))
    assert status is not None and status.modified_ms > 1_000_000


def test_no_beat_comes_back_after_the_instant_was_rolled_back(storage: LocalStorage) -> None:
    owner = Owner.current()
    beating = Beating(storage, heartbeat_path(INSTANT), owner, owner.to_json())
    assert not beating.beat()
    assert storage.stat(heartbeat_path(INSTANT)) is None


def test_no_beat_lands_on_the_file_of_a_newer_owner(storage: LocalStorage) -> None:
    owner, newer = Owner.current(), Owner.current()
    write_owner(storage, INSTANT, newer)
    assert not Beating(storage, heartbeat_path(INSTANT), owner, owner.to_json()).beat()
    assert Owner.parse(storage.read(heartbeat_path(INSTANT))) == newer


def test_a_beating_file_stays_fresh_from_its_thread_until_stopped(storage: LocalStorage) -> None:
    owner = Owner.current(interval_ms=5)
    write_owner(storage, INSTANT, owner)
    path = f"{storage.base}/{heartbeat_path(INSTANT)}"
    os.utime(path, (1, 1))
    beating = Beating(storage, heartbeat_path(INSTANT), owner, owner.to_json())
    beating.start()
    for _ in range(2000):
        if os.stat(path).st_mtime > 1:
            break
    beating.stop()
    storage.delete(heartbeat_path(INSTANT))
    assert not beating.beat()


def test_the_time_of_the_storage_leaves_no_file_behind(storage: LocalStorage) -> None:
    assert storage_now_ms(storage) > 1_600_000_000_000
    assert storage.list(".hoodie/.locks") == []


def test_a_live_process_that_proc_hides_is_not_taken_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hidepid, /proc shows a user nothing but processes of its own."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    hidden = ProcessIdentity(ProcessIdentity.current().machine, other.pid, "1")
    for shown in ("self", "sys"):
        (tmp_path / shown).symlink_to(f"/proc/{shown}")
    monkeypatch.setattr("hudi_engine.table.txn.owner._PROC", tmp_path)
    assert hidden.is_running() is None
    other.communicate()
    assert hidden.is_running() is False


@pytest.mark.parametrize(("misses", "state"), [(2, OwnerState.DEAD), (9, OwnerState.ALIVE)])
def test_a_writer_elsewhere_is_dead_after_the_beats_it_may_miss(
    storage: LocalStorage, misses: int, state: OwnerState
) -> None:
    options = resolve_options(
        {
            "hoodie.client.heartbeat.interval_in_ms": 1000,
            "hoodie.client.heartbeat.tolerable.misses": misses,
        }
    )
    write_owner(storage, INSTANT, elsewhere(Ownership(storage, INSTANT, options).owner))
    age(storage, heartbeat_path(INSTANT), seconds=5)
    assert Liveness(storage, TableConfig({"hoodie.table.name": "t"}), options).of_time(INSTANT) is state
