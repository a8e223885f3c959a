"""A first build of another definition than the table that nobody has written to yet."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, WriteConflictError, build_table
from hudi_engine.spark.front import rebuild

ROWS = "id int, k int"


def test_a_first_build_of_another_definition_replaces_no_rows_that_came_meanwhile(
    spark, tmp_path, monkeypatch
):
    path, mark = str(tmp_path / "t"), rebuild.mark_builder
    HudiTable.create(spark, path, name="t", record_key=["id"], schema=ROWS)

    def late(side):
        HudiTable.open(spark, path).upsert(spark.createDataFrame([(1, 1)], ROWS))
        return mark(side)

    monkeypatch.setattr(rebuild, "mark_builder", late)
    with pytest.raises(WriteConflictError, match="was committed meanwhile"):
        build_table(spark, path, spark.createDataFrame([(2, 2)], ROWS), name="t", record_key=["k"])
    table = HudiTable.open(spark, path)
    assert [(row.id, row.k) for row in table.snapshot().collect()] == [(1, 1)]
    assert table.config.record_key_fields == ("id",)
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


def test_a_first_build_takes_the_place_of_an_empty_table_of_another_definition(spark, tmp_path):
    path = str(tmp_path / "t")
    HudiTable.create(spark, path, name="t", record_key=["id"], schema=ROWS)
    build_table(spark, path, spark.createDataFrame([(2, 2)], ROWS), name="t", record_key=["k"])
    table = HudiTable.open(spark, path)
    assert table.config.record_key_fields == ("k",)
    assert table.upsert(spark.createDataFrame([(3, 3)], ROWS)).rows_inserted == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]
    assert not (tmp_path / "t" / ".hoodie" / "lock").exists()
