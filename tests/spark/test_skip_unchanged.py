"""An upsert with hoodie.engine.skip.unchanged writes nothing for rows that equal what is stored."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError, WriteConflictError

from tests.helpers.forms import in_turn
from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts bigint, dt string, tags array<string>"
ROWS = [(1, 1, "a", ["x"]), (2, 1, "a", None), (3, 1, "b", [])]


def make(spark, tmp_path, table_type, **options):
    return keyed_table(
        spark,
        tmp_path / "t",
        table_type,
        schema=COLUMNS,
        options={"hoodie.engine.skip.unchanged": "true", **options},
    )


@pytest.mark.parametrize(("table_type", "small"), in_turn(("cow", "mor"), ("0", "1000")))
def test_rows_that_equal_what_is_stored_are_left_out(spark, tmp_path, table_type, small):
    table = make(spark, tmp_path, table_type, **{"hoodie.engine.small.batch.rows": small})
    first = table.upsert(spark.createDataFrame(ROWS, COLUMNS)).instant
    table.upsert(spark.createDataFrame([(2, 2, "a", ["y"])], COLUMNS))
    again = table.upsert(spark.createDataFrame([ROWS[0], (2, 2, "a", ["y"]), ROWS[2]], COLUMNS))
    assert (again.files_written, again.rows_updated, again.rows_inserted) == (0, 0, 0)
    late = table.upsert(spark.createDataFrame([(2, 1, "a", ["late"])], COLUMNS))
    assert (late.files_written, late.rows_updated) == (0, 0), "it loses against the row that is there"

    some = table.upsert(spark.createDataFrame([ROWS[0], (3, 2, "b", []), (4, 1, "b", None)], COLUMNS))
    assert (some.rows_updated, some.rows_inserted) == (1, 1)
    stored = {row["id"]: row["_hoodie_commit_time"] for row in table.snapshot().collect()}
    assert stored[1] == first
    assert stored[3] == some.instant

    marked = spark.createDataFrame([(*ROWS[0], True)], COLUMNS + ", _hoodie_is_deleted boolean")
    table.upsert(marked)
    assert sorted(row["id"] for row in table.snapshot().collect()) == [2, 3, 4]


def test_with_a_bucket_index_it_is_refused_by_name(spark, tmp_path):
    table = make(spark, tmp_path, "cow", **{"hoodie.index.type": "BUCKET"})
    with pytest.raises(
        ConfigError, match=r"hoodie.engine.skip.unchanged is true and hoodie.index.type is BUCKET"
    ):
        table.upsert(spark.createDataFrame(ROWS, COLUMNS))


@pytest.mark.parametrize(("table_type", "small"), in_turn(("cow", "mor"), ("0", "1000")))
def test_a_row_that_was_left_as_it_is_counts_as_written_beside_others(
    spark, tmp_path, beaten, table_type, small
):
    own_files = {"hoodie.parquet.small.file.limit": "0", "hoodie.engine.small.batch.rows": small}
    table = make(spark, tmp_path, table_type, **own_files)
    table.upsert(spark.createDataFrame(ROWS, COLUMNS))
    batch = spark.createDataFrame([ROWS[0], (9, 1, "a", None)], COLUMNS)

    beaten(lambda: table.update_where("id = 2", {"tags": "array('y')"}))
    with pytest.raises(WriteConflictError, match="had left as they were"):
        table.upsert(batch)
    beaten(lambda: table.insert(spark.createDataFrame([(7, 1, "a", None)], COLUMNS)))
    table.upsert(batch)
    assert sorted(row["id"] for row in table.snapshot().collect()) == [1, 2, 3, 7, 9]

    beaten(lambda: table.upsert(spark.createDataFrame([ROWS[2], (8, 1, "b", None)], COLUMNS)))
    with pytest.raises(WriteConflictError, match="left out what it found"):
        table.delete(spark.createDataFrame([(3, "b"), (8, "b")], "id int, dt string"))
    assert sorted(row["id"] for row in table.snapshot().collect()) == [1, 2, 3, 7, 8, 9]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_columns_to_update_count_in_whatever_case_they_are_given(spark, tmp_path, table_type):
    table = make(spark, tmp_path, table_type)
    table.upsert(spark.createDataFrame(ROWS, COLUMNS))
    new = spark.createDataFrame([(1, 2, "a", ["new"]), (3, 2, "b", [])], COLUMNS)
    result = table.upsert(new, update_columns=["TAGS"])
    assert result.rows_updated == 1, "the other row brings the tags that it has"
    assert {row["id"]: row["tags"] for row in table.snapshot().collect()} == {1: ["new"], 2: None, 3: []}
