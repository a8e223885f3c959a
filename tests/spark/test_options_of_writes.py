"""Options of single writes, each seen to do what the configuration reference says."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from hudi_engine import ConfigError, DataError, HudiTable, SchemaError, build_table
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.schema.meta_fields import PARTITION_PATH
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.write.spread.distributed import ordered_for_bulk
from hudi_engine.table.state import TableState
from pyspark.sql import functions as F

from tests.helpers.forms import in_turn

pytestmark = pytest.mark.sampled

COLUMNS = "id int, dt string, name string"
ROWS = [(number, "ab"[number % 2], f"n{number}") for number in range(8)]
MODE = "hoodie.bulkinsert.sort.mode"
GATHERS = "hoodie.bulkinsert.shuffle.by.partition"
BY_EXECUTORS = {"hoodie.engine.small.batch.rows": "0"}


@pytest.fixture
def table(spark, tmp_path):
    return HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["dt"], schema=COLUMNS
    )


def frame(spark, *rows, columns=COLUMNS):
    return spark.createDataFrame([tuple(row) for row in rows], columns)


def rows_of(table):
    return sorted(tuple(row) for row in table.snapshot().select("id", "dt", "name").collect())


def files_of(table):
    """Rows of each base file, in their order: keys by path."""
    storage = open_storage(table.path)
    found = TableState.load(storage).view().latest_base_files()
    read = {base.path: pq.read_table(f"{table.path}/{base.path}", columns=["id"]) for base in found}
    return {path: rows.column("id").to_pylist() for path, rows in read.items()}


def test_a_bulk_load_gathers_partitions_or_leaves_rows_where_they_are(spark, table):
    in_two_tasks = frame(spark, *ROWS).repartition(2)
    table.bulk_insert(in_two_tasks, options={**BY_EXECUTORS, GATHERS: "true"})
    assert sorted(map(len, files_of(table).values())) == [4, 4]
    table.insert_overwrite_table(in_two_tasks, options={**BY_EXECUTORS, GATHERS: "false"})
    assert len(files_of(table)) == 4
    assert rows_of(table) == sorted(ROWS)


def test_a_sorted_bulk_load_has_its_rows_in_the_order_of_their_keys(spark, table):
    mixed = frame(spark, *[ROWS[number] for number in (6, 1, 4, 3, 0, 7, 2, 5)]).coalesce(1)
    table.bulk_insert(mixed, options={**BY_EXECUTORS, MODE: "NONE", GATHERS: "false"})
    assert sorted(files_of(table).values()) == [[1, 3, 7, 5], [6, 4, 0, 2]]
    for mode in ("GLOBAL_SORT", "PARTITION_SORT"):
        table.insert_overwrite_table(mixed, options={**BY_EXECUTORS, MODE: mode})
        assert sorted(files_of(table).values()) == [[0, 2, 4, 6], [1, 3, 5, 7]]


@pytest.mark.parametrize(("small", "index"), in_turn(("1000", "0"), ("BUCKET", "SIMPLE")))
def test_a_load_is_ordered_whatever_its_size_and_index(spark, tmp_path, small, index):
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        partition_by=["dt"],
        options={"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1"},
    )
    mixed = frame(spark, *[(key, "ab"[key % 2], f"n{9 - key}") for key in (6, 1, 4, 3, 0, 7, 2, 5)]).coalesce(
        1
    )
    options = {"hoodie.engine.small.batch.rows": small}
    by_name = {"hoodie.bulkinsert.user.defined.partitioner.sort.columns": "name"}
    for order, found in (
        ({MODE: "GLOBAL_SORT"}, [[0, 2, 4, 6], [1, 3, 5, 7]]),
        (by_name, [[6, 4, 2, 0], [7, 5, 3, 1]]),
        ({MODE: "PARTITION_SORT"}, [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ({MODE: "GLOBAL_SORT", **by_name}, [[6, 4, 2, 0], [7, 5, 3, 1]]),
    ):
        table.insert_overwrite_table(mixed, options={**options, **order})
        assert sorted(files_of(table).values()) == found
    keyless = HudiTable.create(spark, str(tmp_path / "keyless"), name="t", partition_by=["dt"])
    keyless.bulk_insert(mixed, options={**options, MODE: "GLOBAL_SORT"})
    assert keyless.snapshot().count() == 8


@pytest.mark.parametrize("mode", ["GLOBAL_SORT", "PARTITION_SORT"])
def test_a_sorted_load_has_as_many_tasks_as_are_asked_for(spark, table, mode):
    options = {**BY_EXECUTORS, MODE: mode, "hoodie.bulkinsert.shuffle.parallelism": 4}
    table.bulk_insert(frame(spark, *reversed(ROWS)).coalesce(1), options=options)
    files = files_of(table)
    assert len({path.rpartition("/")[2].split("_")[1].split("-")[0] for path in files}) > 2
    assert all(keys == sorted(keys) for keys in files.values())
    assert rows_of(table) == ROWS


def paths_by_task(frame):
    """Partition paths of the rows of each task, in their order."""
    found = {}
    # all columns, as those that nobody reads would not be shuffled
    for row in frame.select(F.spark_partition_id(), "*").collect():
        found.setdefault(row[0], []).append(row[PARTITION_PATH])
    return found


def context_of(**options):
    return SimpleNamespace(options=resolve_options(options), layout=RowLayout())


@pytest.mark.parametrize(
    ("mode", "sorts"), [("PARTITION_PATH_REPARTITION", False), ("PARTITION_PATH_REPARTITION_AND_SORT", True)]
)
def test_a_repartitioned_load_gathers_partitions_and_may_sort_by_them(spark, table, mode, sorts):
    names = [f"p{number % 7}" for number in range(70)]
    given = spark.createDataFrame([(name,) for name in names], f"{PARTITION_PATH} string").repartition(3)
    context = context_of(**{MODE: mode, "hoodie.bulkinsert.shuffle.parallelism": 2})
    tasks = paths_by_task(ordered_for_bulk(given, context, None))
    assert sorted(path for paths in tasks.values() for path in paths) == sorted(names)
    assert len(tasks) == 2 and sum(len(set(paths)) for paths in tasks.values()) == 7
    assert all(paths == sorted(paths) for paths in tasks.values()) is sorts

    table.bulk_insert(frame(spark, *ROWS).repartition(3), options={**BY_EXECUTORS, MODE: mode})
    assert sorted(map(len, files_of(table).values())) == [4, 4]


def test_a_partition_with_most_rows_is_shared_by_several_tasks(spark):
    rows = spark.range(0, 60_000, 1, 8).selectExpr(
        "sha2(string(id), 256) as v", f"if(id % 10 = 0, 'small', 'large') as {PARTITION_PATH}"
    )
    size = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    before = spark.conf.get(size)
    spark.conf.set(size, "256KB")
    try:
        shared = paths_by_task(
            ordered_for_bulk(rows, context_of(**{MODE: "PARTITION_PATH_REPARTITION"}), None)
        )
        given = {MODE: "PARTITION_PATH_REPARTITION", "hoodie.bulkinsert.shuffle.parallelism": 4}
        alone = paths_by_task(ordered_for_bulk(rows, context_of(**given), None))
    finally:
        spark.conf.set(size, before)
    assert sum("large" in paths for paths in shared.values()) > 2
    assert sum("large" in paths for paths in alone.values()) == 1


@pytest.mark.parametrize("small", ["0", "1000"], ids=["executors", "driver"])
def test_an_upsert_combines_rows_of_a_new_key_unless_told_not_to(spark, table, small):
    stored = frame(spark, (1, "a", "old"))
    twice = frame(spark, (1, "a", "x"), (1, "a", "y"), (2, "a", "x"), (2, "a", "y")).coalesce(1)
    options = {"hoodie.engine.small.batch.rows": small, "hoodie.combine.before.upsert": "false"}
    table.upsert(stored)
    table.upsert(twice, options=options)
    assert rows_of(table) == [(1, "a", "y"), (2, "a", "x"), (2, "a", "y")]
    table.insert_overwrite_table(stored)
    table.upsert(twice, options={**options, "hoodie.combine.before.upsert": "true"})
    assert rows_of(table) == [(1, "a", "y"), (2, "a", "y")]


@pytest.mark.parametrize("small", ["0", "1000"], ids=["executors", "driver"])
def test_a_write_to_more_partitions_than_it_may_touch_is_refused(spark, table, small):
    options = {"hoodie.engine.max.partitions.per.commit": 1, "hoodie.engine.small.batch.rows": small}
    with pytest.raises(DataError, match=r"max\.partitions\.per\.commit=1"):
        table.upsert(frame(spark, *ROWS), options=options)
    assert table.timeline() == []
    table.upsert(frame(spark, ROWS[0], ROWS[2]), options=options)
    assert rows_of(table) == [ROWS[0], ROWS[2]]


@pytest.mark.parametrize("tasks", [1, 4], ids=["one task meets all", "each task meets few"])
@pytest.mark.parametrize("operation", ["bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_a_load_or_overwrite_of_more_partitions_than_it_may_touch_is_refused(spark, table, operation, tasks):
    table.upsert(frame(spark, (9, "z", "stays")))
    before = table.timeline()
    many = frame(spark, *[(number, f"p{number // 2}", "x") for number in range(8)]).coalesce(1)
    if tasks > 1:
        many = many.repartitionByRange(tasks, "id")
    options = {**BY_EXECUTORS, GATHERS: "false", "hoodie.engine.max.partitions.per.commit": 3}
    with pytest.raises(DataError, match=r"max\.partitions\.per\.commit=3"):
        getattr(table, operation)(many, options=options)
    assert rows_of(table) == [(9, "z", "stays")]
    assert [each for each in table.timeline() if each.action != "rollback"] == before
    getattr(table, operation)(many.where("id < 6"), options=options)
    assert set(rows_of(table)) >= {(number, f"p{number // 2}", "x") for number in range(6)}


@pytest.mark.parametrize("small", ["0", "1000"], ids=["executors", "driver"])
def test_a_bulk_load_that_is_to_drop_duplicates_is_refused(spark, tmp_path, table, small):
    options = {
        "hoodie.datasource.write.insert.drop.duplicates": "true",
        "hoodie.engine.small.batch.rows": small,
    }
    table.bulk_insert(frame(spark, *ROWS))
    before = table.timeline()
    with pytest.raises(
        ConfigError, match=r"drop\.duplicates is true, but a bulk_insert looks up no keys.*use insert"
    ):
        table.bulk_insert(frame(spark, ROWS[0]), options=options)
    assert table.timeline() == before
    table.insert(frame(spark, ROWS[0], (8, "a", "n8")), options=options)
    assert rows_of(table) == [*ROWS, (8, "a", "n8")]
    definition = {"name": "b", "record_key": ["id"], "partition_by": ["dt"], "options": options}
    build_table(spark, str(tmp_path / "b"), frame(spark, *ROWS), **definition)
    assert rows_of(HudiTable.open(spark, str(tmp_path / "b"))) == ROWS


def test_a_column_that_a_batch_lacks_is_null_or_refused(spark, table):
    table.upsert(frame(spark, *ROWS[:2]))
    narrow = frame(spark, (0, "a"), columns="id int, dt string")
    with pytest.raises(SchemaError, match="name"):
        table.upsert(narrow, options={"hoodie.write.set.null.for.missing.columns": "false"})
    table.upsert(narrow)
    assert rows_of(table) == [(0, "a", None), ROWS[1]]


def test_keys_given_twice_to_a_delete_count_once_unless_they_are_not_combined(spark, table):
    table.upsert(frame(spark, *ROWS))
    assert table.delete(frame(spark, ROWS[0], ROWS[0])).rows_deleted == 1
    table.delete(frame(spark, ROWS[1], ROWS[1]), options={"hoodie.combine.before.delete": "false"})
    assert rows_of(table) == sorted(ROWS[2:])


def test_options_under_the_prefix_are_kept_with_the_commit(spark, table):
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "_run"}
    table.upsert(frame(spark, *ROWS), options={**prefix, "_run_id": "7", "_other": "8"})
    (instant,) = TableState.load(open_storage(table.path)).timeline.completed_writes
    kept = TableState.load(open_storage(table.path)).timeline.commit_metadata(instant).extra_metadata
    assert kept.get("_run_id") == "7"
    assert "_other" not in kept


def test_a_limit_of_a_call_is_compared_with_the_limits_that_the_table_was_opened_with(spark, table):
    table.upsert(frame(spark, *ROWS))
    limits = {"hoodie.keep.min.commits": "50", "hoodie.keep.max.commits": "60"}
    opened = HudiTable.open(spark, table.path, options=limits)
    assert not opened.archive(options={"hoodie.keep.min.commits": "40"}).instants
    assert not opened.archive(40).instants
    for call in (
        lambda: opened.archive(options={"hoodie.keep.min.commits": "60"}),
        lambda: opened.archive(60),
    ):
        with pytest.raises(ConfigError, match="maximum must be greater"):
            call()
    with pytest.raises(ConfigError, match=r"keep.max.commits is 30"):
        table.archive(options={"hoodie.keep.min.commits": "40"})


@pytest.mark.parametrize("rate", ["0", "1", "2"])
def test_a_rate_of_false_positives_that_no_filter_has_is_refused_before_a_write(spark, table, rate):
    with pytest.raises(ConfigError, match=rf"hoodie.index.bloom.fpp is '{rate}'.*between 0 and 1"):
        table.upsert(frame(spark, *ROWS), options={"hoodie.index.bloom.fpp": rate})
    assert not table.timeline()


def test_a_call_says_which_rows_delete_where_the_table_does_not(spark, table):
    table.upsert(frame(spark, *ROWS[:3]))
    marks = {"hoodie.payload.delete.field": "Name", "hoodie.payload.delete.marker": "gone"}
    for small in ("1000", "0"):
        key = int(small) // 1000
        gone = frame(spark, (key, "ab"[key % 2], "gone"))
        table.upsert(gone, options={**marks, "hoodie.engine.small.batch.rows": small})
    assert rows_of(table) == [ROWS[2]]
