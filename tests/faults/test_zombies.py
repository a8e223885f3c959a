"""A writer that was taken for dead and rolled back, and then goes on: it is refused wherever it tries."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError, WriteConflictError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.writer import check_inflight
from hudi_engine.table.txn.owner import Owner, ProcessIdentity, heartbeat_path
from hudi_engine.table.txn.transaction import WriteTransaction

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, SECOND, recover_now, upsert_first
from tests.helpers.owners import write_owner

ELSEWHERE = ProcessIdentity("other-host/boot/pid:[1]", 4711, "1")


def owner_of(transaction: WriteTransaction) -> Owner:
    ownership = transaction._opened.ownership
    assert ownership is not None
    return ownership.owner


def take_for_dead(storage: LocalStorage, transaction: WriteTransaction) -> None:
    """Make the writer one of another machine that has not beaten for long."""
    write_owner(storage, transaction.instant, replace(owner_of(transaction), process=ELSEWHERE))
    os.utime(f"{storage.base}/{heartbeat_path(transaction.instant)}", (1, 1))


@pytest.fixture(params=[COW, MOR])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> LocalStorage:
    created = mini.create_table(str(tmp_path), request.param)
    upsert_first(created)
    return created


def test_rolled_back_before_it_is_in_flight(storage: LocalStorage) -> None:
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, SECOND)
    take_for_dead(storage, transaction)
    before = mini.content(storage)
    recover_now(storage)
    with pytest.raises(WriteConflictError, match="rolled back"), transaction:
        transaction.inflight(task.profile())
    assert mini.content(storage) == before
    assert mini.leftovers(storage) == []


def test_rolled_back_while_its_tasks_write(storage: LocalStorage) -> None:
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, SECOND)
    transaction.inflight(task.profile())
    take_for_dead(storage, transaction)
    recover_now(storage)
    with pytest.raises(WriteConflictError, match="no longer in flight"):
        check_inflight(storage, transaction.config, transaction.instant, transaction.action)
    transaction.abort()


def test_rolled_back_before_its_commit_while_another_writer_committed(storage: LocalStorage) -> None:
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, SECOND)
    transaction.inflight(task.profile())
    task.write_files()
    take_for_dead(storage, transaction)
    winner = mini.begin(storage)
    assert winner.rolled_back == (transaction.instant,)
    other = mini.work(storage, winner, {"a": {"k1": 7}})
    winner.inflight(other.profile())
    other.write_files()
    winner.commit(other.metadata)
    expected = mini.content(storage)
    with pytest.raises(WriteConflictError, match=transaction.instant), transaction:
        transaction.commit(task.metadata)
    assert mini.content(storage) == expected
    assert mini.leftovers(storage) == []


def test_its_rollback_has_begun_and_was_killed(storage: LocalStorage) -> None:
    """The plan stands and some files are gone, but the inflight file is still there."""
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, SECOND)
    transaction.inflight(task.profile())
    task.write_files()
    before = mini.content(storage)
    take_for_dead(storage, transaction)
    killed_after_first_delete(storage)
    transaction.still_ours()  # the cheap check cannot know
    with pytest.raises(WriteConflictError, match="rolled back"), transaction:
        transaction.commit(task.metadata)
    assert mini.content(storage) == before
    mini.write(storage, {"z": {"k": 1}})
    assert mini.leftovers(storage) == []


def killed_after_first_delete(storage: LocalStorage) -> None:
    class Dies(LocalStorage):
        def delete(self, path: str) -> bool:
            if path.startswith(".hoodie/"):
                return super().delete(path)
            super().delete(path)
            raise KeyboardInterrupt

        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            if "/.group" in path:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recover_now(Dies(storage.base))


class Hooked(LocalStorage):
    """Calls a function just before the completed file of an instant is created."""

    def __init__(self, base: str, suffix: str, hook: Callable[[], None]) -> None:
        super().__init__(base)
        self._suffix = suffix
        self._hook = hook

    def create(self, path: str, data: bytes) -> None:
        if path.endswith(self._suffix):
            self._hook()
        super().create(path, data)


def test_rolled_back_in_the_moment_of_its_commit(storage: LocalStorage) -> None:
    """Suspended between its last check and the create; what it then publishes is withdrawn at once."""
    before = mini.content(storage)
    transactions: list[WriteTransaction] = []

    def others_turn() -> None:
        take_for_dead(storage, transactions[0])
        recover_now(storage)

    action = "deltacommit" if "MERGE" in transaction_type(storage) else "commit"
    hooked = Hooked(storage.base, f".{action}", others_turn)
    transaction = mini.begin(hooked)
    transactions.append(transaction)
    task = mini.work(hooked, transaction, SECOND)
    transaction.inflight(task.profile())
    task.write_files()
    with pytest.raises(WriteConflictError, match="rolled back"), transaction:
        transaction.commit(task.metadata)
    assert mini.content(storage) == before
    assert mini.leftovers(storage) == []


def transaction_type(storage: LocalStorage) -> str:
    return mini.TableConfig.load(storage).table_type.value


def test_a_task_that_finishes_after_the_commit_is_refused(storage: LocalStorage) -> None:
    with mini.begin(storage) as transaction:
        task = mini.work(storage, transaction, SECOND)
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata)
    with pytest.raises(WriteConflictError, match="committed already"):
        check_inflight(storage, transaction.config, transaction.instant, transaction.action)


def test_a_task_that_finished_between_plan_and_end_of_the_rollback_leaves_no_file(
    storage: LocalStorage,
) -> None:
    """The driver was killed, one of its Python workers was not."""
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, SECOND)
    transaction.inflight(task.profile())
    task.write_files()
    transaction._end()
    stray = f"a/late-0_9-9-9_{transaction.instant}.parquet"

    class LateTask(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            if path.endswith(".rollback.inflight"):
                super().create(stray, b"{}")

    recover_now(LateTask(storage.base))
    assert not storage.exists(stray)
    assert mini.leftovers(storage) == []


def test_a_writer_that_beats_is_left_alone_and_both_commit(storage: LocalStorage) -> None:
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, {"b": {"k3": 30}})
    transaction.inflight(task.profile())
    task.write_files()
    write_owner(storage, transaction.instant, replace(owner_of(transaction), process=ELSEWHERE))
    other = mini.begin(storage)
    assert other.rolled_back == ()
    other_task = mini.work(storage, other, {"a": {"k1": 10}})
    other.inflight(other_task.profile())
    other_task.write_files()
    other.commit(other_task.metadata)
    transaction.commit(task.metadata)
    assert mini.content(storage) == {("a", "k1"): 10, ("a", "k2"): 2, ("b", "k3"): 30}
    assert mini.leftovers(storage) == []


def test_the_age_of_a_beat_is_taken_by_the_clock_of_the_storage(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine's clock is an hour ahead; the other writer has beaten a moment ago."""
    transaction = mini.begin(storage)
    write_owner(storage, transaction.instant, replace(owner_of(transaction), process=ELSEWHERE))
    real = __import__("time").time
    monkeypatch.setattr("time.time", lambda: real() + 3600)
    assert mini.begin(storage).rolled_back == ()


def test_a_completed_file_that_somebody_else_made_is_never_overwritten(storage: LocalStorage) -> None:
    made: list[str] = []

    class Raced(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            if path.endswith(("commit", "deltacommit")) and not made:
                made.append(path)
                super().create(path, b"other")
            super().create(path, data)

    raced = Raced(storage.base)
    transaction = mini.begin(raced)
    task = mini.work(raced, transaction, SECOND)
    transaction.inflight(task.profile())
    task.write_files()
    with pytest.raises(TimelineError, match="is completed already"), transaction:
        transaction.commit(task.metadata)
    assert storage.read(made[0]) == b"other"
