"""Restores and changes of a table whose history is in the archive, or on its way there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine import HudiTable, read
from hudi_engine.errors import HistoryGapError, TimelineError, UnsupportedTableError
from hudi_engine.format.config.own_keys import CHECKPOINT
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.changes.checkpoint import next_window, read_checkpoint
from hudi_engine.table.state import TableState

from tests.helpers.fault import SimulatedCrash

pytestmark = pytest.mark.sampled

FEW = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def row(number: int) -> pa.Table:
    return pa.table({"key": [f"k{number}"], "v": [number]})


def made(spark, path: Path, count: int) -> tuple[HudiTable, list[str]]:
    table = HudiTable.create(spark, str(path), name="t", record_key=["key"], options=FEW)
    return table, [str(table.upsert(row(number)).instant) for number in range(count)]


class DiesWhileArchiving(LocalStorage):
    """Dies once the entries are in the archive and before the first file leaves the timeline."""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if "archived/" in path:
            raise SimulatedCrash


def test_a_restore_goes_past_no_commit_that_is_in_the_archive_already(spark, tmp_path: Path) -> None:
    table, instants = made(spark, tmp_path / "t", 7)
    with pytest.raises(SimulatedCrash):
        HudiTable(spark, table.path, DiesWhileArchiving(table.path), FEW).archive(3, 4)
    assert instants[1] in str(table.timeline())
    with pytest.raises(TimelineError, match=instants[1]):
        table.restore(instants[1])
    assert read(table.path).to_arrow().num_rows == 7
    active = {each.requested_time for each in table.timeline()}
    assert instants[1] not in active and instants[5] in active
    table.restore(instants[5])
    assert read(table.path).to_arrow().num_rows == 6


def test_changes_since_a_commit_whose_rollback_was_archived_are_a_gap(spark, tmp_path: Path) -> None:
    table, _ = made(spark, tmp_path / "t", 1)
    undone = str(table.upsert(row(100)).instant)
    table.rollback(undone)
    for number in range(1, 5):
        table.upsert(row(number))
    assert table.archive(3, 4).instants
    assert undone not in str(table.timeline())
    with pytest.raises(HistoryGapError, match="taken back by rollback"):
        table.changes(undone)


def test_a_start_in_a_table_that_was_built_anew_is_a_gap_and_not_all_rows(spark, tmp_path: Path) -> None:
    table, (_, start) = made(spark, tmp_path / "t", 2)
    shutil.rmtree(tmp_path / "t")
    table, _ = made(spark, tmp_path / "t", 1)
    for ask in (table.changes, table.next_window, table.cdc):
        with pytest.raises(HistoryGapError, match="was rebuilt"):
            ask(start)
    assert [row["_change_type"] for row in table.changes(start, on_gap="snapshot").collect()] == ["insert"]
    assert table.changes("2020-01-01").count() == table.cdc().count() == 1


@pytest.mark.parametrize("name", ["_change_type", "_commit_time", "_Commit_Time"])
def test_changes_of_a_table_with_a_column_of_their_name_are_refused(spark, tmp_path: Path, name: str) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["key"])
    first = table.upsert(pa.table({"key": ["k"], name: ["own"]})).instant
    table.upsert(pa.table({"key": ["l"], name: ["own"]}))
    for start in (None, str(first)):
        with pytest.raises(UnsupportedTableError, match=f"column '{name}' .* Rename the column"):
            table.changes(start)
    images = [json.loads(row["after"]) for row in table.cdc().collect()]
    assert sorted(each[name] for each in images) == ["own", "own"], "whose columns have other names"


def test_all_rows_of_an_archived_end_are_those_of_that_end(spark, tmp_path: Path) -> None:
    table, instants = made(spark, tmp_path / "t", 7)
    archived = table.archive(3, 4).instants
    assert {f"{each}.commit" for each in instants[:3]} <= set(archived)
    for number, end in enumerate(instants):
        for changes in (
            table.changes(None, end),
            table.changes(None, end, mode="latest"),
            table.changes(instants[0], end, on_gap="snapshot") if number else table.changes(None, end),
        ):
            assert sorted(each["v"] for each in changes.collect()) == list(range(number + 1))
    state = TableState.load(table.storage)
    assert next_window(state, None, end=instants[1]).end == instants[1]
    assert next_window(state, instants[0], end=instants[1]).end == instants[1]
    assert next_window(state, None, end="2020-01-01").end is None
    assert table.changes(None, "2020-01-01").count() == 0


def test_all_rows_of_an_archived_end_whose_files_are_cleaned_are_refused(spark, tmp_path: Path) -> None:
    table, instants = made(spark, tmp_path / "t", 7)
    table.clean(retain_commits=1)
    assert f"{instants[1]}.commit" in table.archive(3, 4).instants
    with pytest.raises(TimelineError, match="cleaned up to"):
        table.as_of(instants[1])
    with pytest.raises(TimelineError, match="cleaned up to"):
        table.changes(None, instants[1])
    with pytest.raises(TimelineError, match="cleaned up to"):
        table.changes(instants[0], instants[1], on_gap="snapshot")


def test_a_savepoint_that_archiving_left_behind_has_the_rows_of_its_commit(spark, tmp_path: Path) -> None:
    table, instants = made(spark, tmp_path / "t", 3)
    table.savepoint(instants[1])
    instants += [str(table.upsert(row(number)).instant) for number in range(3, 9)]
    table.archive(3, 4, options={"hoodie.archive.beyond.savepoint": "true"})
    active = {each.requested_time for each in table.timeline()}
    assert instants[1] in active and instants[3] not in active
    state = TableState.load(table.storage)
    for number, end in enumerate(instants):
        found = sorted(each["v"] for each in table.changes(None, end).collect())
        assert found == list(range(number + 1)) == sorted(each["v"] for each in table.as_of(end).collect())
        assert next_window(state, None, end=end).end == end


def test_a_checkpoint_in_the_archive_counts_before_one_that_a_savepoint_holds_back(
    spark, tmp_path: Path
) -> None:
    table, _ = made(spark, tmp_path / "t", 1)
    saved, newest = (
        str(table.upsert(row(number), options={CHECKPOINT: f'{{"s.in":"{number}"}}'}).instant)
        for number in (1, 2)
    )
    table.savepoint(saved)
    for number in range(3, 9):
        commit = tmp_path / "t" / ".hoodie" / f"{table.upsert(row(number)).instant}.commit"
        told = json.loads(commit.read_text())
        # as other writers do
        told["extraMetadata"].pop(CHECKPOINT, None)
        commit.write_text(json.dumps(told))
    table.archive(3, 4, options={"hoodie.archive.beyond.savepoint": "true"})
    active = {each.requested_time for each in table.timeline()}
    assert saved in active and newest not in active
    assert read_checkpoint(TableState.load(table.storage)) == {"s.in": "2"}
