"""A holder of the lock that stood still for long on another machine, and owners that give up while they live."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import ServiceError, StorageError, TimelineError, WriteConflictError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.instant import State
from hudi_engine.table.services import run_compaction
from hudi_engine.table.txn.owner import (
    LOCK_PATH,
    Owner,
    OwnerState,
    ProcessIdentity,
    heartbeat_path,
    register,
    unregister,
)

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR
from tests.faults.test_service_kill_points import one_by_one
from tests.helpers.fault import Interrupted, SimulatedCrash, raise_crash
from tests.helpers.owners import age
from tests.unit.services import tables


class Suspended(LocalStorage):
    """Stands still around the create of a completed file."""

    def __init__(self, base: str, suffix: str, when: str, meanwhile: Callable[[], None]) -> None:
        super().__init__(base)
        self._suffix, self._when, self._meanwhile = suffix, when, meanwhile
        self._done = False

    def create(self, path: str, data: bytes) -> None:
        mine = path.endswith(self._suffix) and not self._done
        self._done = self._done or mine
        if mine and self._when == "before":
            self._meanwhile()
        super().create(path, data)
        if mine and self._when == "after":
            self._meanwhile()


def on_another_machine(storage: LocalStorage, path: Path, act: Callable[[LocalStorage], object]) -> None:
    """Do something where the holder of the lock cannot be asked, and has not beaten for long."""
    age(storage, LOCK_PATH)
    if not path.exists():
        path.symlink_to(storage.base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProcessIdentity, "is_here", lambda self: False)
        patch.setattr(ProcessIdentity, "is_running", lambda self: None)
        act(LocalStorage(str(path)))


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_commit_that_another_one_stands_against_by_then_is_taken_back(
    table_type: str, tmp_path: Path
) -> None:
    storage = mini.create_table(str(tmp_path / "t"), table_type)
    mini.write(storage, {"a": {"k1": 1, "k2": 2}})

    def others_turn() -> None:
        on_another_machine(storage, tmp_path / "mount", lambda there: mini.write(there, {"a": {"k2": 200}}))

    slow = Suspended(storage.base, "commit", "before", others_turn)
    with pytest.raises(WriteConflictError, match="another writer came first"):
        mini.write(slow, {"a": {"k1": 100}})
    assert mini.content(storage) == {("a", "k1"): 1, ("a", "k2"): 200}
    mini.write(storage, {"b": {"k": 1}})
    assert mini.content(storage) == {("a", "k1"): 1, ("a", "k2"): 200, ("b", "k"): 1}
    assert mini.leftovers(storage) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_that_nothing_stands_against_stays(when: str, tmp_path: Path) -> None:
    """Before the create: what the other one did is elsewhere. After it: the other one has seen this commit."""
    storage = mini.create_table(str(tmp_path / "t"))
    mini.write(storage, {"a": {"k1": 1}, "b": {"k2": 2}})
    rows: mini.Rows = {"b": {"k2": 20}} if when == "before" else {"a": {"k1": 1000}}

    def others_turn() -> None:
        on_another_machine(storage, tmp_path / "mount", lambda there: mini.write(there, rows))

    mini.write(Suspended(storage.base, ".commit", when, others_turn), {"a": {"k1": 100}})
    expected = (
        {("a", "k1"): 100, ("b", "k2"): 20} if when == "before" else {("a", "k1"): 1000, ("b", "k2"): 2}
    )
    assert mini.content(storage) == expected


def test_a_lock_that_was_lost_before_the_commit_is_noticed(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"))

    class Robbed(LocalStorage):
        def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()):  # type: ignore[no-untyped-def]
            if path == f".hoodie/.temp/{transaction.instant}":
                storage.replace(LOCK_PATH, Owner.current().to_json())
            return super().list(path, recursive, skip)

    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, {"a": {"k": 1}})
    transaction.inflight(task.profile())
    task.write_files()
    transaction._storage = Robbed(storage.base)
    with pytest.raises(WriteConflictError, match="the lock .hoodie/lock of .* was taken from this process"):
        transaction.commit(task.metadata)
    assert mini.content(storage) == {}
    assert not storage.exists(mini.timeline_path(transaction.instant, "commit", State.COMPLETED))


def test_a_compaction_that_lost_the_lock_to_another_compaction_of_its_groups_is_taken_back(
    tmp_path: Path,
) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    storage = LocalStorage(str(table.path))
    other: list[str] = []

    def others_turn() -> None:
        """Another program commits a base file of the same group."""
        age(storage, LOCK_PATH)
        storage.delete(LOCK_PATH)
        newest = tables.writes(storage)[-1]
        table.commit({tables.DAY_1: {tables.GROUP_1: tables.batch({"a": 77}, tables.DAY_1)}})
        other.extend(each for each in tables.writes(storage) if each > newest)

    slow = Suspended(storage.base, ".commit", "before", others_turn)
    with pytest.raises(WriteConflictError, match="both wrote a base file"):
        run_compaction(slow, tables.options())
    assert other
    assert [each.state.value for each in mini.Timeline.load(storage, table.config).pending] != []


def test_a_compaction_that_another_process_has_begun_anew_is_taken_back(tmp_path: Path) -> None:
    """The other one has deleted the base files that the commit of this one names."""
    table = tables.merge_on_read(tmp_path / "t")
    storage = LocalStorage(str(table.path))

    def begin_anew(there: LocalStorage) -> None:
        age(storage, heartbeat_path(tables.timeline(there).pending[0].requested_time))
        dies = Interrupted(there.base, "create", ".MERGE")
        with pytest.raises(SimulatedCrash):
            run_compaction(dies, tables.options(), run_tasks=one_by_one)

    def others_turn() -> None:
        on_another_machine(storage, tmp_path / "mount", begin_anew)

    slow = Suspended(storage.base, ".commit", "before", others_turn)
    with pytest.raises(WriteConflictError, match="was taken over by another process"):
        run_compaction(slow, tables.options())
    assert tables.rows(storage) == tables.MERGED
    run_compaction(storage, tables.options())
    assert tables.rows(storage) == tables.MERGED


@pytest.mark.parametrize("before", ["tasks", "commit"])
@pytest.mark.parametrize("end", ["lives on", "is killed"])
def test_a_compaction_that_completes_under_another_run_of_its_plan_loses_no_row(
    end: str, before: str, tmp_path: Path
) -> None:
    """The other run has deleted what the commit names; it takes the commit back, and its own stands."""
    table = tables.merge_on_read(tmp_path / "t")
    storage = LocalStorage(str(table.path))
    begun, landed = threading.Event(), threading.Event()

    def work(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = one_by_one(function, items) if before == "commit" else []
        begun.set()
        assert landed.wait(10)
        return found or one_by_one(function, items)

    def run_anew(there: LocalStorage) -> None:
        age(storage, heartbeat_path(tables.timeline(there).pending[0].requested_time))
        refused = pytest.raises(WriteConflictError, match="is committed already")
        with refused if before == "tasks" else nullcontext():
            run_compaction(there, tables.options(), run_tasks=work)

    other = threading.Thread(
        target=on_another_machine, args=(storage, tmp_path / "mount", run_anew), daemon=True
    )

    class Slow(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            if path.endswith(".commit"):
                other.start()
                assert begun.wait(10)
            super().create(path, data)
            if path.endswith(".commit"):
                landed.set()
                other.join()
                if end == "is killed":
                    raise_crash()

    with pytest.raises(SimulatedCrash if end == "is killed" else WriteConflictError):
        run_compaction(Slow(storage.base), tables.options())
    assert tables.rows(storage) == tables.MERGED
    assert (tables.timeline(storage).pending == ()) == (before == "commit")
    run_compaction(storage, tables.options())
    assert tables.rows(storage, read_optimized=True) == tables.MERGED
    assert mini.leftovers(storage) == []


@pytest.mark.parametrize("lands", ["after the tasks", "at the commit"])
def test_a_commit_of_a_dead_run_that_was_taken_back_since_is_void_whenever_it_comes(
    lands: str, tmp_path: Path
) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    storage = LocalStorage(str(table.path))
    hangs: list[tuple[str, bytes]] = []

    class Hanging(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            if path.endswith(".commit"):
                hangs.append((path, data))
                raise OSError("no answer")
            super().create(path, data)

    def work(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = one_by_one(function, items)
        if lands == "after the tasks":
            storage.create(*hangs[0])
        return found

    with pytest.raises(ServiceError, match="no answer"):
        run_compaction(Hanging(storage.base), tables.options())
    moment = ".commit" if lands == "at the commit" else "none"
    slow = Suspended(storage.base, moment, "before", lambda: storage.create(*hangs[0]))
    refused = pytest.raises(TimelineError, match="another writer works on it")
    with refused if lands == "at the commit" else nullcontext():
        run_compaction(slow, tables.options(), run_tasks=work)
    assert (tables.timeline(storage).pending == ()) == (lands == "after the tasks")
    assert tables.rows(storage) == tables.MERGED
    run_compaction(storage, tables.options())
    assert tables.rows(storage, read_optimized=True) == tables.MERGED
    assert mini.leftovers(storage) == []


def test_a_compaction_that_completed_without_the_lock_is_not_said_to_be_taken_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    storage = LocalStorage(str(table.path))
    other = Owner.current()
    slow = Suspended(storage.base, ".commit", "before", lambda: storage.replace(LOCK_PATH, other.to_json()))
    register(other)
    with pytest.raises(StorageError, match="it is not known whether it is valid"):
        run_compaction(slow, tables.options(write__lock__wait_time_ms=50))
    unregister(other)
    assert "is completed, not taken back" in caplog.text and "its plan is kept" not in caplog.text
    assert "could not be taken back" not in caplog.text
    assert tables.rows(storage, read_optimized=True) == tables.MERGED


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("at", ["completed", "inflight"])
@pytest.mark.parametrize("end", ["finishes", "is killed"])
def test_a_write_that_is_committed_while_another_process_rolls_it_back_is_refused(
    end: str, at: str, table_type: str, tmp_path: Path
) -> None:
    """Its completed file comes before the other one hides it, or between that and the end of its files."""
    storage = mini.create_table(str(tmp_path / "t"), table_type)
    mini.write(storage, {"a": {"k1": 1}})
    reached = threading.Event()

    def wait() -> None:
        reached.set()
        time.sleep(0.5)

    def roll_back(there: LocalStorage) -> None:
        (mine,) = tables.timeline(there).pending
        age(storage, heartbeat_path(mine.requested_time))
        path = mini.timeline_path(mine.requested_time, mine.action, State[at.upper()])
        if end == "finishes":
            mini.write(Interrupted(there.base, "delete", path, wait), {"b": {"k2": 2}})
        else:
            with pytest.raises(SimulatedCrash):
                mini.write(Interrupted(there.base, "delete", path), {"b": {"k2": 2}})
            reached.set()

    other = threading.Thread(
        target=on_another_machine, args=(storage, tmp_path / "mount", roll_back), daemon=True
    )

    def others_turn() -> None:
        other.start()
        assert reached.wait(10)

    slow = Suspended(storage.base, "commit", "before", others_turn)
    with pytest.raises(WriteConflictError, match="no longer in flight"):
        mini.write(slow, {"a": {"k1": 100}})
    other.join()
    mini.write(storage, {"c": {"k3": 3}})
    found = mini.content(storage)
    assert (found.pop(("b", "k2"), None) is not None) == (end == "finishes")
    assert found == {("a", "k1"): 1, ("c", "k3"): 3}
    assert mini.leftovers(storage) == []


def test_a_commit_that_cannot_be_looked_at_in_time_is_told_as_unknown(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    other = Owner.current()
    slow = Suspended(storage.base, ".commit", "before", lambda: storage.replace(LOCK_PATH, other.to_json()))
    with mini.begin(slow, hoodie__write__lock__wait_time_ms=50) as transaction:
        task = mini.work(slow, transaction, {"a": {"k1": 1}})
        transaction.inflight(task.profile())
        task.write_files()
        register(other)
        with pytest.raises(StorageError, match="it is not known whether it is valid"):
            transaction.commit(task.metadata)
        unregister(other)
    assert mini.content(storage) == {("a", "k1"): 1}


def test_a_commit_that_cannot_be_judged_without_the_lock_is_told_as_unknown(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"))

    def others_turn() -> None:
        """Another program commits what this one cannot read."""
        storage.delete(LOCK_PATH)
        storage.create(f".hoodie/{int(transaction.instant) + 1}.commit", b"{")

    slow = Suspended(storage.base, ".commit", "before", others_turn)
    with mini.begin(slow) as transaction:
        task = mini.work(slow, transaction, {"a": {"k1": 1}})
        transaction.inflight(task.profile())
        task.write_files()
        with pytest.raises(StorageError, match="it is not known whether it is valid"):
            transaction.commit(task.metadata)
    assert storage.exists(mini.timeline_path(transaction.instant, "commit", State.COMPLETED))


@pytest.mark.parametrize("failures", [1, 3], ids=["rollback fails", "marking fails too"])
def test_an_instant_that_a_living_process_has_given_up_is_rolled_back_by_any_other(
    failures: int, tmp_path: Path
) -> None:
    left = [failures]

    class Failing(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            if path.endswith(".rollback.requested"):
                raise OSError("disk full")
            super().create(path, data)

        def replace(self, path: str, data: bytes) -> None:
            left[0] -= 1
            if left[0] > 0 and path.startswith(".hoodie/.heartbeat/"):
                raise OSError("disk full")
            super().replace(path, data)

    storage = mini.create_table(str(tmp_path))
    mini.write(storage, {"a": {"k1": 1}})
    failing = Failing(storage.base)
    transaction = mini.begin(failing, hoodie__client__heartbeat__interval_in_ms=100)
    task = mini.work(failing, transaction, {"a": {"k1": 2}})
    transaction.inflight(task.profile())
    task.write_files()
    transaction.abort(StorageError("disk full"))
    script = (
        "import sys, time\n"
        "import tests.faults.mini_table as mini\n"
        "from hudi_engine.format.storage.local import LocalStorage\n"
        "for _ in range(100):\n"
        "    with mini.begin(LocalStorage(sys.argv[1])) as transaction:\n"
        "        if transaction.rolled_back: break\n"
        "    time.sleep(0.1)\n"
        "print(*transaction.rolled_back)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, storage.base],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == [transaction.instant]
    assert mini.content(storage) == {("a", "k1"): 1}
    assert mini.leftovers(storage) == []


def test_a_given_up_owner_file_says_so_to_everybody(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    transaction = mini.begin(storage)
    transaction._opened.give_up()
    owner = Owner.parse(storage.read(heartbeat_path(transaction.instant)))
    assert owner is not None and owner.process == ProcessIdentity.current()
    assert owner.state(0, 0) is OwnerState.DEAD
