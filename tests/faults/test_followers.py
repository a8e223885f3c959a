"""Who follows the changes of a table is never told that nothing happened while a commit that it has seen is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import HistoryGapError
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.changes.checkpoint import next_window
from hudi_engine.table.changes.gaps import check_start
from hudi_engine.table.state import TableState

import tests.faults.mini_table as mini
from tests.faults.scenarios import COW, MOR, Bench, Scenario, killed, recover_now, upsert_first, upsert_second
from tests.helpers.forms import in_turn


def two_writes(storage: Storage) -> None:
    """Two upserts."""
    upsert_first(storage)
    upsert_second(storage)


def rollback_newest(storage: Storage) -> None:
    """Take the second one back."""
    mini.rollback(storage, newest(storage))


def restore_to_first(storage: Storage) -> None:
    """Go back to the first one."""
    mini.restore(
        storage,
        mini.Timeline.load(storage, mini.TableConfig.load(storage)).completed_writes[0].requested_time,
    )


def newest(storage: Storage) -> str:
    """Return the newest completed write."""
    return mini.Timeline.load(storage, mini.TableConfig.load(storage)).completed_writes[-1].requested_time


def is_told_of_a_gap(storage: Storage, seen: str) -> bool:
    """Ask for what comes after a commit; tell whether it is said to have gone."""
    state = TableState.load(storage)
    try:
        check_start(state, seen)
    except HistoryGapError:
        return True
    assert next_window(state, seen).end == seen, "no window goes back"
    return False


@pytest.mark.parametrize("way", [rollback_newest, restore_to_first], ids=["rollback", "restore"])
@pytest.mark.parametrize(("when", "table_type"), in_turn(("before", "after", "torn"), (COW, MOR)))
def test_a_reader_of_a_commit_that_goes_is_told_so_at_each_step(
    table_type: str, when: str, way, tmp_path: Path
) -> None:
    bench = Bench(Scenario("", table_type, two_writes, way), tmp_path)
    gaps = 0
    for call in range(1, len(bench.calls) + 1):
        where = f"killed {when} call {call}: {bench.calls[call - 1]}"
        storage = bench.copy()
        seen = newest(storage)
        assert killed(storage, way, call, when), where
        for _ in range(2):
            told = is_told_of_a_gap(storage, seen)
            assert told or mini.content(storage) == bench.old, where
            gaps += told
            recover_now(storage)
        bench.drop(storage)
    assert gaps, "some kills come after the commit has gone"
