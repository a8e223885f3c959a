"""Commits without data files that another writer overtakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.config.options import Options
from hudi_engine.errors import WriteConflictError
from hudi_engine.storage.local import LocalStorage
from hudi_engine.write.metadata_only import delete_partitions

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
