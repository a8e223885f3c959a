"""Work that ends by an interruption in a process that lives on: others of its machine see that nobody is at it any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import StorageError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services import clean, run_compaction
from hudi_engine.table.txn.owner import HEARTBEAT_FOLDER

import tests.faults.mini_table as mini
from tests.helpers.fault import Interrupted
from tests.helpers.owners import is_given_up
from tests.unit.services import tables


def interrupt() -> None:
    raise KeyboardInterrupt


def fail() -> None:
    raise OSError("no answer")


class InterruptedOnce(Interrupted):
    """Whoever is interrupted goes on with what is to be done then."""

    def _before(self, call: str, path: str) -> None:
        self._dead = False
        super()._before(call, path)


def owners_given_up(storage: Storage) -> list[bool]:
    """Tell of each owner file that is there whether its owner has given up."""
    return [is_given_up(storage, each.path) for each in storage.list(HEARTBEAT_FOLDER)]


def work(storage: Storage) -> None:
    with mini.begin(storage) as transaction:
        task = mini.work(storage, transaction, {"a": {"k1": 2}})
        transaction.inflight(task.profile())
        raise KeyboardInterrupt


@pytest.mark.parametrize("moment", [".commit.requested", ".rollback.requested"], ids=["begin", "rollback"])
def test_an_interrupted_write_is_given_up(moment: str, tmp_path: Path) -> None:
    """Where it begins, or when it is being rolled back after a first interruption."""
    storage = mini.create_table(str(tmp_path))
    mini.write(storage, {"a": {"k1": 1}})
    with pytest.raises(KeyboardInterrupt):
        work(InterruptedOnce(storage.base, "create", moment, interrupt))
    assert owners_given_up(storage) == [True]
    mini.write(storage, {"b": {"k2": 2}})
    assert mini.content(storage) == {("a", "k1"): 1, ("b", "k2"): 2}
    assert mini.leftovers(storage) == []


def test_a_compaction_that_is_interrupted_while_it_is_taken_back_is_given_up(tmp_path: Path) -> None:
    storage = LocalStorage(str(tables.merge_on_read(tmp_path / "t").path))

    def tasks(function: Callable[[Any], Any], items: Any) -> Any:  # noqa: ARG001
        raise KeyboardInterrupt

    once = InterruptedOnce(storage.base, "delete", ".compaction.inflight", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_compaction(once, tables.options(), run_tasks=tasks)
    assert owners_given_up(storage) == [True]
    run_compaction(storage, tables.options())
    assert tables.rows(storage, read_optimized=True) == tables.MERGED


@pytest.mark.parametrize("act", [interrupt, fail])
@pytest.mark.parametrize(("call", "suffix"), [("create", ".clean.inflight"), ("create", ".clean")])
def test_a_clean_that_ends_by_an_error_is_given_up(
    call: str, suffix: str, act: Callable[[], None], tmp_path: Path
) -> None:
    storage = LocalStorage(str(tables.merge_on_read(tmp_path / "t").path))
    run_compaction(storage, tables.options())
    options = tables.options(clean__policy="KEEP_LATEST_FILE_VERSIONS", clean__fileversions__retained=1)
    with pytest.raises((KeyboardInterrupt, StorageError, OSError)):
        clean(InterruptedOnce(storage.base, call, suffix, act), options)
    assert owners_given_up(storage) == [True]
    assert clean(storage, options).files_deleted
    assert owners_given_up(storage) == []
