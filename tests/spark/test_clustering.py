"""Clustering and ordered loads on real Spark."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, WriteConflictError

from tests.helpers.forms import forms

COLUMNS = "id int, ts bigint, day string, a int, s string, d decimal(9,2)"
QUIET = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
BY_SHUFFLE = {"hoodie.engine.clustering.task.bytes": "0"}


def rows(numbers, ts=1):
    return [
        (
            n,
            ts,
            f"d{n % 2}",
            None if n % 17 == 0 else n * 37 % 101,
            f"customer_{n * 13 % 47:03d}",
            Decimal(n % 9 - 4),
        )
        for n in numbers
    ]


@pytest.fixture(params=forms(("cow", "mor"), ("mor",)))
def table(request, spark, tmp_path):
    made = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["day"],
        table_type=request.param,
        options=QUIET,
    )
    for ts, numbers in ((1, range(60)), (2, range(40, 120)), (3, range(0, 120, 7))):
        made.upsert(spark.createDataFrame(rows(numbers, ts), COLUMNS), options=QUIET)
    return made


def seen(frame):
    return sorted(tuple(row) for row in frame.drop("_hoodie_file_name").collect())


def new_files(table, instant):
    return sorted(Path(table.storage.base).glob(f"*/*_{instant}.parquet"))


def test_no_row_changes_in_whatever_order_and_changes_tell_nothing(spark, table):
    expected, newest = seen(table.snapshot()), table.timeline()[-1].requested_time
    small = {**QUIET, **BY_SHUFFLE, "hoodie.clustering.plan.strategy.target.file.max.bytes": "4000"}
    for columns, strategy, more in (
        (["a", "s", "d"], "hilbert", QUIET),
        ("s", None, small),
        (["a", "s"], "z-order", {**small, "hoodie.layout.optimize.curve.build.method": "sample"}),
    ):
        done = table.cluster(columns, strategy=strategy, options=more)
        assert (done.state, done.rows, done.partitions) == ("completed", len(expected), ("d0", "d1"))
        assert seen(table.snapshot()) == expected
    assert seen(table.snapshot(as_of=newest)) == expected
    assert table.changes(newest).count() == 0


def test_a_shuffled_group_becomes_files_that_do_not_overlap(spark, table):
    done = table.cluster(
        "a",
        where="day = 'd1'",
        options={**QUIET, **BY_SHUFFLE, "hoodie.clustering.plan.strategy.target.file.max.bytes": "4000"},
    )
    files = new_files(table, done.instant)
    assert len(files) == done.files_written > 1 and done.partitions == ("d1",)
    read = [[v for v in pq.read_table(f, columns=["a"])["a"].to_pylist() if v is not None] for f in files]
    assert all(values == sorted(values) for values in read)
    spans = sorted((values[0], values[-1]) for values in read if values)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:]))


def test_writes_into_a_planned_clustering_are_refused_before_they_write_or_take_the_plan_back(spark, table):
    planned = table.schedule_clustering("a", options=QUIET).instant
    files = sorted(Path(table.storage.base).rglob("*.parquet"))
    more = spark.createDataFrame(rows(range(3), 9), COLUMNS)
    stands = {"hoodie.clustering.rollback.pending.replacecommit.on.conflict": "false"}
    for write in (table.upsert, table.insert_overwrite, table.delete):
        with pytest.raises(WriteConflictError, match=f"clustering {planned}, which is planned and not done"):
            write(more, options={**QUIET, **stands})
    with pytest.raises(WriteConflictError, match=planned):
        table.upsert(more, options={**QUIET, "hoodie.engine.driver.merge.bytes": "1"})
    assert sorted(Path(table.storage.base).rglob("*.parquet")) == files
    table.insert(spark.createDataFrame(rows(range(900, 903)), COLUMNS), options=QUIET)
    allow = {
        **QUIET,
        "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
    }
    table.upsert(more, options=allow)
    assert table.clusterings() == []
    before = seen(table.snapshot())
    assert table.cluster("a", options=QUIET).state == "completed"
    assert seen(table.snapshot()) == before


@pytest.mark.parametrize("how", ["partitions", "table", "delete"])
def test_an_overwrite_takes_a_plan_back_that_it_makes_pointless(how, spark, table):
    table.schedule_clustering("a", options=QUIET)
    stands = {**QUIET, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "false"}
    with pytest.raises(WriteConflictError, match="until it is done"):
        table.delete_partitions(["d1"], options=stands)
    if how == "delete":
        table.delete_partitions(["d1"], options=QUIET)
        expected = rows(range(0, 120, 2))
    else:
        expected = rows(range(4), 9)
        write = table.insert_overwrite if how == "partitions" else table.insert_overwrite_table
        write(spark.createDataFrame(expected, COLUMNS), options=QUIET)
    assert table.clusterings() == []
    assert table.snapshot().count() == len(expected)
    assert table.cluster("a", options=QUIET).state == "completed"


def test_a_condition_must_be_about_partitions(table):
    with pytest.raises(ConfigError, match="cannot be evaluated on the partition columns day"):
        table.cluster(where="a > 3")
    with pytest.raises(ConfigError, match="give one of them"):
        table.cluster(where="day = 'd1'", partitions=["d1"])
    assert "worth rewriting" in table.cluster(where="day = 'none'").reason


def test_partitions_that_are_not_there_are_refused_with_the_nearest(table):
    for ask in (table.cluster, table.schedule_clustering):
        with pytest.raises(ConfigError, match=r"partition\(s\) \['dd1'\] hold no rows .*did you mean 'd1'\?"):
            ask(partitions=["d1", "dd1"])
    assert table.clusterings() == []


@pytest.mark.parametrize("small", [True, False], ids=["in memory", "by a shuffle"])
def test_a_bulk_load_writes_rows_in_order(small, spark, tmp_path):
    options = {
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "s,a",
        **({} if small else {"hoodie.engine.small.batch.rows": "0"}),
    }
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["day"], precombine_field="ts"
    )
    table.bulk_insert(spark.createDataFrame(rows(range(300)), COLUMNS), options=options)
    assert table.snapshot().count() == 300
    files = list(tmp_path.glob("t/*/*.parquet"))
    for file in files:
        values = pq.read_table(file, columns=["s"])["s"].to_pylist()
        assert values == sorted(values)
    with pytest.raises(ConfigError, match="sort.columns names 'nothing'"):
        table.bulk_insert(
            spark.createDataFrame(rows(range(3)), COLUMNS),
            options={"hoodie.bulkinsert.user.defined.partitioner.sort.columns": "nothing"},
        )
