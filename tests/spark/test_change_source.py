"""The changes of a table as a format of ``spark.read``."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, register_change_source
from hudi_engine.errors import UnsupportedTableError

COLUMNS = "id int, ts bigint, name string"


@pytest.fixture
def source(spark):
    if spark.version.startswith("3."):
        with pytest.raises(UnsupportedTableError, match="needs Spark 4"):
            register_change_source(spark)
        pytest.skip("this Spark has no such sources, and it was said")
    register_change_source(spark)


def make(spark, path):
    return HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        schema=COLUMNS,
        options={"hoodie.clean.automatic": "false"},
    )


def upsert(spark, table, *rows):
    return table.upsert(spark.createDataFrame(list(rows), COLUMNS)).instant


def told(frame):
    return sorted(
        (row["_change_type"], row["id"], row["name"], row["_commit_time"]) for row in frame.collect()
    )


def test_a_batch_tells_what_changes_tells(spark, tmp_path, source):
    table = make(spark, tmp_path / "t")
    first = upsert(spark, table, (1, 1, "one"), (2, 1, "two"))
    second = upsert(spark, table, (1, 2, "ONE"))
    table.delete(spark.createDataFrame([(2, 2, "two")], COLUMNS))
    reader = spark.read.format("hudi_changes")
    for mode in ("net", "all", "latest"):
        assert told(reader.option("mode", mode).option("start", first).load(table.path)) == [
            each
            for each in told(table.changes(first, mode="all" if mode == "all" else "net"))
            if mode != "latest" or each[0] != "delete"
        ]
    assert told(spark.read.format("hudi_changes").load(table.path)) == told(table.changes())
    ended = spark.read.format("hudi_changes").option("start", first).option("end", second).load(table.path)
    assert told(ended) == [("update_after", 1, "ONE", second)]


def test_wrong_options_are_told_together(spark, tmp_path, source):
    table = make(spark, tmp_path / "t")
    reader = (
        spark.read.format("hudi_changes").option("mode", "some").option("max_rows", "0").option("limit", "1")
    )
    with pytest.raises(Exception, match="'limit' is none; legal.*mode is 'some'.*max_rows is '0'"):
        reader.load(table.path).collect()
