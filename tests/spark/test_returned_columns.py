"""Followers of a table with a column that was dropped and came back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hudi_engine import HistoryGapError, HudiTable
from hudi_engine.spark.front.rebuild import rebuild_table

pytestmark = pytest.mark.sampled

WIDE, NARROW = "id int, ts bigint, x int", "id int, ts bigint"
DEFINITION = {"name": "t", "record_key": ["id"], "precombine_field": "ts"}


@pytest.fixture(params=["cow", "mor"])
def table(request, spark, tmp_path):
    """A table of two rows with values in x."""
    table = HudiTable.create(spark, str(tmp_path / "t"), table_type=request.param, **DEFINITION)
    table.upsert(spark.createDataFrame([(1, 1, 10), (2, 1, 20)], WIDE))
    return table


def drop(spark, table):
    """Take x out, and write the file of both rows again."""
    dropped = table.alter_schema(spark.createDataFrame([], NARROW).schema)
    table.upsert(spark.createDataFrame([(1, 2)], NARROW))
    if table.config.table_type.value == "MERGE_ON_READ":
        table.compact()
    return dropped


def times(table):
    return sorted(each.instant for each in table.commits())


def test_a_warning_names_a_column_that_comes_back(spark, table, caplog):
    table.alter_schema(spark.createDataFrame([], NARROW).schema)
    table.upsert(spark.createDataFrame([(3, 1, 30)], "id int, ts bigint, y int"))
    assert "comes back" not in caplog.text
    table.upsert(spark.createDataFrame([(3, 2, 30)], WIDE))
    assert "table t: column x was dropped before and comes back" in caplog.text


def test_rows_that_lost_or_regained_a_value_which_nobody_wrote_are_a_gap(spark, table):
    (first,) = times(table)
    drop(spark, table)
    away = times(table)[-1]
    assert table.changes(first).count() == 1, "a column that stays away is not told"
    table.upsert(spark.createDataFrame([(1, 3, 11)], WIDE))
    back = times(table)[-1]
    for start in (first, away):
        for mode in ("net", "all", "latest"):
            with pytest.raises(HistoryGapError, match=f"column 'x' had been dropped .* commit {back}") as gap:
                table.changes(start, mode=mode)
            assert gap.value.oldest == back
    rows = table.changes(first, on_gap="snapshot").select("id", "x", "_change_type").collect()
    assert sorted(map(tuple, rows)) == [(1, 11, "insert"), (2, None, "insert")]
    table.upsert(spark.createDataFrame([(2, 4, 22)], WIDE))
    assert [row["id"] for row in table.changes(back).collect()] == [2]
    assert table.changes(None).count() == 2, "from the beginning all rows are told as they are"


def test_a_drop_that_is_in_the_archive_by_now_counts_too(spark, tmp_path):
    few = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    table = HudiTable.create(spark, str(tmp_path / "t"), options=few, **DEFINITION)
    table.upsert(spark.createDataFrame([(1, 1, 10)], WIDE))
    drop(spark, table)
    for number in range(8):
        table.upsert(spark.createDataFrame([(2, number)], NARROW))
    active = times(table)
    assert len(active) <= 4
    table.upsert(spark.createDataFrame([(2, 9, 21)], WIDE))
    with pytest.raises(HistoryGapError, match="column 'x' had been dropped"):
        table.changes(active[-1])


def test_where_nothing_is_before_the_start_all_rows_are_told_as_they_are(spark, table):
    drop(spark, table)
    table.upsert(spark.createDataFrame([(1, 3, 11)], WIDE))
    rows = table.changes("2020-01-01").select("id", "x", "_change_type").collect()
    assert sorted(map(tuple, rows)) == [(1, 11, "insert"), (2, None, "insert")]
    assert table.cdc("2020-01-01").count() == 4, "images of each commit are told"


def test_the_columns_that_a_service_names_are_not_those_of_the_table(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), table_type="mor", **DEFINITION)
    table.upsert(spark.createDataFrame([(1, 1)], NARROW))
    first = times(table)[0]
    table.upsert(spark.createDataFrame([(1, 2, 10)], WIDE))
    done = table.compact()
    body = Path(table.path, ".hoodie", f"{done.instant}.commit")
    told = json.loads(body.read_text())
    fields = json.loads(told["extraMetadata"]["schema"])
    fields["fields"] = [each for each in fields["fields"] if each["name"] != "x"]
    told["extraMetadata"]["schema"] = json.dumps(fields)
    body.write_text(json.dumps(told))
    table.upsert(spark.createDataFrame([(1, 3, 11)], WIDE))
    assert HudiTable.open(spark, table.path).changes(first).count() == 1


def test_a_new_column_is_no_gap(spark, table):
    (first,) = times(table)
    table.upsert(spark.createDataFrame([(1, 2, 10, "a")], f"{WIDE}, y string"))
    table.upsert(spark.createDataFrame([(2, 2, 20, "b")], f"{WIDE}, y string"))
    assert table.changes(first).count() == 2


def test_a_table_that_is_replaced_as_a_whole_may_have_its_columns_come_and_go(spark, table):
    (first,) = times(table)
    definition = {**DEFINITION, "table_type": "cow" if "COPY" in table.config.table_type.value else "mor"}
    for rows, columns in (([(1, 2), (2, 2)], NARROW), ([(1, 3, 10), (2, 3, 21)], WIDE)):
        rebuild_table(spark, table.path, spark.createDataFrame(rows, columns), **definition)
    rows = HudiTable.open(spark, table.path).changes(first).select("id", "x", "_change_type").collect()
    assert sorted(map(tuple, rows)) == [(1, 10, "update_after"), (2, 21, "update_after")]
