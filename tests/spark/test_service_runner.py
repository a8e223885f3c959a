"""Where compaction and clustering do their work: threads for little, the session's Python workers for much."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hudi_engine.spark.read.collect import run_in_spark
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.services import clustering

from tests.helpers.keyed import keyed_table

ROWS = 4_000


def jobs_of(spark, call):
    group = f"service-{id(call)}"
    spark.sparkContext.setJobGroup(group, "a service")
    try:
        call()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.fixture
def table(spark, tmp_path):
    made = keyed_table(spark, tmp_path / "t", "mor", precombine_field=None)
    frame = spark.range(ROWS).selectExpr("id", "concat('d', id % 3) as dt", "'old' as v")
    made.bulk_insert(frame)
    made.upsert(frame.where("id % 5 = 0").selectExpr("id", "dt", "'new' as v"))
    return made


def values(table):
    return {(row.id, row.v) for row in table.snapshot().collect()}


EXPECTED = {(n, "old" if n % 5 else "new") for n in range(ROWS)}


def test_little_is_compacted_by_threads(spark, table):
    assert jobs_of(spark, table.compact) == 0
    assert values(table) == EXPECTED


def test_much_is_compacted_by_tasks_of_spark(spark, table, monkeypatch):
    monkeypatch.setattr(clustering, "_MIN_BYTES", 0)
    assert jobs_of(spark, table.compact) == 1
    assert values(table) == EXPECTED
    assert table.compact().instant is None  # nothing was left


def test_a_compaction_has_no_more_tasks_than_allowed(spark, table, monkeypatch):
    monkeypatch.setattr(clustering, "_MIN_BYTES", 0)
    started = []
    run = clustering.run_in_spark
    monkeypatch.setattr(
        clustering,
        "run_in_spark",
        lambda session: lambda function, items: started.append(len(items)) or run(session)(function, items),
    )
    table.compact(options={"hoodie.engine.services.parallelism": "2"})
    assert started == [2]
    assert values(table) == EXPECTED


def test_much_is_clustered_by_tasks_of_spark(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(clustering, "_MIN_BYTES", 0)
    made = keyed_table(spark, tmp_path / "t", "cow", precombine_field=None)
    for start in (0, ROWS // 2):
        rows = spark.range(start, start + ROWS // 2)
        made.bulk_insert(
            rows.selectExpr("id", "concat('d', id % 3) as dt", "if(id % 5 = 0, 'new', 'old') as v")
        )
    assert jobs_of(spark, made.cluster) == 1
    assert values(made) == EXPECTED


def test_workers_with_limited_memory_are_left_alone(spark, table, monkeypatch):
    monkeypatch.setattr(clustering, "_MIN_BYTES", 0)
    monkeypatch.setattr(clustering, "_WORKER_LIMIT", "spark.app.name")  # a setting that this session has
    assert jobs_of(spark, table.compact) == 0
    assert values(table) == EXPECTED


def test_tasks_of_both_kinds_run_in_the_same_python_workers(spark):
    prepare_session(spark)

    def ours(batches):
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([os.getppid()] * batch.num_rows)], names=["parent"])

    of_query = {row.parent for row in spark.range(0, 8, 1, 4).mapInArrow(ours, "parent long").collect()}
    assert set(run_in_spark(spark)(lambda _: os.getppid(), list(range(4)))) == of_query
