"""Keys that live in logs only, as Flink and Hudi's bucket index write them, and keys that logs have deleted."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from hudi_engine import HudiTable

from tests.helpers.forms import forms
from tests.helpers.handmade import HandmadeTable

pytestmark = pytest.mark.sampled

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int32())])
COLUMNS = "id string, v int"
WAYS = {
    "driver": {},
    "executors": {"hoodie.engine.small.batch.rows": "0"},
    "joined": {"hoodie.engine.small.batch.rows": "0", "hoodie.engine.wide.partition.bytes": "1"},
    "global": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "global-executors": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.engine.small.batch.rows": "0"},
}


@pytest.fixture(params=forms(WAYS, ("driver", "joined", "global-executors")))
def way(request):
    return WAYS[request.param]


@pytest.fixture
def flink_table(spark, tmp_path):
    """A file group with key ``a`` in its base file and ``b`` in its log only."""
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    base = made.commit({"": {"g-0": _rows(a=1)}})
    instant = made.next_instant()
    blocks = made.data_blocks("", "g-0", _rows(b=1), instant)
    stat = made.append_log("", "g-0", base, blocks, instant)
    made.complete(instant, [dataclasses.replace(stat, num_inserts=1)])
    return HudiTable.open(spark, str(tmp_path / "t"))


def _rows(**values):
    return pa.table({"id": list(values), "v": list(values.values())}).cast(SCHEMA)


def rows_of(table):
    return sorted(tuple(row) for row in table.snapshot().select("id", "v").collect())


def test_a_key_that_lives_in_a_log_only_is_updated_and_deleted(spark, flink_table, way):
    batch = spark.createDataFrame([("b", 2), ("c", 2)], COLUMNS)
    result = flink_table.upsert(batch, options=way)
    assert rows_of(flink_table) == [("a", 1), ("b", 2), ("c", 2)]
    assert result.rows_inserted == 1
    flink_table.delete(spark.createDataFrame([("b",)], "id string"), options=way)
    assert rows_of(flink_table) == [("a", 1), ("c", 2)]


def test_a_key_whose_first_copy_was_deleted_is_there_once_after_an_upsert(spark, tmp_path, way):
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        table_type="mor",
        options={"hoodie.parquet.small.file.limit": "0"},
    )
    key = spark.createDataFrame([("a",)], "id string")
    table.upsert(spark.createDataFrame([("a", 1), ("b", 1)], COLUMNS))
    table.delete(key)
    table.insert(spark.createDataFrame([("a", 2)], COLUMNS))
    table.upsert(spark.createDataFrame([("a", 3)], COLUMNS), options=way)
    assert rows_of(table) == [("a", 3), ("b", 1)]
    table.delete(key)
    table.upsert(spark.createDataFrame([("a", 4)], COLUMNS), options=way)
    assert rows_of(table) == [("a", 4), ("b", 1)]


WIDE_ROWS_SPILL = {"hoodie.memory.merge.max.size": "100000"}
"""Whole rows of the tests below are more than this, their keys are less."""
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


def _wide(spark, start, end, ts, n):
    return spark.range(start, end).selectExpr(
        "cast(id as int) as id", f"{ts} as ts", f"{n} as n", "repeat('x', 1000) as s"
    )


def test_new_rows_go_into_a_file_group_whose_rows_are_more_than_fit_and_no_other_row_changes(spark, tmp_path):
    options = {"hoodie.datasource.write.payload.class": PARTIAL}
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        table_type="mor",
        options=options,
    )
    table.insert(_wide(spark, 0, 200, 1, 0))
    table.upsert(_wide(spark, 0, 200, 2, 1))
    batch = spark.createDataFrame([(5, 3, 555, "z"), (1000, 3, 0, "new")], "id int, ts int, n int, s string")
    table.upsert(batch, options=WIDE_ROWS_SPILL)
    found = sorted(tuple(row) for row in table.snapshot().select("id", "n").collect())
    assert found == [*((key, 555 if key == 5 else 1) for key in range(200)), (1000, 0)]
    assert table.validate(keys=True) == []


def test_a_row_of_a_bucket_whose_log_is_more_than_fits_is_replaced_alone(spark, tmp_path):
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type="mor", options=options
    )
    table.insert(_wide(spark, 0, 10, 1, 0))
    table.upsert(_wide(spark, 10, 210, 1, 0))
    table.replace(_wide(spark, 50, 51, 1, 50), keys=["id"], options=WIDE_ROWS_SPILL)
    found = sorted(tuple(row) for row in table.snapshot().select("id", "n").collect())
    assert found == [(key, 50 if key == 50 else 0) for key in range(210)]
    assert table.validate(keys=True) == []
