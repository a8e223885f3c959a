"""A commit that is made though it must not be, on a store that fails when it is to be withdrawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import StorageError, WriteConflictError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services import run_compaction

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
