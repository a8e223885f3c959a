"""Rows that delete by a mark of their batch alone: the mark never becomes a column of the table."""

from __future__ import annotations

from datetime import date

import pytest
from hudi_engine import DataError, HudiTable
from hudi_engine.schema.meta_fields import DELETES
from hudi_engine.write.rows.clauses import MergeClauses

from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table

COLUMNS = "id int, n int, dt string"
MARKED = f"{COLUMNS}, {DELETES} boolean"
STORED = [(1, 10, "a"), (2, 20, "a"), (3, 30, "b")]
# 2 goes, 3 is updated, 4 comes, and 5 was never there
BATCH = [(2, 20, "a", True), (3, 31, "b", False), (4, 40, "b", None), (5, 50, "b", True)]
AFTER = [(1, 10, "a"), (3, 31, "b"), (4, 40, "b")]

SHAPES = {
    "cow": ("cow", {}),
    "mor": ("mor", {}),
    "cow-executors": ("cow", {"hoodie.engine.small.batch.rows": "0"}),
    "mor-executors-global": (
        "mor",
        {"hoodie.engine.small.batch.rows": "0", "hoodie.index.type": "GLOBAL_SIMPLE"},
    ),
}


@pytest.mark.parametrize(
    ("shape", "way"),
    [(shape, "upsert") for shape in SHAPES]
    + [("cow-executors", "merge"), ("mor-executors-global", "match_condition")],
)
def test_marked_rows_delete_and_the_mark_leaves_no_trace(spark, tmp_path, shape, way):
    table_type, options = SHAPES[shape]
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["dt"], table_type=table_type
    )
    table.upsert(spark.createDataFrame(STORED, COLUMNS))
    batch = spark.createDataFrame(BATCH, MARKED)
    if way == "merge":
        result = table.merge(batch, MergeClauses(), options=options)
    else:
        condition = "DBT_INTERNAL_DEST.n > 0" if way == "match_condition" else None
        result = table.upsert(batch, options=options, match_condition=condition)
    assert table.schema.names == ["id", "n", "dt"]
    assert "is_deleted" not in result.metadata.extra_metadata["schema"]
    assert rows_by_hudi_rs(str(tmp_path / "t"), ["id", "n", "dt"]) == AFTER
    assert sorted(map(tuple, table.snapshot().select("id", "n", "dt").collect())) == AFTER


def test_replace_takes_marked_rows_out_and_does_not_write_them(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    table.upsert(spark.createDataFrame(STORED, COLUMNS))
    table.replace(spark.createDataFrame(BATCH, MARKED), keys=["id"])
    assert table.schema.names == ["id", "n", "dt"]
    assert sorted(map(tuple, table.snapshot().select("id", "n", "dt").collect())) == AFTER


def test_a_mark_that_is_no_boolean_is_refused(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(DataError, match="has to be boolean"):
        table.upsert(spark.createDataFrame([(1, "yes")], f"id int, {DELETES} string"))


@pytest.mark.parametrize("way", ["upsert", "merge"])
def test_a_delete_of_the_first_day_of_1970_says_no_order_and_wins_whatever_files_hold_the_rows(
    spark, tmp_path, table_type, way
):
    table = keyed_table(spark, tmp_path / "t", table_type, partition_by=None)
    columns = "id int, ts date, name string"
    table.upsert(spark.createDataFrame([(key, date(2026, 1, 1), "kept") for key in (1, 2)], columns))
    table.upsert(spark.createDataFrame([(1, date(2026, 1, 2), "later")], columns))
    marked = spark.createDataFrame([(1, date(1970, 1, 1), "goes", True)], f"{columns}, {DELETES} boolean")
    table.upsert(marked) if way == "upsert" else table.merge(marked, MergeClauses())
    assert [row.id for row in table.snapshot().collect()] == [2]
