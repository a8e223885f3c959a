"""Two writers on one table, stopped between their phases, so that every interleaving can be replayed.

A write has four phases: begin, in flight, data files, commit. Whoever commits second must be refused or leave
the table as if both had run one after the other.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hudi_engine.errors import TableNotFoundError, WriteConflictError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.transaction import WriteTransaction

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, SECOND, Bench, Scenario, upsert_first

PHASES = 4
OLD_A, NEW_A, OLD_B, INSERT_A, OVERWRITE_A, OVERWRITE_ALL = (
    "upsert of a stored key of a", "upsert of a new key of a", "upsert of a stored key of b",
    "insert into a", "overwrite of a", "overwrite of the table",
)  # fmt: skip
CONFLICTS = {
    INSERT_A: {OVERWRITE_ALL},
    OLD_A: {OLD_A, OVERWRITE_A, OVERWRITE_ALL},
    OLD_B: {OLD_B, OVERWRITE_ALL},
    NEW_A: {NEW_A, OVERWRITE_A, OVERWRITE_ALL},
    OVERWRITE_A: {INSERT_A, OLD_A, NEW_A, OVERWRITE_A, OVERWRITE_ALL},
    OVERWRITE_ALL: {INSERT_A, OLD_A, OLD_B, NEW_A, OVERWRITE_A, OVERWRITE_ALL},
}
"""What a write that commits second is refused for, when the other one committed after it had begun."""


def rows_of(operation: str, side: int) -> tuple[mini.Rows, str]:
    """Return the rows and Hudi's operation name of a write by one of two writers."""
    return {
        INSERT_A: ({"a": {f"inserted{side}": side}}, "INSERT"),
        OLD_A: ({"a": {"k1": 100 + side}}, "UPSERT"),
        OLD_B: ({"b": {"k3": 100 + side}}, "UPSERT"),
        NEW_A: ({"a": {"new": 100 + side}}, "UPSERT"),
        OVERWRITE_A: ({"a": {"only": 100 + side}}, "INSERT_OVERWRITE"),
        OVERWRITE_ALL: ({"e": {"only": 100 + side}}, "INSERT_OVERWRITE_TABLE"),
    }[operation]


class Writer:
    """A write that goes on one phase at a time."""

    def __init__(self, storage: Storage, operation: str, side: int) -> None:
        self.conflict: WriteConflictError | None = None
        self.began_at = self.committed_at = 0
        self._phases = self._run(storage, operation, side)

    def step(self, now: int) -> None:
        """Do the next phase; ``now`` counts the phases of both writers."""
        self._now = now
        next(self._phases)

    def _run(self, storage: Storage, operation: str, side: int) -> Iterator[None]:
        rows, name = rows_of(operation, side)
        transaction = mini.begin(storage, name)
        self.began_at = self._now
        yield
        task = mini.work(storage, transaction, rows, token=f"0-0-{side}")
        transaction.inflight(task.profile())
        yield
        task.write_files()
        yield
        try:
            transaction.commit(task.metadata)
            self.committed_at = self._now
        except WriteConflictError as conflict:
            self.conflict = conflict
            transaction.abort(conflict)
        yield


def interleavings(pair: tuple[str, str], every: bool) -> list[tuple[int, ...]]:
    """Return orders of the phases of two writers: all, or a few that differ by pair but not by run."""
    found = [
        tuple(1 if place in first else 2 for place in range(2 * PHASES))
        for first in itertools.combinations(range(2 * PHASES), PHASES)
    ]
    return found if every else random.Random("/".join(pair)).sample(found, 10)


PAIRS = list(itertools.combinations_with_replacement(CONFLICTS, 2))
EXHAUSTIVE = {(OLD_A, OLD_A), (OLD_A, NEW_A), (NEW_A, NEW_A), (OLD_A, OVERWRITE_A)}


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]} + {pair[1]}")
def test_two_writers_are_serializable_or_one_is_refused(
    pair: tuple[str, str], table_type: str, tmp_path: Path
) -> None:
    bench = Bench(Scenario("", table_type, upsert_first, lambda storage: None), tmp_path)
    serial = {order: run_in_order(bench, pair, order) for order in ((1,), (2,), (1, 2), (2, 1))}
    for order in interleavings(pair, every=pair in EXHAUSTIVE):
        storage = bench.copy()
        writers = {1: Writer(storage, pair[0], 1), 2: Writer(storage, pair[1], 2)}
        for now, side in enumerate(order, 1):
            writers[side].step(now)
        done = sorted(
            (side for side in (1, 2) if writers[side].conflict is None), key=lambda s: writers[s].committed_at
        )
        second = order[-1]
        first = 3 - second
        concurrent = writers[first].committed_at > writers[second].began_at
        refused = concurrent and pair[first - 1] in CONFLICTS[pair[second - 1]]
        assert (writers[second].conflict is not None) == refused, f"{order}: {writers[second].conflict}"
        assert writers[first].conflict is None, f"{order}: {writers[first].conflict}"
        assert mini.content(storage) == serial[tuple(done)], order
        assert mini.leftovers(storage) == []
        bench.drop(storage)


def run_in_order(bench: Bench, pair: tuple[str, str], order: tuple[int, ...]) -> mini.Content:
    """Return what the table holds after whole writes, one after the other."""
    storage = bench.copy()
    for side in order:
        rows, name = rows_of(pair[side - 1], side)
        mini.write(storage, rows, name)
    return mini.content(storage)


def test_the_refusal_names_both_instants_and_the_file_group(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    upsert_first(storage)
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, SECOND)
    transaction.inflight(task.profile())
    task.write_files()
    other = mini.write(storage, {"a": {"k1": 5}})
    with pytest.raises(WriteConflictError) as error, transaction:
        transaction.commit(task.metadata)
    message = str(error.value)
    assert transaction.instant in message and other in message and "both changed file group" in message
    assert mini.content(storage)[("a", "k1")] == 5


def test_a_write_that_has_read_a_commit_which_was_rolled_back_is_refused(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    upsert_first(storage)
    mini.write(storage, {"a": {"k1": 5}})
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, {"b": {"k3": 6}})
    transaction.inflight(task.profile())
    task.write_files()
    mini.rollback(storage)
    with pytest.raises(WriteConflictError, match="rolled back meanwhile"), transaction:
        transaction.commit(task.metadata)
    assert mini.content(storage) == {("a", "k1"): 1, ("a", "k2"): 2, ("b", "k3"): 3}
    assert mini.leftovers(storage) == []


def test_a_file_of_an_attempt_that_is_not_part_of_the_commit_is_gone(tmp_path: Path) -> None:
    """A task wrote everything twice, as with speculation; only the second attempt is reported."""
    storage = mini.create_table(str(tmp_path), MOR)
    upsert_first(storage)
    with mini.begin(storage) as transaction:
        lost = mini.work(storage, transaction, SECOND, token="0-0-1")
        kept = mini.work(storage, transaction, SECOND, token="0-0-2")
        transaction.inflight(kept.profile())
        lost.write_files()
        kept.write_files()
        transaction.commit(kept.metadata)
    names = [status.name for status in storage.list("", recursive=True)]
    assert [name for name in names if "_0-0-1" in name] == []
    assert mini.content(storage) == {
        ("a", "k1"): 10, ("a", "k2"): 2, ("a", "k4"): 4, ("b", "k3"): 3, ("c", "k5"): 5
    }  # fmt: skip


def test_the_log_file_of_another_commit_survives_a_marker_with_its_name(tmp_path: Path) -> None:
    """Two writers announced the same log file name; the one that lost the create took the next version."""
    storage = mini.create_table(str(tmp_path), MOR)
    upsert_first(storage)
    slow = mini.begin(storage)
    late = mini.work(storage, slow, {"a": {"k1": 8}}, token="0-0-0")
    slow.inflight(late.profile())
    mini.write(storage, {"a": {"k1": 7}})
    late.write_files()
    with pytest.raises(WriteConflictError), slow:
        slow.commit(late.metadata)
    assert mini.content(storage)[("a", "k1")] == 7


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_write_that_has_read_the_first_commit_is_refused_when_that_was_rolled_back(
    table_type: str, tmp_path: Path
) -> None:
    """Also when a third writer has committed since, so that the first commit is older than the timeline's first."""
    storage = mini.create_table(str(tmp_path), table_type)
    mini.write(storage, {"a": {"k1": 1, "wrong": 666}})
    transaction = mini.begin(storage)
    task = mini.work(storage, transaction, {"a": {"k1": 2}})
    transaction.inflight(task.profile())
    task.write_files()
    mini.rollback(storage)
    mini.write(storage, {"b": {"x": 1}})
    with pytest.raises(WriteConflictError, match="was rolled back meanwhile"), transaction:
        transaction.commit(task.metadata)
    assert mini.content(storage) == {("b", "x"): 1}


def test_a_writer_that_begins_while_a_rebuilt_table_is_put_in_place_is_told_of_a_conflict(
    tmp_path: Path,
) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    mini.create_table(str(tmp_path / ".t.rebuild-1"))
    config = TableConfig.load(storage)
    (tmp_path / "t").rename(tmp_path / ".t.replaced-1")
    with pytest.raises(WriteConflictError, match="a rebuilt table was being put in the place"):
        WriteTransaction.begin(
            storage, config, mini.options(), UNPUBLISHED, action="commit", operation="INSERT"
        )
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]
    with mini.begin(storage, "INSERT"):
        pass


def test_a_writer_whose_table_was_removed_is_told_that_there_is_none(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    config = TableConfig.load(storage)
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        WriteTransaction.begin(
            storage, config, mini.options(), UNPUBLISHED, action="commit", operation="INSERT"
        )
