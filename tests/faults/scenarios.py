"""Actions on a small table that are killed, or made to fail, at each of their mutating storage calls."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.txn.recovery import recover, table_lock

import tests.faults.mini_table as mini
from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
FIRST: mini.Rows = {"a": {"k1": 1, "k2": 2}, "b": {"k3": 3}}
SECOND: mini.Rows = {"a": {"k1": 10, "k4": 4}, "c": {"k5": 5}}

Action = Callable[[Storage], object]


@dataclass(frozen=True)
class Scenario:
    """An action that is to be atomic.

    Args:
        name: For the test's id.
        table_type: Type of the table.
        prepare: Brings the table into its old state.
        act: Brings it into its new state.
        goes_on: Whether a recovery may finish the action rather than undo it.
    """

    name: str
    table_type: str
    prepare: Action
    act: Action
    goes_on: bool = False


def upsert_both(storage: Storage) -> None:
    """Two commits: new rows, then changes and new rows."""
    mini.write(storage, FIRST)
    mini.write(storage, SECOND)


def upsert_first(storage: Storage) -> None:
    """One commit of new rows."""
    mini.write(storage, FIRST)


def upsert_second(storage: Storage) -> None:
    """Changes and new rows on top of the first commit."""
    mini.write(storage, SECOND)


def nothing(storage: Storage) -> None:
    """Leave the table empty."""


def overwrite_partition(storage: Storage) -> None:
    """Replace one partition and fill a new one."""
    mini.write(storage, {"a": {"k7": 7}, "d": {"k8": 8}}, "INSERT_OVERWRITE")


def overwrite_table(storage: Storage) -> None:
    """Replace the table."""
    mini.write(storage, {"d": {"k8": 8}}, "INSERT_OVERWRITE_TABLE")


def give_up(storage: Storage) -> None:
    """Write all files of a commit and abort it."""
    with mini.begin(storage) as transaction:
        task = mini.work(storage, transaction, SECOND)
        transaction.inflight(task.profile())
        task.write_files()
        transaction.abort()


def die_before_commit(storage: Storage, until: str = "files") -> None:
    """Leave behind what a writer leaves that dies before its commit.

    Args:
        until: ``requested``, ``inflight`` or ``files``: how far it came.
    """
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, SECOND)
    if until != "requested":
        transaction.inflight(task.profile())
    if until == "files":
        task.write_files()
    transaction._end()


def dead_writer(storage: Storage) -> None:
    """A first commit, and the files of a writer that died."""
    upsert_first(storage)
    die_before_commit(storage)


def half_done_rollback(storage: Storage) -> None:
    """A dead writer whose rollback was killed in the middle."""
    dead_writer(storage)
    for call in range(8, 100):
        copy = FaultInjectingStorage(storage, FaultPlan(call, "after", crash=raise_crash))
        try:
            recover_now(copy)
        except SimulatedCrash:
            if any("rollback.inflight" in path for _, path in copy.calls):
                return
    raise AssertionError("the rollback was never in flight")


def roll_back_newest(storage: Storage) -> None:
    """Undo the newest commit."""
    mini.rollback(storage)


def overwritten(storage: Storage) -> None:
    """Two commits, one of them an overwrite."""
    upsert_first(storage)
    overwrite_partition(storage)


def recover_now(storage: Storage) -> None:
    """Do what every begin does first."""
    with table_lock(storage, mini.options()):
        recover(storage, TableConfig.load(storage), mini.options(), publication_of(storage))


SCENARIOS = (
    Scenario("cow_first_insert", COW, nothing, upsert_first),
    Scenario("cow_upsert", COW, upsert_first, upsert_second),
    Scenario("mor_upsert", MOR, upsert_first, upsert_second),
    Scenario("cow_overwrite_partition", COW, upsert_both, overwrite_partition),
    Scenario("mor_overwrite_partition", MOR, upsert_both, overwrite_partition),
    Scenario("cow_overwrite_table", COW, upsert_both, overwrite_table),
    Scenario("cow_abort", COW, upsert_first, give_up),
    Scenario("mor_abort", MOR, upsert_both, give_up),
    Scenario(
        "cow_write_after_dead_writer", COW, dead_writer, lambda storage: mini.write(storage, {"a": {"k9": 9}})
    ),
    Scenario(
        "mor_write_after_dead_writer", MOR, dead_writer, lambda storage: mini.write(storage, {"a": {"k9": 9}})
    ),
    Scenario("cow_write_after_killed_rollback", COW, half_done_rollback, upsert_second),
    Scenario("mor_write_after_killed_rollback", MOR, half_done_rollback, upsert_second),
    Scenario("cow_rollback_of_commit", COW, upsert_both, roll_back_newest, goes_on=True),
    Scenario("mor_rollback_of_commit", MOR, upsert_both, roll_back_newest, goes_on=True),
    Scenario("cow_rollback_of_overwrite", COW, overwritten, roll_back_newest, goes_on=True),
)


class Bench:
    """Runs one scenario on copies of its prepared table.

    Args:
        scenario: What to run.
        root: Folder for the copies.
        version: Table version.
    """

    def __init__(self, scenario: Scenario, root: Path, version: int = 6) -> None:
        self.scenario = scenario
        self._root = root
        self._count = 0
        template = mini.create_table(str(root / "template"), scenario.table_type, version)
        scenario.prepare(template)
        self.old = mini.content(template)
        storage = FaultInjectingStorage(self.copy())
        scenario.act(storage)
        self.new = mini.content(storage)
        self.calls = storage.calls

    def copy(self) -> LocalStorage:
        """Return a fresh copy of the prepared table, with its modification times."""
        self._count += 1
        target = self._root / f"copy{self._count}"
        shutil.copytree(self._root / "template", target)
        return LocalStorage(str(target))

    def drop(self, storage: LocalStorage) -> None:
        """Remove a copy."""
        shutil.rmtree(storage.base)

    def next_write(self, storage: Storage) -> mini.Content:
        """Write a row elsewhere, as the next writer does, and return the content without it."""
        mini.write(storage, {"z": {"next": 1}})
        found = mini.content(storage)
        assert found.pop(("z", "next")) == 1
        return found


def copy_of(table: LocalStorage, root: Path) -> LocalStorage:
    """Return a fresh copy of a table, in place of the one before."""
    shutil.rmtree(root / "copy", ignore_errors=True)
    shutil.copytree(table.base, root / "copy", copy_function=shutil.copy2)
    return LocalStorage(str(root / "copy"))


def killed(storage: Storage, act: Action, call: int, when: str) -> bool:
    """Run ``act`` and kill it at a mutating call; return whether it came so far."""
    try:
        act(FaultInjectingStorage(storage, FaultPlan(call, when, crash=raise_crash)))
    except SimulatedCrash:
        return True
    return False
