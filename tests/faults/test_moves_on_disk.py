"""Tables that are renamed on a disk, beside writers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import TableNotFoundError, WriteConflictError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn.lock import TableLock
from hudi_engine.table.txn.owner import LOCK_PATH
from hudi_engine.table.txn.swap import move_table

import tests.faults.mini_table as mini
from tests.faults.scenarios import die_before_commit

OLD = {("a", "k"): 1}


@pytest.fixture
def table(tmp_path: Path) -> Storage:
    """A table with a row."""
    table = mini.create_table(str(tmp_path / "orders"))
    mini.write(table, {"a": {"k": 1}})
    return table


def move(table: Storage, wait_ms: int = 1000) -> Storage:
    """Rename the table."""
    parent, _, name = table.base.rpartition("/")
    options = mini.options(**{"hoodie.write.lock.wait_time_ms": str(wait_ms)})
    move_table(open_storage(parent), name, "bills", options)
    return open_storage(f"{parent}/bills")


def test_a_table_at_which_somebody_writes_keeps_its_name(table: Storage, tmp_path: Path) -> None:
    with mini.begin(table) as transaction:
        task = mini.work(table, transaction, {"a": {"late": 9}})
        transaction.inflight(task.profile())
        with pytest.raises(
            WriteConflictError, match=f"while commit {transaction.instant} of another writer is"
        ):
            move(table)
        task.write_files()
        transaction.commit(task.metadata)

    assert mini.content(table) == {**OLD, ("a", "late"): 9}
    assert [each.name for each in tmp_path.iterdir()] == ["orders"]


def test_nobody_begins_to_write_while_it_is_renamed(table: Storage) -> None:
    other = open_storage(table.base)
    lock = TableLock(other)
    lock.__enter__()
    lock._local.holder = -1  # of another thread
    try:
        with pytest.raises(WriteConflictError, match="lock"):
            move(table, wait_ms=50)
    finally:
        lock._local.holder = None
        lock._release_file()
        lock._local.mutex.release()
    assert mini.content(table) == OLD


def test_neither_a_dead_writer_nor_a_plan_that_waits_holds_it_up(table: Storage) -> None:
    die_before_commit(table, until="inflight")
    table.create(".hoodie/29990101000000000.compaction.requested", b"")

    assert mini.content(move(table)) == OLD


def test_under_its_new_name_it_is_whole_and_free_and_the_old_one_is_gone(
    table: Storage, tmp_path: Path
) -> None:
    moved = move(table)

    assert [each.name for each in tmp_path.iterdir()] == ["bills"]
    assert mini.content(moved) == OLD and not moved.exists(LOCK_PATH)
    mini.write(moved, {"a": {"late": 9}})
    with pytest.raises(TableNotFoundError):
        mini.begin(open_storage(table.base))
    assert [each.name for each in tmp_path.iterdir()] == ["bills"]


def test_of_a_symbolic_link_the_link_is_renamed(table: Storage, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "orders").rename(tmp_path / "elsewhere" / "kept")
    (tmp_path / "orders").symlink_to(tmp_path / "elsewhere" / "kept")
    moved = move(table)

    assert (tmp_path / "bills").is_symlink() and not (tmp_path / "orders").exists()
    assert mini.content(moved) == OLD and not moved.exists(LOCK_PATH)


def test_a_lock_that_cannot_be_removed_does_not_undo_the_new_name(
    table: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = LocalStorage.delete

    def refusing(self: LocalStorage, path: str) -> bool:
        if path == LOCK_PATH and self.base.endswith("bills"):
            raise PermissionError(path)
        return delete(self, path)

    monkeypatch.setattr(LocalStorage, "delete", refusing)
    assert mini.content(move(table)) == OLD


def test_a_table_whose_properties_cannot_be_read_gets_another_name_too(
    table: Storage, tmp_path: Path
) -> None:
    table.replace(".hoodie/hoodie.properties", b"hoodie.table.version=99\n")
    move(table)

    assert [each.name for each in tmp_path.iterdir()] == ["bills"]
