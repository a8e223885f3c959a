"""A restore that is killed leaves some committed state, and the next writer finishes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services import run_compaction
from hudi_engine.table.txn.savepoint import create_savepoint, delete_savepoint

import tests.faults.mini_table as mini
from tests.faults.scenarios import (
    COW,
    FIRST,
    MOR,
    Bench,
    Scenario,
    killed,
    overwrite_partition,
    recover_now,
    upsert_first,
    upsert_second,
)
from tests.helpers.fault import SimulatedCrash, raise_crash
from tests.helpers.forms import in_turn
from tests.unit.services import tables


def saved_then_changed(storage: Storage) -> None:
    """A saved commit, and an upsert, an overwrite and an upsert after it."""
    upsert_first(storage)
    mini.savepoint(storage)
    upsert_second(storage)
    overwrite_partition(storage)
    mini.write(storage, {"d": {"k8": 80}, "b": {"k3": 30}})


def restore_to_first(storage: Storage) -> None:
    """Restore to the oldest commit."""
    config = mini.TableConfig.load(storage)
    mini.restore(storage, mini.Timeline.load(storage, config).completed_writes[0].requested_time)


def states(storage: Storage) -> list[mini.Content]:
    """Return the table as of every commit."""
    config = mini.TableConfig.load(storage)
    writes = mini.Timeline.load(storage, config).completed_writes
    return [mini.content(storage, write.requested_time) for write in writes]


@pytest.mark.parametrize(("when", "table_type"), in_turn(("before", "after", "torn"), (COW, MOR)))
def test_a_killed_restore_leaves_a_committed_state_and_is_finished(
    table_type: str, when: str, tmp_path: Path
) -> None:
    bench = Bench(Scenario("", table_type, saved_then_changed, restore_to_first), tmp_path)
    allowed = states(bench.copy())
    assert bench.new == allowed[0] == {("a", "k1"): 1, ("a", "k2"): 2, ("b", "k3"): 3}
    for call in range(1, len(bench.calls) + 1):
        where = f"killed {when} call {call}: {bench.calls[call - 1]}"
        storage = bench.copy()
        assert killed(storage, restore_to_first, call, when), where
        assert mini.content(storage) in allowed, where
        killed(storage, recover_now, call % 7 + 2, "after")
        assert mini.content(storage) in allowed, where
        assert bench.next_write(storage) in (bench.old, bench.new), where
        assert mini.leftovers(storage) == [], where
        bench.drop(storage)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_after_a_restore_the_table_goes_on(table_type: str, tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path), table_type)
    saved_then_changed(storage)
    restore_to_first(storage)
    upsert_second(storage)
    assert mini.content(storage) == {
        ("a", "k1"): 10, ("a", "k2"): 2, ("a", "k4"): 4, ("b", "k3"): 3, ("c", "k5"): 5
    }  # fmt: skip
    assert mini.leftovers(storage) == []


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_writer_that_was_under_way_is_refused_after_a_restore(table_type: str, tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path), table_type)
    saved_then_changed(storage)
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, {"a": {"k7": 70}})
    transaction.inflight(task.profile())
    task.write_files()
    restore_to_first(storage)
    with pytest.raises(WriteConflictError), transaction:
        transaction.commit(task.metadata)
    assert mini.content(storage) == {("a", "k1"): 1, ("a", "k2"): 2, ("b", "k3"): 3}
    assert mini.leftovers(storage) == []


def restore_killed_in_flight(path: str, target: str) -> None:
    """Begin a restore and die before anything has gone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_engine.table.txn.removal.take_out", lambda *_: raise_crash())
        with pytest.raises(SimulatedCrash):
            mini.restore(LocalStorage(path), target)


@pytest.mark.parametrize(
    "refused", [True, False], ids=["compaction is refused", "commit has come all the same"]
)
def test_a_killed_restore_takes_back_the_compaction_that_was_running(
    refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    target = tables.writes(table.storage)[0]

    def overtaken(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = [function(item) for item in items]
        restore_killed_in_flight(str(table.path), target)
        return found

    if refused:
        with pytest.raises(
            WriteConflictError, match=r"rolled back by restore \d+, which was begun meanwhile"
        ):
            run_compaction(table.storage, tables.options(), run_tasks=overtaken)
    else:
        monkeypatch.setattr("hudi_engine.table.services.planned.check_not_rolled_back", lambda *_: None)
        run_compaction(table.storage, tables.options(), run_tasks=overtaken)
    recover_now(table.storage)
    assert tables.writes(table.storage) == [target]
    assert tables.rows(table.storage) == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
    assert mini.leftovers(table.storage) == []


@pytest.mark.parametrize(
    ("when", "verb"), in_turn(("before", "after", "torn"), (create_savepoint, delete_savepoint))
)
def test_a_killed_savepoint_is_there_or_not_and_can_be_done_again(
    verb: object, when: str, tmp_path: Path
) -> None:
    def act(storage: Storage) -> None:
        if verb is create_savepoint:
            mini.savepoint(storage)
        else:
            delete_savepoint(storage, mini.options(), instant(storage))

    def prepare(storage: Storage) -> None:
        upsert_first(storage)
        if verb is delete_savepoint:
            mini.savepoint(storage)

    bench = Bench(Scenario("", COW, prepare, act), tmp_path)
    for call in range(1, len(bench.calls) + 1):
        storage = bench.copy()
        assert killed(storage, act, call, when)
        assert mini.content(storage) == bench.old
        there = verb is delete_savepoint and not saved(storage)
        if not there:
            act(storage)
        assert saved(storage) == ([instant(storage)] if verb is create_savepoint else [])
        bench.drop(storage)


def instant(storage: Storage) -> str:
    return mini.Timeline.load(storage, mini.TableConfig.load(storage)).completed_writes[0].requested_time


def saved(storage: Storage) -> list[str]:
    timeline = mini.Timeline.load(storage, mini.TableConfig.load(storage))
    return [savepoint.requested_time for savepoint in timeline.savepoints]


def test_the_first_rows_are_what_a_restore_gives_back(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    saved_then_changed(storage)
    restore_to_first(storage)
    expected = {(partition, key): value for partition, rows in FIRST.items() for key, value in rows.items()}
    assert mini.content(LocalStorage(storage.base)) == expected
