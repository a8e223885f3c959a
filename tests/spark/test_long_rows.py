"""Rows too long for the driver are measured by the tasks that make them, and go to the executors."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError, HudiTable, SchemaError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.read import collect
from hudi_engine.spark.read.collect import to_arrow, to_arrow_within_limit
from hudi_engine.spark.write.rows.batch import align, fetch_small
from hudi_engine.table.write import driver_path
from hudi_engine.table.write.fit import FitPolicy

pytestmark = pytest.mark.sampled

MIB = 1 << 20


def long_rows(spark, count, length):
    text = f"repeat(cast(id % 10 as string), {length}) v"
    return spark.range(0, count, 1, 1).selectExpr("concat('k', id) k", "1L ts", text, "array(id) n")


def collected_bytes(monkeypatch):
    """Return a list that the bytes of each result of Spark are added to."""
    found, batches = [], collect._batches

    def counted(frame):
        result = batches(frame)
        found.append(sum(each.nbytes for each in result))
        return result

    monkeypatch.setattr(collect, "_batches", counted)
    return found


@pytest.mark.parametrize(("count", "length"), [(46, 200_000), (2000, 4_000), (20_000, 300)])
def test_a_batch_beyond_the_limit_does_not_come_to_the_driver(spark, monkeypatch, count, length):
    found = collected_bytes(monkeypatch)
    assert to_arrow_within_limit(long_rows(spark, count, length), MIB, 200_001) is None
    assert max(found) < 3 * MIB


def test_rows_within_the_limit_come_as_they_are(spark, monkeypatch):
    frame = spark.sql(
        "select id, cast(id as decimal(20, 3)) d, if(id % 3 = 0, null, concat('é', id)) s, cast('x' as binary) b, "
        "array(id, null) a, map('k', id) m, struct(id i, 'y' `Y`) t, timestamp'2020-01-01' at from range(500)"
    )
    found = collected_bytes(monkeypatch)
    got = to_arrow_within_limit(frame, MIB, 200_001)
    assert len(found) == 1
    assert got.cast(to_arrow(frame).schema).to_pylist() == to_arrow(frame).to_pylist()
    assert to_arrow_within_limit(frame.where("id < 0"), MIB).num_rows == 0
    assert to_arrow_within_limit(frame, MIB, 7).num_rows == 7


def test_a_long_row_behind_many_short_ones_still_comes(spark):
    frame = spark.range(0, 1000, 1, 1).selectExpr("id", "repeat('x', if(id = 999, 10000, 1)) v")
    assert to_arrow_within_limit(frame, MIB).equals(to_arrow(frame))


def test_long_rows_are_written_by_the_executors(spark, tmp_path, monkeypatch):
    found = collected_bytes(monkeypatch)
    monkeypatch.setattr(driver_path, "run_on_driver", None)
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["k"], precombine_field="ts")
    table.bulk_insert(long_rows(spark, 46, 200_000), options={"hoodie.engine.small.batch.bytes": str(MIB)})
    assert max(found) < MIB
    assert table.snapshot().selectExpr("count(*)", "sum(length(v))").first() == (46, 46 * 200_000)


@pytest.mark.long
def test_rows_of_20_mb_are_no_small_batch(spark, monkeypatch):
    frame = long_rows(spark, 12, 20 * MIB)
    found = collected_bytes(monkeypatch)
    options = resolve_options(None)
    batch = align(frame, None, FitPolicy())
    assert fetch_small(batch, options) is None
    assert max(found) < MIB


def test_deep_nesting_is_refused_before_anything_is_written(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["k"])
    deep = "1"
    for _ in range(60):
        deep = f"array({deep})"
    with pytest.raises(SchemaError, match="more than 50 levels deep"):
        table.upsert(spark.sql(f"select 'a' k, {deep} v"))
    assert table.timeline() == []


def test_a_global_index_with_an_ordering_that_logs_cannot_hold_is_refused(spark, tmp_path):
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["k"],
        partition_by=["p"],
        precombine_field="o",
        table_type="mor",
    )
    rows = spark.sql("select 'a' k, 'x' p, cast(1 as decimal(38, 18)) o")
    table.upsert(rows)
    with pytest.raises(ConfigError, match="precombine_field 'o' has type decimal"):
        table.upsert(rows, options={"hoodie.index.type": "GLOBAL_SIMPLE"})


def test_parquet_is_read_by_version_1_whatever_the_session_prefers(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["k"], table_type="mor")
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        table.upsert(spark.sql("select 'a' k, 1 v union all select 'b', 1"))
        table.upsert(spark.sql("select 'a' k, 2 v"))
        rows = lambda: sorted(tuple(row) for row in table.snapshot().select("k", "v").collect())  # noqa: E731
        assert rows() == [("a", 2), ("b", 1)]
        assert table.delete_where("v = 1").rows_deleted == 1
        assert rows() == [("a", 2)]
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")
