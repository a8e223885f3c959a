"""The newest state that a run has seen, read again while the table goes on."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import TimelineError
from hudi_engine.spark.sql.earlier_states import rows_as_of
from hudi_engine.table.state import TableState

from dbt.adapters.hudi.spark.earlier import rows_of_the_run


def written(spark, path) -> HudiTable:
    """A table with logs and rows of three commits, that nobody cleans by itself."""
    off = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    table = HudiTable.create(spark, str(path), name="t", record_key=["id"], table_type="mor", options=off)
    for value in "abc":
        upsert(spark, table, value)
    return table


def upsert(spark, table: HudiTable, value: str) -> str:
    table.upsert(spark.createDataFrame([(1, value), (2, "same")], "id int, v string"))
    return TableState.load(table.storage).timeline.completed_writes[-1].requested_time


def rows(frame) -> list[tuple]:
    return sorted(map(tuple, frame.collect()))


def test_it_outlives_a_compaction_that_ends_and_a_clean_after_it(spark, tmp_path):
    table = written(spark, tmp_path / "t")
    table.schedule_compaction()
    newest = upsert(spark, table, "d")
    began = TableState.load(table.storage)
    table.compact()
    upsert(spark, table, "e")
    table.clean(retain_commits=2)
    with pytest.raises(TimelineError):
        rows_as_of(spark, began, newest)
    assert rows(rows_of_the_run(spark, began, newest)) == [(1, "d"), (2, "same")]


def test_it_outlives_a_restore_that_lets_it_stand(spark, tmp_path):
    table = written(spark, tmp_path / "t")
    newest = upsert(spark, table, "d")
    table.savepoint()
    began = TableState.load(table.storage)
    upsert(spark, table, "e")
    table.restore(newest)
    with pytest.raises(TimelineError):
        rows_as_of(spark, began, newest)
    assert rows(rows_of_the_run(spark, began, newest)) == [(1, "d"), (2, "same")]


def test_one_that_was_taken_back_or_made_anew_asks_for_another_run(spark, tmp_path):
    table = written(spark, tmp_path / "t")
    table.savepoint()
    kept = TableState.load(table.storage).timeline.completed_writes[-1].requested_time
    newest = upsert(spark, table, "d")
    began = TableState.load(table.storage)
    table.restore(kept)
    upsert(spark, table, "e")
    with pytest.raises(TimelineError, match="cannot be read any more.*Start the run again"):
        rows_of_the_run(spark, began, newest)
