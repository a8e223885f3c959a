"""The index that Spark gets of a table of very many files shows what the manifest shows."""

from __future__ import annotations

import pytest
from hudi_engine.spark.jvm import file_index
from hudi_engine.spark.read import many_files

from tests.helpers.forms import forms
from tests.spark.orders import SHAPES, create_orders, frame

pytestmark = pytest.mark.core


@pytest.fixture
def taken(monkeypatch):
    """Every table counts as one of many files; the frames that were made so."""
    made = []
    real = many_files.frame_of_files

    def noted(*args):
        made.append(real(*args))
        return made[-1]

    monkeypatch.setattr(many_files, "FEWEST", 1)
    monkeypatch.setattr(file_index, "_CHUNK", 2)
    monkeypatch.setattr(many_files, "frame_of_files", noted)
    return made


def rows(df):
    return sorted(tuple(row) for row in df.collect())


def plan_of(df):
    return df._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(
    "shape",
    forms(SHAPES, ("cow-driver-partitioned", "mor-driver-partitioned", "cow-executors-unpartitioned")),
)
def test_rows_are_those_of_the_manifest_and_partitions_are_pruned(spark, tmp_path, monkeypatch, taken, shape):
    kind, small, partitions = SHAPES[shape]
    table = create_orders(spark, tmp_path / "or ders%20", kind, small, partitions)
    table.bulk_insert(
        frame(spark, *[(n, 1, dt, "old") for n, dt in enumerate(["a", "b", "c d", "50%", "e"])])
    )
    table.upsert(frame(spark, (1, 2, "b", "new"), (9, 2, "a", "more")))
    found, plan = rows(table.snapshot()), plan_of(table.snapshot().where("dt = 'b'"))
    assert len(taken) == 2 and None not in taken
    assert "InMemoryFileIndex" in plan and "Batched: true" in plan
    assert ("isnotnull(dt" in plan.split("PartitionFilters: [")[1].split("]")[0]) is bool(partitions)
    monkeypatch.setattr(many_files, "FEWEST", 1000)
    by_manifest = table.snapshot()
    assert "MetadataLogFileIndex" in plan_of(by_manifest)
    assert found == rows(by_manifest) and len(found) == 6
    assert len(taken) == 2


def test_a_frame_stays_what_it_was_when_the_table_moves_on(spark, tmp_path, taken):
    table = create_orders(spark, tmp_path / "t", "cow", None, ["dt"])
    table.upsert(frame(spark, (1, 1, "a", "one")))
    before = table.snapshot().select("id", "name")
    table.upsert(frame(spark, (1, 2, "a", "two"), (2, 2, "b", "new")))
    assert rows(before) == [(1, "one")]
    assert rows(table.snapshot().select("id", "name")) == [(1, "two"), (2, "new")]


def test_a_frame_that_spark_lists_anew_fails_and_is_never_empty(spark, tmp_path, taken):
    table = create_orders(spark, tmp_path / "t", "cow", None, ["dt"])
    table.upsert(frame(spark, (1, 1, "a", "one")))
    kept = table.snapshot().cache()
    assert kept.count() == 1
    spark.catalog.refreshByPath(str(tmp_path / "t"))
    with pytest.raises(Exception, match=r"hoodie\.properties|assertion failed"):
        kept.collect()
    kept.unpersist()


def test_a_session_without_such_a_cache_reads_the_manifest(spark, tmp_path, taken):
    table = create_orders(spark, tmp_path / "t", "cow", None, ["dt"])
    table.upsert(frame(spark, (1, 1, "a", "one")))
    key = "spark.sql.hive.filesourcePartitionFileCacheSize"
    before = spark.conf.get(key)
    spark.conf.set(key, "0")
    try:
        assert [row.id for row in table.snapshot().collect()] == [1]
    finally:
        spark.conf.set(key, before)
    assert taken == [None]


def test_a_record_is_a_file_in_hadoops_own_form():
    record = b"\x08\x02\x12\x0bfile:/a b/x\x18\xac\x02\x38\x05\x50\x01\x58\x80\x80\x80\x40"
    assert (
        file_index._records([(b"file:/a b/x", 300, 5)])
        == b"\x00\x00\x00\x01" + len(record).to_bytes(4, "big") + record
    )
