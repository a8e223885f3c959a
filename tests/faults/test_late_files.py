"""Files of second task attempts, and of tasks that outlive their driver, never become rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.markers import write_marker
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.writer import check_inflight
from hudi_engine.table.txn.transaction import WriteTransaction

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, recover_now
from tests.helpers.fault import FaultInjectingStorage
from tests.helpers.owners import age

ROWS: mini.Rows = {"a": {"k1": 1, "k2": 2}}
EXPECTED = {("a", "k1"): 1, ("a", "k2"): 2}


class Attempt:
    """A second attempt at a task: the same rows in a file group of its own, as file ids are drawn anew."""

    def __init__(self, storage: Storage, transaction: WriteTransaction) -> None:
        self._storage, self._transaction = storage, transaction
        name = base_file_name("other-attempt-0", "0-0-7", transaction.instant)
        self.path = f"a/{name}"
        ensure_partition_metadata(storage, "a", transaction.instant)
        write_marker(storage, transaction.instant, "a", name, "CREATE")

    def look(self) -> None:
        """Look for the inflight file, as a task does before it gives its file a name."""
        given = self._transaction
        check_inflight(self._storage, given.config, given.instant, given.action)

    def publish(self) -> None:
        """Give the file its name."""
        self._storage.create(self.path, json.dumps(ROWS["a"]).encode())

    def finish(self) -> None:
        """Do both, unless the look says no."""
        try:
            self.look()
        except WriteConflictError:
            return
        self.publish()


class Interrupted(LocalStorage):
    """Calls something once, before its n-th mutating call or after it."""

    def __init__(self, base: str, call: int, when: str, hook: Callable[[], None]) -> None:
        super().__init__(base)
        self._left, self._when, self._hook = call, when, hook

    def _around(self, act: Callable[[], object]) -> object:
        self._left -= 1
        if self._left == 0 and self._when == "before":
            self._hook()
        done = act()
        if self._left == 0 and self._when == "after":
            self._hook()
        return done

    def create(self, path: str, data: bytes) -> None:
        self._around(lambda: super(Interrupted, self).create(path, data))

    def delete(self, path: str) -> bool:
        return bool(self._around(lambda: super(Interrupted, self).delete(path)))

    def delete_tree(self, path: str) -> None:
        self._around(lambda: super(Interrupted, self).delete_tree(path))


def begun(base: str, table_type: str) -> tuple[LocalStorage, WriteTransaction, mini.Work, Attempt]:
    """A first write whose files are there, and a second attempt at its task that is not done yet."""
    storage = mini.create_table(base, table_type)
    transaction = mini.begin(storage, "BULK_INSERT")
    task = mini.work(storage, transaction, ROWS)
    transaction.inflight(task.profile())
    attempt = Attempt(storage, transaction)
    task.write_files()
    return storage, transaction, task, attempt


def calls_of(base: str, act: Callable[[Storage, WriteTransaction, mini.Work], None]) -> int:
    """Count the mutating calls of ending a write."""
    storage, transaction, task, attempt = begun(base, COW)
    attempt.finish()
    counting = FaultInjectingStorage(storage)
    act(counting, transaction, task)
    return len(counting.calls)


def commit_with(storage: Storage, transaction: WriteTransaction, task: mini.Work) -> None:
    """Commit through another storage."""
    transaction._storage = transaction._opened._storage = storage
    transaction._opened._writer._storage = storage
    transaction.commit(task.metadata)


def die_and_recover(storage: Storage, transaction: WriteTransaction, task: mini.Work) -> None:
    """The driver dies; the next writer rolls its write back."""
    transaction._end()
    recover_now(storage)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("end", [commit_with, die_and_recover])
def test_a_second_attempt_that_ends_at_any_step_of_commit_or_rollback_adds_no_row(
    end: Callable[[Storage, WriteTransaction, mini.Work], None], when: str, tmp_path: Path
) -> None:
    calls = calls_of(str(tmp_path / "probe"), end)
    for call in range(1, calls + 1):
        storage, transaction, task, attempt = begun(str(tmp_path / f"t{call}"), COW)
        interrupted = Interrupted(storage.base, call, when, attempt.finish)
        end(interrupted, transaction, task)
        expected = EXPECTED if end is commit_with else {}
        assert mini.content(storage) == expected, f"second attempt {when} call {call}"
        mini.write(storage, {"b": {"k": 1}})
        assert mini.content(storage) == {**expected, ("b", "k"): 1}, f"second attempt {when} call {call}"
        assert not storage.exists(attempt.path)


@pytest.mark.parametrize("end", [commit_with, die_and_recover])
def test_an_attempt_that_looked_before_the_end_and_ends_after_it_is_removed_by_the_next_writer(
    end: Callable[[Storage, WriteTransaction, mini.Work], None], tmp_path: Path
) -> None:
    storage, transaction, task, attempt = begun(str(tmp_path), COW)
    attempt.look()
    end(storage, transaction, task)
    attempt.publish()
    mini.write(storage, {"b": {"k": 1}})
    expected = EXPECTED if end is commit_with else {}
    assert mini.content(storage) == {**expected, ("b", "k"): 1}
    assert not storage.exists(attempt.path)


def test_a_file_that_never_comes_is_waited_for_an_hour(tmp_path: Path) -> None:
    storage, transaction, task, _ = begun(str(tmp_path), COW)
    transaction.commit(task.metadata)
    mini.write(storage, {"b": {"k": 1}})
    assert storage.exists(f".hoodie/.temp/{transaction.instant}")
    age(storage)
    mini.write(storage, {"b": {"k": 2}})
    assert not storage.exists(f".hoodie/.temp/{transaction.instant}")
    assert mini.content(storage) == {**EXPECTED, ("b", "k"): 2}


def test_a_log_file_that_comes_while_its_instant_is_rolled_back_is_gone_for_good(tmp_path: Path) -> None:
    """Also when the rolled back instant is older than the timeline by then, and would count as committed."""
    storage = mini.create_table(str(tmp_path), MOR)
    mini.write(storage, {"a": {"k1": 1}})
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, {"a": {"k1": 99}})
    transaction.inflight(task.profile())
    transaction._end()

    class Late(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            if path.endswith(".rollback.requested"):
                task.write_files()

    mini.write(Late(storage.base), {"b": {"k": 1}})
    assert mini.content(storage) == {("a", "k1"): 1, ("b", "k"): 1}
    for each in storage.list(".hoodie"):
        if not each.is_dir and each.name[:17].isdigit() and each.name[:17] <= transaction.instant:
            storage.delete(each.path)
    assert mini.content(storage) == {("a", "k1"): 1, ("b", "k"): 1}
