"""Instants that a table no longer has: as the end of changes, as a state, and as what a reader has noted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError, HistoryGapError, TimelineError
from hudi_engine.format.config.own_keys import CLONE_REPLACED
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.changes.checkpoint import next_window
from hudi_engine.table.changes.gaps import check_known, check_since, check_start
from hudi_engine.table.changes.window import state_at
from hudi_engine.table.clone import clone_table
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.state import TableState

import tests.faults.mini_table as mini


def write(storage: Storage, number: int) -> str:
    return mini.write(storage, {"a": {f"k{number}": number}})


def later(instant: str, more: int = 1) -> str:
    return f"{int(instant) + more}"


@pytest.fixture
def table(tmp_path: Path) -> Storage:
    return mini.create_table(str(tmp_path / "t"))


@pytest.mark.parametrize("way", ["rollback", "restore"])
@pytest.mark.parametrize(
    "ask", [instant_as_of, state_at, lambda state, end: next_window(state, None, end=end)]
)
def test_a_state_that_was_taken_back_is_none_to_read(
    table: Storage, ask: Callable[[TableState, str], object], way: str
) -> None:
    first, second = (write(table, number) for number in range(2))
    if way == "restore":
        mini.restore(table, first)
    else:
        mini.rollback(table)
    for _ in range(2):
        state = TableState.load(table)
        with pytest.raises(
            TimelineError, match=f"is '{second}': that commit was taken back by {way}.*moment such as"
        ):
            ask(state, second)
        for moment in (first, later(second), "2020-01-01", "2099-01-01 00:00:00"):
            ask(state, moment)
        write(table, 3)


def replaced_by_a_clone(table: Storage, tmp_path: Path, *, again: bool = False) -> tuple[str, str]:
    """Give the table's place to a clone with a longer history, and return an instant of before and one of the clone."""
    write(table, 1)
    copy = str(tmp_path / "copy")
    clone_table(table, copy)
    seen = write(table, 2)
    other = type(table)(copy)
    newest = write(other, 3)
    clone_table(other, table.base, replace=True)
    if again:
        clone_table(other, table.base, replace=True)
    return seen, newest


@pytest.mark.parametrize("again", [False, True])
def test_an_instant_of_the_table_whose_place_a_clone_took_is_no_moment(
    table: Storage, tmp_path: Path, again: bool
) -> None:
    seen, newest = replaced_by_a_clone(table, tmp_path, again=again)
    state = TableState.load(table)
    assert state.config.properties[CLONE_REPLACED] == (newest if again else seen)
    for ask in (check_start, check_since):
        with pytest.raises(HistoryGapError, match="no commit of its timelines? is that instant"):
            ask(state, seen)
    for name in ("as_of", "end"):
        asked = partial(instant_as_of, asked="as_of") if name == "as_of" else state_at
        with pytest.raises(TimelineError, match=f"{name} of table .* up to .* another table was here"):
            asked(state, seen)
    with pytest.raises(HistoryGapError, match="no commit of its timeline is that instant"):
        check_known(state, seen)
    for known in (newest, f"{seen[:4]}-{seen[4:6]}-{seen[6:8]}", later(newest)):
        check_start(state, known)
        instant_as_of(state, known)


def test_a_clone_in_an_empty_place_takes_moments_in_the_digits_of_instants(
    table: Storage, tmp_path: Path
) -> None:
    first, _ = (write(table, number) for number in range(2))
    clone_table(table, str(tmp_path / "copy"))
    state = TableState.load(type(table)(str(tmp_path / "copy")))
    assert CLONE_REPLACED not in state.config.properties
    check_start(state, later(first))
    with pytest.raises(HistoryGapError, match="no commit of its timeline is that instant"):
        check_since(state, later(first))


class Counting(LocalStorage):
    """Notes which files are read."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self.seen: list[str] = []

    def read(self, path: str) -> bytes:
        self.seen.append(path)
        return super().read(path)


def rolled_back(table: Storage) -> tuple[list[str], Path]:
    """Write twice, the second time for nothing; return the instants and the file of the rollback."""
    names = [write(table, number) for number in range(2)]
    mini.rollback(table)
    (done,) = Path(table.base, ".hoodie").rglob("*.rollback")
    return names, done


def test_a_snapshot_reads_a_rollback_once_and_none_for_a_commit_that_is_there(table: Storage) -> None:
    (first, second), done = rolled_back(table)
    storage = Counting(table.base)
    state = TableState.load(storage)
    instant_as_of(state, first)
    assert not any(path.endswith(done.name) for path in storage.seen)
    for _ in range(2):
        instant_as_of(state, "2020-01-01")
        with pytest.raises(TimelineError, match="taken back by rollback"):
            instant_as_of(state, second)
    assert [path.endswith(done.name) for path in storage.seen].count(True) == 1


def test_a_rollback_that_is_archived_while_it_is_looked_at_asks_for_another_look(table: Storage) -> None:
    (_, second), done = rolled_back(table)
    state = TableState.load(table)
    done.unlink()
    with pytest.raises(TimelineError, match="rollback .* left the timeline .* after it was listed"):
        instant_as_of(state, second)


def test_a_damaged_rollback_hides_no_commit_and_no_moment(table: Storage) -> None:
    (first, second), done = rolled_back(table)
    done.write_bytes(b"torn")
    state = TableState.load(table)
    for there in (first, "2020-01-01", datetime(2099, 1, 1)):
        instant_as_of(state, there)
        check_start(state, there)
    for ask in (instant_as_of, check_start):
        with pytest.raises(CorruptTableError, match=done.name):
            ask(state, second)


def test_a_rollback_whose_plan_was_cut_short_takes_nothing_back(table: Storage) -> None:
    (_, second), done = rolled_back(table)
    done.unlink()
    (begun,) = Path(table.base, ".hoodie").rglob("*.rollback.inflight")
    begun.unlink()
    (planned,) = Path(table.base, ".hoodie").rglob("*.rollback.requested")
    planned.write_bytes(b"torn")
    assert instant_as_of(TableState.load(table), second) == second
