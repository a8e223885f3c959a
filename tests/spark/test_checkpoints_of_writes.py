"""What a table has consumed of its inputs never goes backwards, whichever write began first."""

from __future__ import annotations

import pytest
from hudi_engine import ConsumedMeanwhileError, HudiTable, rebuild_table
from hudi_engine.table.changes.checkpoint import read_checkpoint
from hudi_engine.table.state import TableState
from hudi_engine.table.write import pipeline

NOTED = "dbt_hudi.checkpoint"
DEFINITION = {"name": "t", "record_key": ["id"], "partition_by": ["part"]}
RETRIES = {"hoodie.write.num.retries.on.conflict.failures": "2"}


@pytest.fixture
def table(spark, tmp_path):
    made = HudiTable.create(spark, str(tmp_path / "t"), **DEFINITION)
    made.upsert(rows(spark, 1, "a"), options=noting(10))
    return made


def rows(spark, number, part):
    return spark.createDataFrame([(number, part)], "id int, part string")


def noting(number):
    return {NOTED: f'{{"s.in": "{number}"}}', **RETRIES}


def noted(table):
    return read_checkpoint(TableState.load(table.storage))


def overtaken_by(monkeypatch, write):
    """Let another write come between the files of the next one and its commit."""
    inspect, others = pipeline.inspect, [write]

    def overtaken(*args):
        if others:
            others.pop()()
        inspect(*args)

    monkeypatch.setattr(pipeline, "inspect", overtaken)


@pytest.mark.parametrize("way", ["upsert", "insert", "replace"])
def test_rows_of_a_window_that_another_writer_has_consumed_are_not_written_again_by_a_retry(
    spark, table, monkeypatch, way
):
    overtaken_by(monkeypatch, lambda: table.upsert(rows(spark, 3, "c"), options=noting(30)))
    more = {"keys": ["id"]} if way == "replace" else {}
    with pytest.raises(ConsumedMeanwhileError, match="after the checkpoint .*10.*has .*30.*Read them again"):
        getattr(table, way)(rows(spark, 2, "b"), options=noting(20), **more)
    assert noted(table) == {"s.in": "30"}
    assert sorted(row.id for row in table.snapshot().collect()) == [1, 3]


def test_a_write_says_which_checkpoint_its_rows_were_taken_after(spark, table):
    table.upsert(rows(spark, 3, "c"), options=noting(30))
    late = {**noting(20), "dbt_hudi.checkpoint.before": '{"s.in":"10"}'}
    with pytest.raises(ConsumedMeanwhileError):
        table.upsert(rows(spark, 2, "b"), options=late)
    with pytest.raises(ConsumedMeanwhileError):
        table.upsert(rows(spark, 2, "b").limit(0), options=late)
    assert noted(table) == {"s.in": "30"}
    table.upsert(rows(spark, 2, "b"), options={**noting(40), "dbt_hudi.checkpoint.before": '{"s.in":"30"}'})
    assert noted(table) == {"s.in": "40"}


def test_another_writer_that_consumes_nothing_is_no_conflict(spark, table, monkeypatch):
    overtaken_by(monkeypatch, lambda: table.upsert(rows(spark, 3, "c")))
    table.upsert(rows(spark, 2, "b"), options=noting(20))
    assert noted(table) == {"s.in": "20"}


def test_a_table_that_is_written_anew_may_begin_where_it_likes(spark, table, monkeypatch):
    table.upsert(rows(spark, 3, "c"), options=noting(30))
    table.insert_overwrite_table(rows(spark, 2, "b"), options=noting(20))
    assert noted(table) == {"s.in": "20"}


def test_a_table_that_is_built_anew_has_consumed_what_its_own_write_says_or_nothing(spark, table):
    rebuild_table(spark, table.path, rows(spark, 2, "b").limit(0), **DEFINITION)
    assert noted(table) == {}
    table.upsert(rows(spark, 3, "c"))
    assert noted(table) == {}
    rebuild_table(spark, table.path, rows(spark, 2, "b"), **DEFINITION, options=noting(20))
    assert noted(table) == {"s.in": "20"}
