"""Processes of this machine that run and are silent: after a pause of a virtual machine that is every one, for a moment."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.owner import (
    LOCK_FILES,
    LOCK_PATH,
    NEAR_MS,
    Owner,
    OwnerState,
    heartbeat_path,
    owner_state,
)
from hudi_engine.table.txn.swap import check_no_writers

import tests.faults.mini_table as mini
from tests.helpers.owners import Watch, age, running, write_owner

INSTANT = "20260101000000001"
HOUR_MS = 3_600_000


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Another process of this machine, which has not slept."""
    monkeypatch.setattr("hudi_engine.table.txn.owner.slept_ms", lambda: 0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def modified_ms(storage: LocalStorage, path: str) -> int:
    status = storage.stat(path)
    assert status is not None
    return status.modified_ms


def state_after(storage: LocalStorage, age_ms: int) -> OwnerState:
    """State when the heartbeat file is ``age_ms`` old by the storage's clock."""
    now_ms = modified_ms(storage, heartbeat_path(INSTANT)) + age_ms
    return owner_state(storage, INSTANT, interval_ms=60_000, tolerable_misses=2, now_ms=now_ms)


@pytest.mark.parametrize(
    ("age_ms", "slept", "later"),
    [
        (NEAR_MS + 119_000, 0, OwnerState.ALIVE),
        (NEAR_MS + 121_000, 0, OwnerState.DEAD),
        (9 * HOUR_MS, 9 * HOUR_MS, OwnerState.ALIVE),
        (9 * HOUR_MS, 8 * HOUR_MS, OwnerState.DEAD),
    ],
)
def test_one_that_has_long_been_silent_awake_is_dead_when_it_beats_no_more(
    age_ms: int,
    slept: int,
    later: OwnerState,
    storage: LocalStorage,
    beside: subprocess.Popen[bytes],
    watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hudi_engine.table.txn.owner.slept_ms", lambda: slept)
    owner = running(beside)
    write_owner(storage, INSTANT, owner)
    for passes, expected in ((0, OwnerState.ALIVE), (69, OwnerState.ALIVE), (2, later)):
        watch.go_on(passes)
        assert state_after(storage, age_ms) is expected
    age(storage, heartbeat_path(INSTANT), seconds=age_ms / 1000)
    beat_ms = modified_ms(storage, heartbeat_path(INSTANT))
    assert owner.state_in(storage, beat_ms) is OwnerState.ALIVE
    watch.go_on()
    assert owner.state_in(storage, beat_ms) is later


def test_one_that_beats_again_is_alive_and_its_next_silence_is_watched_anew(
    storage: LocalStorage, beside: subprocess.Popen[bytes], watch: Watch
) -> None:
    write_owner(storage, INSTANT, running(beside))
    assert state_after(storage, HOUR_MS) is OwnerState.ALIVE
    watch.go_on()
    age(storage, heartbeat_path(INSTANT), seconds=60)
    assert state_after(storage, 0) is OwnerState.ALIVE
    assert state_after(storage, HOUR_MS) is OwnerState.ALIVE


def test_a_beat_that_is_watched_needs_no_look_at_the_storages_clock(
    storage: LocalStorage, beside: subprocess.Popen[bytes], watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, long_ago = running(beside), int(time.time() * 1000) - HOUR_MS
    assert owner.state_in(storage, long_ago) is OwnerState.ALIVE
    monkeypatch.delattr("hudi_engine.table.txn.owner.storage_now_ms")
    assert owner.state_in(storage, long_ago) is OwnerState.ALIVE


def test_a_mark_that_is_never_renewed_is_judged_by_its_age(
    storage: LocalStorage, beside: subprocess.Popen[bytes]
) -> None:
    owner, long_ago = running(beside), int(time.time() * 1000) - HOUR_MS
    assert owner.state_in(storage, long_ago, beats=False) is OwnerState.DEAD


def test_what_it_writes_is_rolled_back_only_when_it_beats_no_more(
    tmp_path: Path, beside: subprocess.Popen[bytes], watch: Watch
) -> None:
    storage = mini.create_table(str(tmp_path))
    begun = mini.begin(storage)
    write_owner(storage, begun.instant, running(beside))
    age(storage, heartbeat_path(begun.instant))
    with mini.begin(storage) as transaction:
        assert transaction.rolled_back == ()
    with pytest.raises(WriteConflictError, match="of another writer is under way"):
        check_no_writers(storage, mini.options(), "dropped")
    watch.go_on()
    check_no_writers(storage, mini.options(), "dropped")
    with mini.begin(storage) as transaction:
        assert transaction.rolled_back == (begun.instant,)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time of watching go by quickly."""
    monkeypatch.setattr("hudi_engine.table.txn.owner.monotonic", lambda: 200 * time.monotonic())


def assert_free_once_old(storage: LocalStorage, path: str) -> None:
    """Check that a file holds the lock back, and does so no longer when its last beat is old."""
    with pytest.raises(WriteConflictError):
        TableLock(storage, wait_ms=0).__enter__()
    age(storage, path)
    with TableLock(storage, wait_ms=0):
        pass


@pytest.mark.usefixtures("quick")
def test_its_lock_is_broken_when_it_beats_no_more_however_short_the_wait_is(
    storage: LocalStorage, beside: subprocess.Popen[bytes]
) -> None:
    storage.create(LOCK_PATH, running(beside).to_json())
    age(storage, LOCK_PATH, seconds=300)
    assert_free_once_old(storage, LOCK_PATH)


@pytest.mark.usefixtures("quick")
def test_its_right_to_break_a_lock_ends_with_time(
    storage: LocalStorage, beside: subprocess.Popen[bytes]
) -> None:
    dead = Owner.current()
    storage.create(LOCK_PATH, dead.to_json())
    right = f"{LOCK_FILES}/broken-{dead.token}-0"
    storage.create(right, running(beside).to_json())
    assert_free_once_old(storage, right)


@pytest.mark.usefixtures("watch")
def test_a_lock_whose_holder_beats_again_is_waited_for_no_longer_than_any_other(
    storage: LocalStorage, beside: subprocess.Popen[bytes]
) -> None:
    class Beaten(LocalStorage):
        """The holder of the lock beats when others have tried to take it thrice."""

        tries = 0

        def create(self, path: str, data: bytes) -> None:
            self.tries += path == LOCK_PATH
            if self.tries == 3:
                self.refresh(path, holder)
            super().create(path, data)

    holder = running(beside).to_json()
    storage.create(LOCK_PATH, holder)
    age(storage, LOCK_PATH)
    beaten = Beaten(storage.base)
    with pytest.raises(WriteConflictError, match="was not free within 0 ms"):
        TableLock(beaten, wait_ms=0).__enter__()
    assert beaten.tries == 3 and storage.read(LOCK_PATH) == holder


def test_one_that_ends_is_dead_at_once(
    storage: LocalStorage, beside: subprocess.Popen[bytes], watch: Watch
) -> None:
    owner = running(beside)
    write_owner(storage, INSTANT, owner)
    assert state_after(storage, HOUR_MS) is OwnerState.ALIVE
    beside.kill()
    beside.wait()
    assert state_after(storage, HOUR_MS) is OwnerState.DEAD
