"""The table's lock: exclusive, named, breakable only when its holder is gone."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hudi_engine.errors import StorageError, WriteConflictError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.owner import LOCK_PATH, Owner, ProcessIdentity, register, unregister
from hudi_engine.table.txn.recovery import table_lock

from tests.helpers.owners import age


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.fixture
def other() -> Iterator[Owner]:
    """An owner that lives as long as the test."""
    owner = Owner.current()
    register(owner)
    yield owner
    unregister(owner)


def dead_owner() -> Owner:
    return Owner.current()  # not registered: this process works on nothing of that token


def remote_owner() -> Owner:
    return dataclasses.replace(Owner.current(), process=ProcessIdentity("other-host/boot/pid:[1]", 4711, "1"))


def test_the_lock_file_names_its_holder_while_it_is_held(storage: LocalStorage) -> None:
    with TableLock(storage):
        holder = Owner.parse(storage.read(LOCK_PATH))
        assert holder is not None and holder.process == ProcessIdentity.current()
    assert not storage.exists(LOCK_PATH)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the lock logs, whoever else takes the lines of the engine for itself, as dbt's adapter does."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("hudi_engine.table.txn.lock")
    log.addHandler(handler)
    yield lines
    log.removeHandler(handler)


def test_who_waits_says_once_for_whom(
    storage: LocalStorage, other: Owner, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_engine.table.txn.lock._SILENT_SECONDS", 0.05)
    storage.create(LOCK_PATH, other.to_json())
    with pytest.raises(WriteConflictError), TableLock(storage, wait_ms=1500):
        pass
    assert said == [
        f"waiting for the lock {LOCK_PATH} of {storage.base}, which {other} holds, for at most 1 s"
    ]


def test_who_waits_for_a_thread_of_the_same_process_says_so(
    storage: LocalStorage, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_engine.table.txn.lock._SILENT_SECONDS", 0.05)

    def wait() -> None:
        with pytest.raises(WriteConflictError), TableLock(storage, wait_ms=200):
            pass

    with TableLock(storage):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join()
    assert ["another thread of this process" in each for each in said] == [True]


def test_the_same_thread_may_enter_twice(storage: LocalStorage) -> None:
    with TableLock(storage), TableLock(storage, wait_ms=0):
        assert storage.exists(LOCK_PATH)
    assert not storage.exists(LOCK_PATH)


def test_the_inner_of_two_entries_does_not_release(storage: LocalStorage) -> None:
    with TableLock(storage):
        with TableLock(storage):
            pass
        assert storage.exists(LOCK_PATH)


def test_a_second_thread_waits(storage: LocalStorage) -> None:
    order: list[str] = []

    def second() -> None:
        with TableLock(storage, wait_ms=10_000):
            order.append("second")

    thread = threading.Thread(target=second)
    with TableLock(storage):
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_thread_that_waits_in_vain_is_told_so(storage: LocalStorage) -> None:
    caught: list[str] = []

    def second() -> None:
        with pytest.raises(WriteConflictError) as error, TableLock(storage, wait_ms=10):
            pass
        caught.append(str(error.value))

    with TableLock(storage):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert "another thread" in caught[0]


def test_the_lock_of_a_living_holder_is_named_and_left_alone(storage: LocalStorage, other: Owner) -> None:
    storage.create(LOCK_PATH, other.to_json())
    with pytest.raises(WriteConflictError, match=f"process {other.process.pid} on"):
        TableLock(storage, wait_ms=20).__enter__()
    assert storage.read(LOCK_PATH) == other.to_json()


def test_after_a_vain_wait_the_next_try_is_free(storage: LocalStorage, other: Owner) -> None:
    storage.create(LOCK_PATH, other.to_json())
    with pytest.raises(WriteConflictError):
        TableLock(storage, wait_ms=0).__enter__()
    storage.delete(LOCK_PATH)
    with TableLock(storage, wait_ms=0):
        assert storage.exists(LOCK_PATH)


def test_the_lock_of_a_dead_process_is_broken_at_once(storage: LocalStorage) -> None:
    storage.create(LOCK_PATH, dead_owner().to_json())
    with TableLock(storage, wait_ms=1000):
        assert storage.exists(LOCK_PATH)
    assert not storage.exists(LOCK_PATH)


def test_the_lock_of_another_machine_is_broken_when_it_has_stopped_beating(storage: LocalStorage) -> None:
    storage.create(LOCK_PATH, remote_owner().to_json())
    with pytest.raises(WriteConflictError):
        TableLock(storage, wait_ms=0).__enter__()
    os.utime(f"{storage.base}/{LOCK_PATH}", (1, 1))
    with TableLock(storage, wait_ms=1000):
        pass


@pytest.mark.parametrize(("expire_ms", "broken"), [(0, False), (60_000, True)])
def test_a_lock_file_without_a_name_is_broken_only_by_its_age(
    storage: LocalStorage, expire_ms: int, broken: bool
) -> None:
    storage.create(LOCK_PATH, b'{"lockCreateTime": 1}')
    os.utime(f"{storage.base}/{LOCK_PATH}", (1, 1))
    lock = TableLock(storage, wait_ms=20, expire_ms=expire_ms)
    if broken:
        with lock:
            pass
    else:
        with pytest.raises(WriteConflictError, match="another program"):
            lock.__enter__()


def test_only_one_of_many_breakers_gets_in_at_a_time(storage: LocalStorage) -> None:
    storage.create(LOCK_PATH, dead_owner().to_json())
    inside, seen = [0], []

    def enter() -> None:
        with TableLock(LocalStorage(storage.base), wait_ms=20_000):
            inside[0] += 1
            seen.append(inside[0])
            inside[0] -= 1

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 8


def test_a_slow_breaker_does_not_remove_the_lock_of_a_fast_one(storage: LocalStorage) -> None:
    """Both saw the same dead lock; the right to break it went to the fast one, which holds the lock now."""
    dead = dead_owner()
    storage.create(LOCK_PATH, dead.to_json())
    with TableLock(storage):
        holder = storage.read(LOCK_PATH)
        slow = TableLock(storage)
        assert not slow._may_break(dead.token)
        assert storage.read(LOCK_PATH) == holder


def test_a_fresh_lock_is_not_broken_for_the_age_of_the_dead_one_before_it(storage: LocalStorage) -> None:
    """Another process breaks the dead lock and takes it while this one looks at it."""

    class Overtaken(LocalStorage):
        def read(self, path: str) -> bytes:
            if path == LOCK_PATH and not overtaken:
                overtaken.append(path)
                self.replace(LOCK_PATH, fresh)
            return super().read(path)

    fresh = remote_owner().to_json()
    overtaken: list[str] = []
    storage.create(LOCK_PATH, remote_owner().to_json())
    age(storage, LOCK_PATH)
    with pytest.raises(WriteConflictError):
        TableLock(Overtaken(storage.base), wait_ms=20).__enter__()
    assert storage.read(LOCK_PATH) == fresh


def test_the_right_to_break_a_lock_passes_on_when_its_winner_dies(storage: LocalStorage) -> None:
    dead = dead_owner()
    storage.create(LOCK_PATH, dead.to_json())
    assert TableLock(storage)._may_break(dead.token)  # wins, and is gone before it removed the lock
    with TableLock(storage, wait_ms=1000):
        pass


def test_a_holder_whose_lock_was_taken_away_leaves_the_new_one(storage: LocalStorage, other: Owner) -> None:
    with TableLock(storage):
        storage.replace(LOCK_PATH, other.to_json())
    assert storage.read(LOCK_PATH) == other.to_json()


def test_a_lock_that_was_taken_away_is_taken_anew_by_whoever_holds_it_inside_or_outside(
    storage: LocalStorage,
) -> None:
    with TableLock(storage) as outer, TableLock(storage) as inner:
        first = Owner.parse(storage.read(LOCK_PATH))
        storage.delete(LOCK_PATH)
        assert not inner.is_held()
        inner.regain()
        again = Owner.parse(storage.read(LOCK_PATH))
        assert inner.is_held() and outer.is_held()
        assert first is not None and again is not None and first.token != again.token
    assert not storage.exists(LOCK_PATH)


def test_a_lock_that_stays_away_is_no_conflict_but_an_error(storage: LocalStorage, other: Owner) -> None:
    with TableLock(storage, wait_ms=20) as lock:
        storage.replace(LOCK_PATH, other.to_json())
        with pytest.raises(StorageError, match=f"process {other.process.pid} on"):
            lock.regain()
    assert storage.read(LOCK_PATH) == other.to_json()


def test_a_storage_without_exclusive_create_is_refused(storage: LocalStorage) -> None:
    storage.exclusive_create = False
    with pytest.raises(StorageError, match="creates a file only if it is absent"):
        TableLock(storage).__enter__()


def test_the_age_is_said_in_minutes_by_an_option(storage: LocalStorage) -> None:
    storage.create(LOCK_PATH, b'{"lockCreateTime": 1}')
    age(storage, LOCK_PATH, seconds=90)
    waiting = {"hoodie.write.lock.wait_time_ms": 20}
    with pytest.raises(WriteConflictError, match="another program"):
        table_lock(
            storage, resolve_options({**waiting, "hoodie.write.lock.filesystem.expire": 2})
        ).__enter__()
    with table_lock(storage, resolve_options({**waiting, "hoodie.write.lock.filesystem.expire": 1})):
        pass
