"""A commit that is made though it must not be, on a store that fails when it is to be withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.errors import StorageError, WriteConflictError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services import change_version, run_compaction
from hudi_engine.table.snapshot.publication import publication_of

import tests.faults.mini_table as mini
from tests.unit.services import tables


class Failing(LocalStorage):
    """Another process takes the instant out of flight while its completed file is made; then the store fails once."""

    def __init__(self, base: str, fails: str) -> None:
        super().__init__(base)
        self._fails, self._made = fails, ""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if path.endswith(".commit"):
            self._made = path
            for each in self.list(".hoodie"):
                if each.path.endswith(".inflight"):
                    super().delete(each.path)

    def exists(self, path: str) -> bool:
        self._fail("look", path)
        return super().exists(path)

    def delete(self, path: str) -> bool:
        self._fail("delete", path)
        return super().delete(path)

    def _fail(self, call: str, path: str) -> None:
        if call == self._fails and path == self._made:
            self._made = ""
            raise OSError("no route")


@pytest.mark.parametrize("fails", ["look", "delete"])
def test_a_compaction_that_must_not_stand_and_cannot_be_withdrawn_is_not_said_to_be_taken_back(
    fails: str, tmp_path: Path
) -> None:
    storage = Failing(str(tables.merge_on_read(tmp_path / "t").path), fails)
    with pytest.raises(
        StorageError, match=r"could not be withdrawn: no route. Delete \.hoodie/.*commit"
    ) as told:
        run_compaction(storage, tables.options())
    assert isinstance(told.value.__cause__, WriteConflictError)


@pytest.mark.parametrize("fails", ["look", "delete"])
def test_a_write_that_must_not_stand_and_cannot_be_withdrawn_names_its_file(
    fails: str, tmp_path: Path
) -> None:
    storage = Failing(mini.create_table(str(tmp_path)).base, fails)
    with pytest.raises(StorageError, match="could not be withdrawn: no route"):
        mini.write(storage, {"a": {"k1": 1}})


class Suspended(LocalStorage):
    """The process stops right before it makes its completed file, and another one breaks its lock and commits meanwhile."""

    others: Callable[[], object] | None = None

    def create(self, path: str, data: bytes) -> None:
        others, self.others = (self.others, None) if path.endswith(".commit") else (None, self.others)
        if others is not None:
            self.delete(".hoodie/lock")
            others()
        super().create(path, data)


def test_a_commit_that_readers_may_have_passed_is_taken_back(tmp_path: Path) -> None:
    storage = Suspended(mini.create_table(str(tmp_path / "t")).base)
    (tmp_path / "other").symlink_to(tmp_path / "t")  # a process of its own by its name of the table
    mini.write(storage, {"a": {"k0": 0}})
    change_version(storage, mini.options(), publication_of(storage), 9)
    storage.others = lambda: mini.write(LocalStorage(str(tmp_path / "other")), {"b": {"k2": 2}})
    with pytest.raises(WriteConflictError, match="readers of changes may have passed"):
        mini.write(storage, {"c": {"k1": 1}})
    assert mini.content(storage) == {("a", "k0"): 0, ("b", "k2"): 2}
    mini.write(storage, {"c": {"k1": 1}})
    assert mini.content(storage) == {("a", "k0"): 0, ("b", "k2"): 2, ("c", "k1"): 1}
