"""The first window of a reader, where a write that is under way may complete before all others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.spark.changes.source import ChangeSource
from hudi_engine.table.changes.checkpoint import NextWindow, WindowLimits, next_window
from hudi_engine.table.services import clean
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.savepoint import create_savepoint

from tests.helpers.handmade import HandmadeTable, file_id
from tests.unit.services.tables import DAY_1, GROUP_1, SCHEMA, batch, options


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    return HandmadeTable(tmp_path / "t", SCHEMA, ("day",))


def commit(table: HandmadeTable, name: str) -> str:
    return table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}})


def begin_write(table: HandmadeTable) -> str:
    begun = table.next_instant()
    (table.path / ".hoodie" / f"{begun}.commit.requested").touch()
    return begun


def test_a_reader_is_told_which_write_it_waits_for_where_none_is_before_it(table: HandmadeTable) -> None:
    assert next_window(TableState.load(table.storage), None) == NextWindow(None, 0)
    pending = begin_write(table)
    assert next_window(TableState.load(table.storage), None) == NextWindow(None, 0, pending)
    done = commit(table, "a")
    state = TableState.load(table.storage)
    for since in (None, "2020-01-01"):
        for end in (None, done, "2030-01-01"):
            assert next_window(state, since, end=end) == NextWindow(None, 0, pending), (since, end)
    (table.path / ".hoodie" / f"{pending}.commit.requested").unlink()
    assert next_window(TableState.load(table.storage), None) == NextWindow(done, 1)


def test_an_end_before_all_commits_is_none_that_a_write_under_way_holds_up(table: HandmadeTable) -> None:
    commit(table, "a")
    begin_write(table)
    assert next_window(TableState.load(table.storage), None, end="2020-01-01") == NextWindow(None, 0)


def test_what_was_archived_before_the_write_under_way_is_the_first_window(table: HandmadeTable) -> None:
    before = [commit(table, name) for name in "ab"]
    begin_write(table)
    commit(table, "c")
    state = TableState.load(table.storage)
    archive_instants(
        state, [each for each in state.timeline.completed_writes if each.requested_time in before], options()
    )
    assert next_window(TableState.load(table.storage), None).end == before[-1]


@pytest.mark.parametrize("passed_by", [None, "clean", "archive"])
def test_the_first_window_of_a_limited_reader_ends_where_it_can_go_on(
    table: HandmadeTable, passed_by: str | None
) -> None:
    commits = [table.commit({DAY_1: {GROUP_1: batch({"a": number}, DAY_1)}}) for number in range(8)]
    create_savepoint(table.storage, options(), publication_of(table.storage), commits[0])
    create_savepoint(table.storage, options(), publication_of(table.storage), commits[2])
    if passed_by == "clean":
        clean(table.storage, options(), retain_commits=2)
    elif passed_by == "archive":
        state = TableState.load(table.storage)
        archived = {*commits[1:5]} - {commits[2]}
        writes = [each for each in state.timeline.completed_writes if each.requested_time in archived]
        archive_instants(state, writes, options())
    state = TableState.load(table.storage)
    end = next_window(state, None, limits=WindowLimits(max_commits=1)).end
    assert end == commits[{None: 0, "clean": 6, "archive": 5}[passed_by]]
    last = next_window(state, end).end
    source = ChangeSource({"path": str(table.path)})
    for begin, until in (("", end), (end, last)):
        assert [piece.rows().num_rows for piece in source.pieces(begin, until, source.columns())] == [1]
