"""How rows are read: natively wherever Spark can, and a batch no oftener than needed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.catalog.spark_table import refresh_table
from hudi_engine.spark.jvm.frames import depends_on_time
from hudi_engine.spark.read import spark_read
from hudi_engine.spark.read.spark_read import map_slices, snapshot_frame
from hudi_engine.spark.write.rows.batch import estimated_rows, is_parquet_scan
from hudi_engine.table.state import TableState
from pyspark.sql import functions as F

from tests.helpers.handmade import HandmadeTable, file_id
from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled


def by_name(spark, path, table_type, options):
    """A table without ordering whose folders name their column."""
    options = {"hoodie.datasource.write.hive_style_partitioning": "true", **options}
    return keyed_table(spark, path, table_type, precombine_field=None, options=options)


def merge_on_read(spark, path, **options):
    table = by_name(spark, path, "mor", options)
    frame = spark.range(20_000).selectExpr("id", "concat('d', id % 2) as dt", "'old' as v")
    table.bulk_insert(frame)
    table.upsert(frame.where("id % 9 = 0").withColumn("v", F.lit("new")))
    table.delete(frame.where("id % 7 = 0").select("id", "dt"))
    return table


def plan_of(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def test_a_snapshot_with_logs_is_read_by_spark_alone(spark, tmp_path):
    table = merge_on_read(spark, tmp_path / "t")
    merged_by_tasks = snapshot_frame(spark, TableState.load(table.storage), resolve_options(None))
    native = table.snapshot()
    assert "MapInArrow" in plan_of(merged_by_tasks) and "MapInArrow" not in plan_of(native)
    assert native.columns == merged_by_tasks.columns
    found = {tuple(row) for row in native.collect()}
    assert found == {tuple(row) for row in merged_by_tasks.collect()}
    counts = native.groupBy("v").count().collect()
    assert {row.v: row["count"] for row in counts} == {
        "new": sum(n % 9 == 0 and n % 7 != 0 for n in range(20_000)),
        "old": sum(n % 9 != 0 and n % 7 != 0 for n in range(20_000)),
    }


def test_the_mask_of_each_file_counts_its_own_rows(spark, tmp_path, database):
    table = merge_on_read(spark, tmp_path / "t")
    name = TableName(database, "t")
    register_table(spark, name, table.storage)
    later = spark.range(20_000).where("id % 2 = 1 and id % 11 = 0")
    table.upsert(later.selectExpr("id", "'d1' as dt", "'later' as v"))
    refresh_table(spark, name)
    expected = {
        (n, "later" if n % 2 and n % 11 == 0 else "new" if n % 9 == 0 else "old")
        for n in range(20_000)
        if n % 7 != 0 or (n % 2 and n % 11 == 0)
    }

    assert {(row.id, row.v) for row in table.snapshot().collect()} == expected
    assert {(row.id, row.v) for row in spark.table(name.sql).collect()} == expected


def test_a_snapshot_that_is_not_published_is_merged_by_tasks(spark, tmp_path):
    table = merge_on_read(spark, tmp_path / "t", **{"hoodie.engine.publish.manifest": "false"})
    assert "MapInArrow" in plan_of(table.snapshot())
    assert table.snapshot().count() == sum(n % 7 != 0 for n in range(20_000))


def many_partitions(spark, path, **options):
    table = by_name(spark, path, "cow", options)
    table.upsert(spark.range(120).selectExpr("id", "concat('d', id % 40) as dt", "id as v"))
    return table


class Counted:
    """Listings and opens of local files while it is entered."""

    def __init__(self, monkeypatch):
        self.lists, self.opens = [], []
        for name, seen in (("list", self.lists), ("open_input", self.opens)):
            original = getattr(LocalStorage, name)

            def counted(storage, path, *args, _seen=seen, _original=original, **kwargs):
                _seen.append(path)
                return _original(storage, path, *args, **kwargs)

            monkeypatch.setattr(LocalStorage, name, counted)


def pruned_by(frame):
    plan = plan_of(frame)
    return plan.partition("PartitionFilters: [")[2].partition("]")[0]


def test_files_of_one_name_in_two_partitions_lose_their_own_rows_alone(spark, tmp_path):
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("dt", pa.string())])
    table, group = HandmadeTable(tmp_path / "t", schema, ("dt",), merge_on_read=True), file_id()

    def rows(dt, *values):
        return pa.Table.from_pylist([{"id": n, "v": v, "dt": dt} for n, v in values], schema)

    first = table.commit(
        {f"dt={dt}": {group: rows(dt, *((n, "old") for n in range(4)))} for dt in ("a", "b")}
    )
    later = table.next_instant()
    logs = {"a": rows("a", (0, "new")), "b": rows("b", (3, "new"))}
    blocks = {dt: table.data_blocks(f"dt={dt}", group, each, later) for dt, each in logs.items()}
    table.complete(
        later, [table.append_log(f"dt={dt}", group, first, each, later) for dt, each in blocks.items()]
    )

    found = HudiTable.open(spark, str(table.path)).snapshot()

    expected = {(n, "new" if (n, dt) in ((0, "a"), (3, "b")) else "old", dt) for n in range(4) for dt in "ab"}
    assert {(row.id, row.v, row.dt) for row in found.collect()} == expected
    assert "MapInArrow" in plan_of(found) and "FileScan parquet" in plan_of(found)


def test_places_of_very_many_replaced_rows_are_not_sent_to_every_executor(spark, tmp_path, monkeypatch):
    table = merge_on_read(spark, tmp_path / "t")
    broadcast = snapshot_frame(spark, TableState.load(table.storage), resolve_options(None))
    assert "BroadcastHashJoin" in plan_of(broadcast)
    monkeypatch.setattr(spark_read, "_MAX_BROADCAST_BYTES", 0)
    sorted_ = snapshot_frame(spark, TableState.load(table.storage), resolve_options(None))
    assert "SortMergeJoin" in plan_of(sorted_) and "Broadcast" not in plan_of(sorted_)
    assert {tuple(row) for row in sorted_.collect()} == {tuple(row) for row in broadcast.collect()}


def test_a_published_snapshot_lists_no_folder_and_opens_no_footer_here(spark, tmp_path, monkeypatch):
    table = many_partitions(spark, tmp_path / "t")
    counted = Counted(monkeypatch)
    frame = table.snapshot()
    one = frame.where("dt = 'd3'")

    assert not counted.opens and all(path.startswith(".hoodie") for path in counted.lists)
    assert "d3" in pruned_by(one)
    assert sorted(row.id for row in one.collect()) == [3, 43, 83]
    assert frame.columns[5:] == ["id", "dt", "v"] and frame.count() == 120


def test_a_snapshot_that_is_not_published_opens_one_footer_an_instant(spark, tmp_path, monkeypatch):
    table = many_partitions(spark, tmp_path / "t=x y", **{"hoodie.engine.publish.manifest": "false"})
    later = spark.createDataFrame([(3, "d3", -3)], "id long, dt string, v long")
    table.upsert(later)
    counted = Counted(monkeypatch)
    frame = table.snapshot()

    assert len(counted.opens) == 2
    assert {row.id: row.v for row in frame.collect()} == {n: -3 if n == 3 else n for n in range(120)}


def test_the_table_of_an_earlier_time_is_pruned_by_its_folders(spark, tmp_path):
    table = many_partitions(spark, tmp_path / "t")
    first = table.timeline()[-1].requested_time
    table.upsert(spark.createDataFrame([(3, "d3", -3)], "id long, dt string, v long"))
    frame = table.snapshot(as_of=first).where("dt = 'd3'")

    assert "d3" in pruned_by(frame)
    assert {row.id: row.v for row in frame.collect()} == {3: 3, 43: 43, 83: 83}


def test_only_plain_scans_of_parquet_are_read_twice(spark, tmp_path):
    spark.range(1000).selectExpr("id", "id % 3 as k").write.parquet(str(tmp_path / "p"))
    spark.range(10).write.json(str(tmp_path / "j"))
    files = spark.read.parquet(str(tmp_path / "p"))
    assert is_parquet_scan(files) and is_parquet_scan(files.where("k = 1").select("id"))
    for other in (
        files.join(files.withColumnRenamed("k", "l"), "id"),
        files.groupBy("k").count(),
        files.withColumn("r", F.rand()),
        spark.read.json(str(tmp_path / "j")),
        spark.range(10),
    ):
        assert not is_parquet_scan(other)
    assert 0 < estimated_rows(files) <= 2000


@pytest.mark.parametrize(
    "said",
    [
        "current_timestamp()",
        "now()",
        "current_date()",
        "curdate()",
        "localtimestamp()",
        "unix_timestamp()",
        "cast('now' as timestamp)",
        "cast('today' as date)",
    ],
)
def test_rows_that_the_time_may_change_are_told(spark, tmp_path, said):
    spark.range(10).write.parquet(str(tmp_path / "p"))
    rows = spark.read.parquet(str(tmp_path / "p")).selectExpr(
        "id", "id as other", f"cast({said} as string) as t"
    )
    assert is_parquet_scan(rows) and depends_on_time(rows)
    rows.createOrReplaceTempView("rows_at_a_time")
    through = spark.sql("with r as (select * from rows_at_a_time where t is not null) select id from r")
    for other in (rows.where("t > '2020'").select("id"), rows.select(F.concat("id", "t")), through):
        assert depends_on_time(other)
    for other in (rows.select("id"), rows.where("id > 3").select(F.col("id").cast("string"), "other")):
        assert not depends_on_time(other)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_every_task_is_run_once_whether_few_or_many(spark, count):
    """Few go with the function, many are broadcast."""
    read = map_slices(
        spark, range(count), pa.schema([("id", pa.int64())]), lambda each: pa.table({"id": [each, -each]})
    )
    assert sorted(row["id"] for row in read.collect()) == sorted([*range(count), *range(0, -count, -1)])
