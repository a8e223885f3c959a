"""The first window of a reader, where a write that is under way may complete before all others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.table.changes.checkpoint import NextWindow, WindowLimits, next_window
from hudi_engine.table.changes.touched import slices_of_whole
from hudi_engine.table.changes.window import check_names, state_at
from hudi_engine.table.services import clean
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.savepoint import create_savepoint

from tests.helpers.handmade import HandmadeTable, file_id
from tests.helpers.told_changes import plan
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
    assert len(slices_of_whole(state, state_at(state, end))) == 1
    assert plan(state, end, last, "net").rows().num_rows == 1


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_position_stays_though_an_older_write_is_pending(table: HandmadeTable, state: str) -> None:
    first = commit(table, "a")
    pending = table.next_instant()
    (table.path / ".hoodie" / f"{pending}.commit.requested").touch()
    if state == "inflight":
        (table.path / ".hoodie" / f"{pending}.inflight").touch()
    second, third = commit(table, "b"), commit(table, "c")

    def following(since: str, end: str | None = None) -> str | None:
        return next_window(TableState.load(table.storage), since, end=end).end

    for since in (third, f"{int(third) + 1}", "2030-01-01"):
        assert following(since) == third, "a reader of the newest commit has read all"
    newest = commit(table, "d")
    assert following(third) == newest
    assert following(second, end=third) == third
    assert following(first) == first, "what is pending after the position may still complete"
    begin_write(table)
    commit(table, "e")
    assert following(third) == newest, "a newer pending write ends the window"


@pytest.mark.parametrize("saved", [False, True])
def test_an_archived_position_before_a_pending_write_stays(table: HandmadeTable, saved: bool) -> None:
    before = [commit(table, name) for name in "abc"]
    if saved:
        create_savepoint(table.storage, options(), publication_of(table.storage), before[1])
    pending = begin_write(table)
    after = [commit(table, name) for name in "def"]
    state = TableState.load(table.storage)  # this engine's archiving leaves one of them, others' does not
    done = [each for each in state.timeline.completed_writes if each.requested_time in before]
    archive_instants(state, [each for each in done if not (saved and each is done[1])], options())
    assert next_window(TableState.load(table.storage), before[-1]).end == before[-1]
    (table.path / ".hoodie" / f"{pending}.commit.requested").unlink()
    assert next_window(TableState.load(table.storage), before[-1]).end == after[-1]


@pytest.mark.parametrize("name", ["_change_type", "_commit_time", "_Commit_Time"])
def test_a_column_of_the_name_of_one_of_changes_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedTableError, match=f"column '{name}' .* Rename the column"):
        check_names(pa.schema([("id", pa.string()), (name, pa.string())]))
