"""Commits without data files that another writer overtakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.changes.checkpoint import format_checkpoint, read_checkpoint
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.transaction import WriteTransaction
from hudi_engine.table.write.metadata_only import delete_partitions, note_checkpoint

import tests.faults.mini_table as mini


class Overtaken(LocalStorage):
    """Another writer adds to partition ``a`` when the first instant is in flight."""

    done = False

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if path.endswith(".replacecommit.inflight") and not self.done:
            self.done = True
            mini.write(LocalStorage(self.base), {"a": {"k2": 5}})


@pytest.fixture
def storage(tmp_path: Path) -> Overtaken:
    created = mini.create_table(str(tmp_path))
    mini.write(created, {"a": {"k1": 1}, "b": {"k1": 2}})
    return Overtaken(created.base)


def retries(times: int) -> Options:
    return mini.options(hoodie__write__num__retries__on__conflict__failures=times)


def test_deleting_partitions_is_refused_when_rows_came_meanwhile(storage: Overtaken) -> None:
    with pytest.raises(WriteConflictError):
        delete_partitions(storage, ["a"], retries(0))

    assert mini.content(storage) == {("a", "k1"): 1, ("a", "k2"): 5, ("b", "k1"): 2}


def test_deleting_partitions_begins_again_and_takes_what_came_meanwhile(storage: Overtaken) -> None:
    delete_partitions(storage, ["a"], retries(1))

    assert storage.done
    assert mini.content(storage) == {("b", "k1"): 2}


def note(storage: LocalStorage, source: str, times: int = 0) -> None:
    def noted(state: TableState) -> str:
        return format_checkpoint({**read_checkpoint(state), source: "1"})

    note_checkpoint(storage, noted, retries(times))


def test_a_checkpoint_is_made_of_what_was_noted_when_its_instant_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, begin = mini.create_table(str(tmp_path)), WriteTransaction.begin

    def overtaken(*given: object, **named: object) -> WriteTransaction:
        monkeypatch.undo()
        note(storage, "theirs")
        return begin(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(WriteTransaction, "begin", overtaken)
    note(storage, "mine")

    assert read_checkpoint(TableState.load(storage)) == {"mine": "1", "theirs": "1"}


class NotedMeanwhile(LocalStorage):
    """Another writer notes a checkpoint when the first instant is in flight."""

    done = False

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if path.endswith(".inflight") and not self.done:
            self.done = True
            note(LocalStorage(self.base), "theirs")


def test_of_two_checkpoints_that_do_not_know_each_other_the_second_is_a_conflict(tmp_path: Path) -> None:
    storage = NotedMeanwhile(mini.create_table(str(tmp_path)).base)
    with pytest.raises(WriteConflictError, match="another writer has noted a checkpoint"):
        note(storage, "mine")
    assert read_checkpoint(TableState.load(storage)) == {"theirs": "1"}

    note(NotedMeanwhile(storage.base), "mine", 1)
    assert read_checkpoint(TableState.load(storage)) == {"mine": "1", "theirs": "1"}
