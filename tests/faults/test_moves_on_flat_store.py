"""Tables that change their place on a store that copies: beside writers, killed at every call, and with a store that fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hudi_engine.errors import StorageError, TableExistsError, TableNotFoundError, WriteConflictError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.objects import ObjectStorage
from hudi_engine.spark.front.rebuild import _swap_unless_overtaken
from hudi_engine.table.clone import clone_table
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.swap import mark_builder, move_table, side_folder
from hudi_engine.table.txn.table_folder import files_of_table
from hudi_engine.table.txn.transaction import WriteTransaction

import tests.faults.mini_table as mini
from tests.faults.scenarios import die_before_commit
from tests.faults.test_rebuild_on_flat_store import MUTATIONS, NEW, OLD, Killed, kill_at, make, names
from tests.helpers.s3_server import S3Server

LATE = {("a", "late"): 9}
OF_NO_INSTANT = (
    ".hoodie/archived/.commits_.archive.1_1-0-1",
    ".hoodie/spark_catalog/entry.json",
    ".hoodie/spark_catalog/plain/_spark_metadata/4.compact",
)
"""Files whose names two tables may have."""


@pytest.fixture
def base(s3_server: S3Server, model: Storage) -> str:
    """A table with some rows."""
    base = f"{s3_server.new_bucket()}/wh/orders"
    make(base, OLD, model)
    return base


@pytest.fixture
def writer(base: str) -> Iterator[tuple[WriteTransaction, mini.Work]]:
    """A writer of that table, of this process, that has looked right before its put whether it may."""
    with mini.begin(open_storage(base)) as transaction:
        task = mini.work(open_storage(base), transaction, {"a": {"late": 9}})
        transaction.inflight(task.profile())
        yield transaction, task


def rebuild(base: str, model: Storage) -> None:
    """Build the table anew beside itself and put it in place."""
    looked = TableState.load(open_storage(base))
    side = side_folder(base)
    mark_builder(make(side, NEW, model))
    _swap_unless_overtaken(looked, mini.options(), base, side)


def clone_over(base: str, model: Storage) -> None:
    """Replace the table by a clone of another one."""
    clone_table(make(f"{base}_new", NEW, model), base, None, mini.options(), replace=True)


def move(base: str, model: Storage) -> None:
    """Give the table another name."""
    move_table(open_storage(base.rpartition("/")[0]), "orders", "bills", mini.options())


@pytest.mark.parametrize("change", [rebuild, clone_over, move])
def test_nothing_takes_the_place_of_a_table_while_a_put_of_another_writer_may_be_under_way(
    change: Callable[[str, Storage], None],
    base: str,
    model: Storage,
    writer: tuple[WriteTransaction, mini.Work],
) -> None:
    transaction, task = writer
    with pytest.raises(WriteConflictError, match=f"while commit {transaction.instant} of another writer is"):
        change(base, model)

    task.write_files()
    transaction.commit(task.metadata)
    assert mini.content(open_storage(base)) == {**OLD, **LATE}
    assert ".orders.swap" not in names(base) and "bills" not in names(base)


@pytest.mark.parametrize("change", [rebuild, clone_over, move])
def test_a_dead_writer_and_a_plan_that_waits_hold_nothing_up(
    change: Callable[[str, Storage], None], base: str, model: Storage
) -> None:
    die_before_commit(open_storage(base), until="inflight")
    open_storage(base).create(".hoodie/29990101000000000.compaction.requested", b"")
    change(base, model)
    place = "bills" if change is move else "orders"
    found = mini.content(open_storage(f"{base.rpartition('/')[0]}/{place}"))
    assert found == (OLD if change is move else NEW)


def test_a_table_that_has_moved_is_whole_there_and_nothing_is_left(base: str, model: Storage) -> None:
    move(base, model)
    moved = open_storage(f"{base.rpartition('/')[0]}/bills")
    assert names(base) == ["bills"] and mini.content(moved) == OLD
    assert mini.leftovers(moved) == []
    mini.write(moved, {"a": {"late": 9}})
    with pytest.raises(TableNotFoundError):
        mini.begin(open_storage(base))


def test_a_table_moves_neither_onto_something_nor_from_nowhere(base: str, model: Storage) -> None:
    open_storage(base.rpartition("/")[0]).create("bills/precious", b"")
    with pytest.raises(FileExistsError):
        move(base, model)
    assert mini.content(open_storage(base)) == OLD
    with pytest.raises(FileNotFoundError):
        move_table(open_storage(base.rpartition("/")[0]), "nothing", "else", mini.options())
    assert names(base) == ["bills", "orders"]


@pytest.mark.parametrize("at", ["data", "timeline", "files", "end"])
def test_a_table_that_another_process_makes_at_the_target_meanwhile_stays(
    at: str, base: str, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bills = f"{base.rpartition('/')[0]}/bills"
    last = {"data": "a/", "timeline": ".hoodie/", "files": OF_NO_INSTANT[0], "end": ".hoodie/"}[at]
    theirs = model.read(PROPERTIES_PATH) + b"hoodie.table.create.schema=\n"
    seen: list[str] = []
    made: list[bytes] = []
    for path in OF_NO_INSTANT:
        open_storage(base).create(path, b"mine")

    def then(real: Callable[..., None]) -> Callable[..., None]:
        def put(storage: ObjectStorage, source: str, *more: Any) -> None:
            real(storage, source, *more)
            target = source if real is create else more[0]
            if made or not target.startswith("bills/"):
                return
            seen.append(target)
            if len(seen) == total if at == "end" else target.startswith(f"bills/{last}"):
                made.append(theirs)
                make_theirs()

        return put

    def make_theirs() -> None:
        table = open_storage(bills)
        table.create(PROPERTIES_PATH, theirs)
        mini.write(table, {"c": {"theirs": 3}})
        for path in OF_NO_INSTANT:
            table.replace(path, b"theirs")

    total = len(files_of_table(open_storage(base.rpartition("/")[0]), "orders")) - 1
    create, copy = ObjectStorage.create, ObjectStorage.copy
    monkeypatch.setattr(ObjectStorage, "create", then(create))
    monkeypatch.setattr(ObjectStorage, "copy", then(copy))
    with pytest.raises(TableExistsError, match="a table has come to be at .*bills meanwhile"):
        move(base, model)
    table = open_storage(bills)
    assert table.read(PROPERTIES_PATH) == theirs
    assert mini.content(table) == {("c", "theirs"): 3}
    assert mini.content(open_storage(base)) == OLD
    kept = [table.read(path) for path in OF_NO_INSTANT if table.exists(path)]
    assert b"mine" not in kept
    assert at in ("files", "end") or len(kept) == len(OF_NO_INSTANT)


def test_files_that_another_process_has_put_at_the_target_before_a_table_stay(
    base: str, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, parent, real = OF_NO_INSTANT[1], open_storage(base.rpartition("/")[0]), ObjectStorage.copy

    def copy(storage: ObjectStorage, source: str, target: str) -> None:
        real(storage, source, target)
        parent.replace(f"bills/{notes}", b"theirs")

    open_storage(base).create(notes, b"mine")
    monkeypatch.setattr(ObjectStorage, "copy", copy)
    with pytest.raises(TableExistsError):
        move(base, model)
    assert parent.read(f"bills/{notes}") == b"theirs"
    assert list(files_of_table(parent, "bills")) == [notes]
    assert mini.content(open_storage(base)) == OLD


def test_a_table_does_not_move_while_another_commits(base: str, model: Storage) -> None:
    held, done = threading.Event(), threading.Event()

    def commit() -> None:
        with TableLock(open_storage(base)):
            held.set()
            done.wait(60)

    other = threading.Thread(target=commit)
    other.start()
    held.wait(60)
    try:
        with pytest.raises(WriteConflictError, match="was not free"):
            move(base, model)
    finally:
        done.set()
        other.join()
    assert names(base) == ["orders"] and mini.content(open_storage(base)) == OLD


def places(base: str) -> list[mini.Content]:
    """What is read at the two places at which there is a table."""
    found = [open_storage(each) for each in (base, f"{base.rpartition('/')[0]}/bills")]
    return [mini.content(each) for each in found if each.exists(PROPERTIES_PATH)]


def test_killed_at_any_call_whatever_is_a_table_is_whole(
    s3_server: S3Server, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    for number in range(2, 200, 5):
        base = f"{s3_server.new_bucket()}/wh/orders"
        make(base, OLD, model)
        with monkeypatch.context() as patched:
            calls = kill_at(patched, number)
            try:
                move(base, model)
            except Killed:
                steps += 1
            else:
                break
        found = places(base)
        assert found and all(each == OLD for each in found), f"killed at call {number}: {calls[-1]}"
    assert steps > 3


@pytest.mark.parametrize("method", MUTATIONS)
@pytest.mark.parametrize("call", [1, 3, 9])
def test_a_move_that_a_store_fails_leaves_one_table(
    method: str, call: int, base: str, model: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = getattr(ObjectStorage, method), []

    def fails_once(storage: ObjectStorage, path: str, *more: Any) -> Any:
        calls.append(path)
        if len(calls) == call:
            raise OSError("no route")
        return real(storage, path, *more)

    monkeypatch.setattr(ObjectStorage, method, fails_once)
    try:
        move(base, model)
    except StorageError:
        assert names(base) == ["orders"]
    assert places(base) == [OLD]
