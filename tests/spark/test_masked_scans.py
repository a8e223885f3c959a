"""How a snapshot leaves out rows of base files that logs replace: by an array of bits, or by a join where that is too large."""

from __future__ import annotations

import hudi_engine
import numpy as np
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import SchemaError, UnsupportedTableError
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.jvm.long_array import long_array
from hudi_engine.spark.read import masked, published
from hudi_engine.table.snapshot.native import ROW_INDEX_COLUMN
from pyspark.sql import functions as F

from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled


def plan_of(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def scans_of(frame):
    return plan_of(frame).count("FileScan parquet")


@pytest.fixture
def table(spark, tmp_path):
    """Files of very different sizes, the smaller ones of two partitions."""
    options = {
        "hoodie.parquet.max.file.size": "40000",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    made = keyed_table(spark, tmp_path / "t", "mor", precombine_field=None, options=options)
    made.bulk_insert(
        spark.range(30_000).selectExpr("id", "concat('d', if(id < 29000, 0, id % 2 + 1)) as dt", "'old' as v")
    )
    return made


def upsert(spark, table, condition, value):
    chosen = spark.range(30_000).where(condition)
    table.upsert(
        chosen.selectExpr("id", "concat('d', if(id < 29000, 0, id % 2 + 1)) as dt", f"'{value}' as v")
    )


def values(frame):
    return {(row.id, row.v) for row in frame.collect()}


def test_masked_rows_are_found_by_one_scan_without_a_join(spark, table):
    upsert(spark, table, "id % 7 = 0", "new")
    frame = table.snapshot()
    assert scans_of(frame) == 1 and "Join" not in plan_of(frame)
    assert values(frame) == {(n, "old" if n % 7 else "new") for n in range(30_000)}
    assert frame.where("dt = 'd1'").count() == 500


def test_a_spark_whose_reader_does_not_count_rows_merges_by_tasks(spark, table, monkeypatch):
    upsert(spark, table, "id % 7 = 0", "new")
    monkeypatch.setattr(published, "counts_rows", lambda spark: False)
    frame = table.snapshot()
    assert "MapInArrow" in plan_of(frame)
    assert values(frame) == {(n, "old" if n % 7 else "new") for n in range(30_000)}


def test_files_without_a_mask_are_scanned_by_themselves_where_most_are_without(spark, table):
    upsert(spark, table, "id >= 29000 and id % 2 = 0", "new")
    frame = table.snapshot()
    assert scans_of(frame) == 2 and "Join" not in plan_of(frame)
    assert values(frame) == {(n, "new" if n >= 29_000 and n % 2 == 0 else "old") for n in range(30_000)}


def test_masked_rows_are_pruned_by_partition_and_know_their_files(spark, table):
    upsert(spark, table, "id % 7 = 0", "new")
    rows = table.snapshot().where("dt = 'd1'")
    in_folders = plan_of(rows).split("PartitionFilters: [")[1].split("]")[0]
    assert "dt#" in in_folders and rows.count() == 500
    told = rows.selectExpr("input_file_name() path", "_hoodie_file_name name").distinct().collect()
    # that of a row which a log brought is the base file that it will go to
    assert all("/dt=d1/" in row.path for row in told)
    assert any(row.path.endswith(row.name) for row in told)


def test_a_snapshot_with_masks_stays_what_it_was_and_is_never_empty(spark, table, tmp_path):
    upsert(spark, table, "id % 7 = 0", "new")
    before = table.snapshot()
    kept = table.snapshot().where("dt <> 'd9'").cache()
    upsert(spark, table, "id % 7 = 1", "newer")
    assert values(before) == {(n, "old" if n % 7 else "new") for n in range(30_000)}
    assert kept.count() == 30_000
    spark.catalog.refreshByPath(str(tmp_path / "t"))
    try:
        assert kept.count() == 30_000
    except Exception as error:
        assert "hoodie.properties" in str(error) or "assertion failed" in str(error)
    finally:
        kept.unpersist()
    assert table.snapshot().where("v = 'newer'").count() == len(range(1, 30_000, 7))


def test_two_snapshots_of_one_table_join(spark, table):
    upsert(spark, table, "id % 7 = 0", "new")
    first = table.snapshot()
    upsert(spark, table, "id % 14 = 0", "newer")
    joined = table.snapshot().alias("a").join(first.alias("b"), "id").where("a.v <> b.v")
    assert joined.count() == len(range(0, 30_000, 14))
    itself = first.alias("a").join(first.alias("b"), "id").where("a.v = b.v")
    assert itself.count() == 30_000


@pytest.mark.parametrize("names", [("a b", "50%", "ü/x=1"), ("2024-01-01", "x", "7")])
@pytest.mark.parametrize("by_folder", [True, False])
def test_odd_partition_names_keep_their_rows(spark, tmp_path, names, by_folder):
    options = {"hoodie.datasource.write.hive_style_partitioning": str(by_folder).lower()}
    if "/" in names[-1]:
        options["hoodie.datasource.write.partitionpath.urlencode"] = "true"
    made = keyed_table(spark, tmp_path / "a %b=c", "mor", precombine_field=None, options=options)
    of = f"element_at(array({', '.join(map(repr, names))}), cast(id % 3 as int) + 1)"
    rows = spark.range(3000).selectExpr("id", f"{of} as dt", "'old' as v")
    made.bulk_insert(rows)
    made.upsert(rows.where("id < 500").withColumn("v", F.lit("new")))
    made.delete(rows.where("id >= 2900"))
    expected = {(n, names[n % 3], "new" if n < 500 else "old") for n in range(2900)}
    assert {(row.id, row.dt, row.v) for row in made.snapshot().collect()} == expected
    assert made.snapshot().where(F.col("dt") == names[1]).count() == len(range(1, 2900, 3))


@pytest.mark.parametrize("limit", ["_MAX_NEAR", "_MAX_WORDS"])
def test_masks_that_are_too_many_or_too_large_are_joined(spark, table, monkeypatch, limit):
    upsert(spark, table, "id % 7 = 0", "new")
    upsert(spark, table, "id % 14 = 0", "newer")
    by_array = table.snapshot()
    monkeypatch.setattr(masked, limit, 0)
    joined = table.snapshot()
    assert "BroadcastHashJoin" in plan_of(joined) and "BroadcastHashJoin" not in plan_of(by_array)
    assert values(joined) == values(by_array)


def test_a_row_behind_all_masks_of_its_file_does_not_meet_those_of_the_next(spark, table):
    # the first rows of each file alone
    first = {
        row.id
        for row in table.snapshot()
        .selectExpr("id", "row_number() over (partition by _hoodie_file_name order by _metadata.row_index) n")
        .where("n <= 3")
        .collect()
    }
    upsert(spark, table, F.col("id").isin(sorted(first)), "new")
    assert values(table.snapshot()) == {(n, "new" if n in first else "old") for n in range(30_000)}


def test_a_snapshot_of_logs_that_mask_nothing_has_all_rows(spark, tmp_path):
    made = keyed_table(
        spark, tmp_path / "t", "mor", precombine_field=None, options={"hoodie.index.type": "BUCKET"}
    )
    frame = spark.range(200).selectExpr("id", "'d' as dt", "'v' as v")
    made.upsert(frame.where("id < 100"))
    made.upsert(frame.where("id >= 100"))
    assert values(made.snapshot()) == {(n, "v") for n in range(200)}


def test_an_array_of_numbers_says_each_of_them_in_every_row(spark):
    numbers = np.array([0, -1, 1 << 62, -(1 << 63)], dtype=np.int64)
    row = spark.range(1).select(long_array(spark, numbers).alias("a")).first()
    assert row.a == numbers.tolist()


def test_a_snapshot_taken_while_another_writer_commits_has_each_key_once(spark, tmp_path, monkeypatch):
    """Whatever was written between the look at the table's list of files and Spark's own."""
    options = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    made = keyed_table(spark, tmp_path / "t", "mor", precombine_field=None, options=options)
    frame = spark.range(2000).selectExpr("id", "if(id < 1000, 'a', 'b') as dt", "'old' as v")
    made.bulk_insert(frame)
    original = published._files

    def late(*arguments):
        monkeypatch.setattr(published, "_files", original)
        other = HudiTable.open(spark, str(tmp_path / "t"))
        for condition in ("id % 5 = 1 and id < 1000", "id % 3 = 1 and id >= 1000"):
            other.upsert(frame.where(condition).withColumn("v", F.lit("other")))
        return original(*arguments)

    for before in ("no logs", "logs"):
        if before == "logs":
            made.upsert(frame.where("id < 1000 and id % 7 = 0").withColumn("v", F.lit("new")))
        else:
            made.compact()
        monkeypatch.setattr(published, "_files", late)
        ids = [row.id for row in made.snapshot().select("id").collect()]
        assert sorted(ids) == list(range(2000)), before


@pytest.mark.parametrize("name", ["_metadata", "_METADATA"])
def test_a_table_with_a_column_that_hides_sparks_own_is_merged_by_tasks(spark, tmp_path, name):
    made = keyed_table(spark, tmp_path / "t", "mor", precombine_field=None)
    frame = spark.range(20).selectExpr("id", "'a' as dt", f"'old' as `{name}`")
    made.bulk_insert(frame)
    made.upsert(frame.where("id < 5").withColumn(name, F.lit("new")))
    found = {row.id: row[name] for row in made.snapshot().collect()}
    assert found == {n: "new" if n < 5 else "old" for n in range(20)}


META = "is a meta column, which Hudi fills itself, or differs from one by case only; leave it out"
OWN, FILLED = "this engine's own; rename it", "fills a column of this name with the places of rows; rename it"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("_hoodie_delta_chunk", OWN),
        ("_Hoodie_Delta_Words", OWN),
        ("__hudi_number", OWN),
        (ROW_INDEX_COLUMN, FILLED),
        (ROW_INDEX_COLUMN.upper(), FILLED),
        ("_HOODIE_RECORD_KEY", META),
        ("_Hoodie_Operation", META),
    ],
)
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_column_that_is_read_as_something_else_is_refused(spark, tmp_path, name, words, table_type):
    made = keyed_table(spark, tmp_path / "t", table_type, precombine_field=None)
    rows = spark.range(5).selectExpr("id", "'a' as dt")
    more = rows.withColumn(name, F.lit(7))
    with pytest.raises(SchemaError, match=words):
        made.bulk_insert(more)
    with pytest.raises(SchemaError, match=words):
        made.alter_schema(more.schema)
    made.bulk_insert(rows)
    for change in (
        lambda: made.upsert(more),
        lambda: made.alter_schema(more.schema),
        lambda: made.with_schema(more.schema).upsert(more),
    ):
        with pytest.raises(SchemaError, match=words):
            change()
    assert made.snapshot().columns[5:] == ["id", "dt"] and made.snapshot().count() == 5
    with pytest.raises(SchemaError, match=words):
        HudiTable.create(spark, str(tmp_path / "new"), name="n", record_key=["id"], schema=more.schema)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("kind", ["string", "bigint"])
@pytest.mark.parametrize("name", ["_hoodie_operation", "_hoodie_commit_time"])
def test_a_meta_column_is_no_column_of_a_definition(spark, tmp_path, table_type, kind, name):
    """Rows without an operation were taken for changes that leave nothing, where a definition brought the column."""
    made = keyed_table(spark, tmp_path / "t", table_type, precombine_field=None)
    rows = spark.range(6).selectExpr("id", "'a' as dt")
    made.upsert(rows)
    more = rows.withColumn(name, F.lit(None).cast(kind)).schema
    for change in (
        lambda: made.alter_schema(more),
        lambda: made.with_schema(more).upsert(rows),
        lambda: HudiTable.create(spark, str(tmp_path / "new"), name="n", record_key=["id"], schema=more),
    ):
        with pytest.raises(SchemaError, match=META):
            change()
    made.alter_schema(made.snapshot().withColumn("city", F.lit("x")).schema)
    made.with_schema(made.snapshot().schema).upsert(spark.range(6, 10).selectExpr("id", "'a' as dt"))
    assert made.snapshot().columns[5:] == ["id", "dt", "city"] and made.snapshot().count() == 10


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_column_of_another_writer_that_sparks_reader_fills_is_read_as_it_is_stored(
    spark, tmp_path, monkeypatch, table_type
):
    monkeypatch.setattr("hudi_engine.table.write.fit.refuse_reserved", lambda names: None)
    path = tmp_path / "ana" / "t"
    made = keyed_table(spark, path, table_type, precombine_field=None)
    rows = spark.range(20).selectExpr("id", "'a' as dt", f"id * 10 as {ROW_INDEX_COLUMN}")
    made.bulk_insert(rows)
    made.upsert(rows.where("id < 5").withColumn(ROW_INDEX_COLUMN, F.lit(-1).cast("bigint")))
    made.delete(rows.where("id = 7"))
    wanted = {n: -1 if n < 5 else n * 10 for n in range(20) if n != 7}
    found = HudiTable.open(spark, str(path)).snapshot().select("id", ROW_INDEX_COLUMN).collect()
    assert {row.id: row[1] for row in found} == wanted and len(found) == 19
    read = hudi_engine.read(path, columns=["id", ROW_INDEX_COLUMN]).to_arrow()
    assert {row["id"]: row[ROW_INDEX_COLUMN] for row in read.to_pylist()} == wanted
    made.delete_where(f"{ROW_INDEX_COLUMN} = 30 or {ROW_INDEX_COLUMN} = 80")
    del wanted[8]  # 30 is no more what id 3 has
    assert {row.id: row[1] for row in made.snapshot().select("id", ROW_INDEX_COLUMN).collect()} == wanted
    with pytest.raises(UnsupportedTableError, match="no query by name would read what is stored"):
        register_table(spark, TableName("default", "filled"), made.storage)
