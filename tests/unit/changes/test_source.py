"""The changes of a table as a source of Spark, planned and read without one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.spark.changes.source import ChangeSource
from hudi_engine.table.changes.checkpoint import next_window
from hudi_engine.table.services import archive, clean
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.savepoint import create_savepoint

from tests.helpers.handmade import HandmadeTable, file_id
from tests.unit.services.tables import DAY_1, GROUP_1, SCHEMA, batch, options, writes

FEW = {"keep__min__commits": 2, "keep__max__commits": 3, "clean__commits__retained": 1}


def told(table: HandmadeTable, **asked: str) -> list[tuple[str, str, str]]:
    source = ChangeSource({"path": str(table.path), **asked})
    start = source.first()
    pieces = source.pieces(start, source.after(start, source.limits), source.columns())
    rows = [row for piece in pieces for row in piece.rows().to_pylist()]
    return sorted((row["id"], row["_change_type"], row["_commit_time"]) for row in rows)


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    return HandmadeTable(tmp_path / "t", SCHEMA, ("day",))


def test_all_rows_first_have_the_commits_that_wrote_them_also_archived_ones(table: HandmadeTable) -> None:
    commits = [table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}}) for name in "abcde"]
    archive(table.storage, options(**FEW))
    assert len(writes(table.storage)) < len(commits)
    assert told(table) == [(name, "insert", commit) for name, commit in zip("abcde", commits, strict=True)]
    assert told(table, mode="latest") == told(table)


def test_the_newest_rows_are_those_that_were_written_whatever_they_were_before(table: HandmadeTable) -> None:
    start = table.commit({DAY_1: {GROUP_1: batch({"gone": 1, "same": 1}, DAY_1)}})
    table.commit({DAY_1: {GROUP_1: batch({"same": 1, "new": 1}, DAY_1)}})
    last = table.commit({DAY_1: {GROUP_1: batch({"same": 1, "new": 2}, DAY_1)}})
    newest = [("new", "update_after", last), ("same", "update_after", last)]
    assert told(table, mode="latest", start=start) == newest
    clean(table.storage, options(), retain_commits=1)
    assert told(table, mode="latest", start=start) == newest, "nothing of before is opened"


def test_the_newest_rows_of_a_table_without_meta_columns_are_updates_too(tmp_path: Path) -> None:
    table = HandmadeTable(
        tmp_path / "t", SCHEMA, ("day",), properties={"hoodie.populate.meta.fields": "false"}
    )
    start = table.commit({DAY_1: {GROUP_1: batch({"a": 1, "b": 1, "same": 1}, DAY_1)}})
    last = table.commit({DAY_1: {GROUP_1: batch({"a": 2, "c": 1, "same": 1}, DAY_1)}})
    assert told(table, mode="latest", start=start) == [
        ("a", "update_after", last),
        ("c", "update_after", last),
    ]


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_start_stays_where_it_is_though_an_older_write_is_pending(table: HandmadeTable, state: str) -> None:
    first = table.commit({DAY_1: {file_id(): batch({"a": 1}, DAY_1)}})
    pending = table.next_instant()
    (table.path / ".hoodie" / f"{pending}.commit.requested").touch()
    if state == "inflight":
        (table.path / ".hoodie" / f"{pending}.inflight").touch()
    second, third = (table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}}) for name in "bc")
    for start in (third, f"{int(third) + 1}", "2030-01-01"):
        assert ChangeSource({"path": str(table.path), "start": start}).first() == third
        assert told(table, start=start) == [], "a reader that stands at the newest commit has read all"
    newest = table.commit({DAY_1: {file_id(): batch({"d": 1}, DAY_1)}})
    assert told(table, start=third) == [("d", "insert", newest)]
    assert told(table, start=second, end=third) == [("c", "insert", third)]
    assert told(table, start=first) == [], "what is pending after the start may still complete"
    later = table.next_instant()
    (table.path / ".hoodie" / f"{later}.commit.requested").touch()
    table.commit({DAY_1: {file_id(): batch({"e": 1}, DAY_1)}})
    assert told(table, start=third) == [("d", "insert", newest)], "a newer one that is pending ends the read"
    assert ChangeSource({"path": str(table.path), "start": "latest"}).first() == first


@pytest.mark.parametrize("saved", [False, True])
def test_the_newest_start_is_before_what_is_pending_also_where_all_before_that_is_archived(
    table: HandmadeTable, saved: bool
) -> None:
    before = [table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}}) for name in "abc"]
    if saved:
        create_savepoint(table.storage, options(), publication_of(table.storage), before[1])
    pending = table.next_instant()
    (table.path / ".hoodie" / f"{pending}.commit.requested").touch()
    after = [table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}}) for name in "def"]
    state = TableState.load(table.storage)  # this engine's archiving leaves one of them, others' does not
    done = [each for each in state.timeline.completed_writes if each.requested_time in before]
    archive_instants(state, [each for each in done if not (saved and each is done[1])], options())
    assert writes(table.storage) == [*before[1:2][:saved], *after]
    assert ChangeSource({"path": str(table.path), "start": "latest"}).first() == before[-1]
    assert told(table, start="latest") == []
    assert next_window(TableState.load(table.storage), before[-1]).end == before[-1]
    (table.path / ".hoodie" / f"{pending}.commit.requested").unlink()
    found = told(table, start=before[-1])
    assert found == [(name, "insert", commit) for name, commit in zip("def", after, strict=True)]


def test_the_newest_start_is_the_beginning_where_the_first_write_is_pending(table: HandmadeTable) -> None:
    (table.path / ".hoodie" / f"{table.next_instant()}.commit.requested").touch()
    table.commit({DAY_1: {file_id(): batch({"a": 1}, DAY_1)}})
    assert ChangeSource({"path": str(table.path), "start": "latest"}).first() == ""


def test_a_start_that_is_archived_stays_where_it_is(table: HandmadeTable) -> None:
    commits = [table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}}) for name in "abcde"]
    archive(table.storage, options(**FEW))
    assert ChangeSource({"path": str(table.path), "start": commits[1]}).first() == commits[1]
    for before in ("2025-12-31", "2025-12-31 23:59:59"):
        with pytest.raises(ConfigError, match="before the oldest commit"):
            ChangeSource({"path": str(table.path), "start": before}).first()


@pytest.mark.parametrize("name", ["_change_type", "_commit_time", "_Commit_Time"])
def test_a_table_with_a_column_of_the_name_of_one_of_changes_is_refused(tmp_path: Path, name: str) -> None:
    table = HandmadeTable(tmp_path / "t", pa.schema([("id", pa.string()), (name, pa.string())]))
    rows = [pa.table({"id": [key], name: ["own"]}) for key in "ab"]
    start, end = (table.commit({"": {file_id(): each}}) for each in rows)
    source = ChangeSource({"path": str(table.path)})
    for ask in (source.columns, lambda: [*source.pieces(start, end, SCHEMA)], lambda: told(table)):
        with pytest.raises(UnsupportedTableError, match=f"column '{name}' .* Rename the column"):
            ask()


@pytest.mark.parametrize("enough", [0, 1000, 8 << 20])
def test_small_file_groups_are_one_task_and_each_row_is_told_once(
    table: HandmadeTable, monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    monkeypatch.setattr("hudi_engine.table.changes.plan.TASK_BYTES", enough)
    start = table.commit({DAY_1: {file_id(): batch({"z": 1}, DAY_1)}})
    table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1) for name in "abcdef"}})
    for begin, rows in (("earliest", "abcdefz"), (start, "abcdef")):
        assert [row[0] for row in told(table, start=begin)] == list(rows)
        source = ChangeSource({"path": str(table.path), "start": begin})
        first = source.first()
        pieces = [*source.pieces(first, source.after(first, source.limits), source.columns())]
        sizes = [sum(unit.size for unit in piece.units) for piece in pieces]
        assert len(pieces) == (1 if enough == 8 << 20 else len(rows) if enough == 0 else len(pieces))
        assert all(size <= enough or len(piece.units) == 1 for size, piece in zip(sizes, pieces, strict=True))


@pytest.mark.parametrize("text", ["²", "٣", "0", "-1", "1.5", "", "many"])
def test_a_limit_that_is_no_number_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=f"max_rows is '{text}'; legal are whole numbers of at least 1"):
        ChangeSource({"path": str(tmp_path), "max_rows": text})
