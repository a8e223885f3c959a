"""An upsert with hoodie.engine.skip.unchanged writes nothing for rows that equal what is stored."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError

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
