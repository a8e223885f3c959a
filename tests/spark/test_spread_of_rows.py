"""How the rows of a batch are spread over tasks and files."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine import HudiTable, IncompleteWriteError
from hudi_engine.errors import HudiError
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.spark.lookup.joins import NEW_ROWS, new_row_buckets, spread_new_rows
from hudi_engine.spark.write.spread import distributed, executor_path
from hudi_engine.spark.write.spread.distributed import shuffle_by_bucket
from hudi_engine.spark.write.spread.executor_path import by_bucket
from hudi_engine.table.lookup.unit import BUCKET
from hudi_engine.table.write import driver_path
from pyspark.sql import functions as F

pytestmark = pytest.mark.sampled

QUIET = {"hoodie.engine.publish.manifest": "false", "hoodie.clean.automatic": "false"}
EXECUTORS = {**QUIET, "hoodie.engine.small.batch.rows": "0"}
BUCKETS = {**EXECUTORS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
WIDE = {**EXECUTORS, "hoodie.engine.wide.partition.bytes": "1"}


def create(spark, tmp_path, **definition):
    return HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], **definition)


def file_names(table):
    return [row[0] for row in table.snapshot().select("_hoodie_file_name").distinct().collect()]


def tasks_of(names):
    """Numbers of the tasks that wrote some base files."""
    return {name.split("_")[1].split("-")[0] for name in names}


def rows_of(table, *columns):
    return sorted(tuple(row) for row in table.snapshot().select(*columns).collect())


@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_rows_of_one_partition_are_written_by_as_many_tasks_as_they_fill_files(spark, tmp_path, operation):
    table = create(spark, tmp_path)
    rows = spark.range(0, 6000, 1, 4).selectExpr("id", "sha2(string(id), 256) as v")
    options = {**EXECUTORS, "hoodie.parquet.max.file.size": "100000"}
    getattr(table, operation)(rows, options=options)
    names = file_names(table)
    tasks = tasks_of(names)
    assert len(tasks) > 1
    assert len(tasks) <= len(names) <= 2 * len(tasks)
    assert table.snapshot().count() == 6000
    table.upsert(rows.selectExpr("id + 3000 as id", "v"), options=options)
    assert table.snapshot().select("id").distinct().count() == table.snapshot().count() == 9000


def test_rows_that_replace_others_are_shared_by_tasks_also_where_the_table_makes_their_keys(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t")
    rows = spark.range(0, 6000, 1, 4).selectExpr("id", "sha2(string(id), 256) as v")
    options = {**EXECUTORS, "hoodie.parquet.max.file.size": "100000"}
    for step in (0, 3000):
        result = table.replace(rows.selectExpr(f"id + {step} as id", "v"), keys="id", options=options)
        assert len(tasks_of(name for name in file_names(table) if result.instant in name)) > 1
    assert table.snapshot().select("id").distinct().count() == table.snapshot().count() == 9000


@pytest.mark.parametrize("kept", [False, True], ids=["files", "computed"])
def test_rows_that_only_add_files_to_one_partition_stay_in_the_tasks_that_read_them(spark, tmp_path, kept):
    rows = spark.range(0, 6000, 1, 8).selectExpr("id", "sha2(string(id), 256) as v")
    if not kept:
        rows.write.parquet(str(tmp_path / "rows"))
        rows = spark.read.parquet(str(tmp_path / "rows"))
    options = {**EXECUTORS, "hoodie.parquet.max.file.size": "100000", "hoodie.parquet.small.file.limit": "0"}
    table = create(spark, tmp_path)
    assert table.insert(rows, options=options).path_taken == "bulk"
    assert 1 < len(tasks_of(file_names(table))) <= len(file_names(table)) < 6
    assert table.insert(rows.selectExpr("id + 6000 as id", "v"), options=options).path_taken == "bulk"
    filling = {**options, "hoodie.parquet.small.file.limit": "100000"}
    assert (
        table.insert(rows.selectExpr("id + 12000 as id", "v"), options=filling).path_taken == "partitions"
    ), "small files take rows"
    assert table.snapshot().select("id").distinct().count() == table.snapshot().count() == 18000


@pytest.mark.parametrize(
    ("operation", "options"),
    [("upsert", QUIET), ("upsert", EXECUTORS), ("upsert", WIDE), ("insert", EXECUTORS), ("bulk_insert", EXECUTORS)],
    ids=["driver", "partitions", "joined", "insert", "bulk"],
)  # fmt: skip
def test_every_way_of_writing_obeys_the_rows_of_a_new_file(spark, tmp_path, operation, options):
    table = create(spark, tmp_path, partition_by=["dt"])
    table.upsert(spark.createDataFrame([(-1, "a")], "id long, dt string"))
    split = {
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "30",
        "hoodie.parquet.small.file.limit": "0",
    }
    rows = spark.range(0, 100, 1, 1).selectExpr("id", "'a' as dt")
    getattr(table, operation)(rows, options={**options, **split})
    counts = [row["count"] for row in table.snapshot().groupBy("_hoodie_file_name").count().collect()]
    assert sum(counts) == 101
    assert max(counts) <= 30 or operation == "upsert" and max(counts) <= 45
    assert 5 <= len(counts) <= 8


@pytest.mark.parametrize("options", [QUIET, EXECUTORS, WIDE], ids=["driver", "partitions", "joined"])
def test_without_an_ordering_field_the_later_row_of_the_dataframe_stands(spark, tmp_path, options):
    table = create(spark, tmp_path)
    table.insert(spark.range(0, 50).selectExpr("id", "-1L as n"), options=QUIET)
    rows = spark.range(0, 4000, 1, 8).selectExpr("id % 100 as id", "id as n")
    table.upsert(rows, options=options)
    assert sorted(tuple(row) for row in table.snapshot().select("id", "n").collect()) == [
        (key, 3900 + key) for key in range(100)
    ]


PARTIAL = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}


@pytest.mark.parametrize("options", [EXECUTORS, WIDE, BUCKETS], ids=["partitions", "joined", "buckets"])
@pytest.mark.parametrize(
    "definition", [{}, {"precombine_field": "ts", "options": PARTIAL}], ids=["last", "ts"]
)
def test_rows_of_a_file_that_are_more_than_fit_make_the_same_table(spark, tmp_path, definition, options):
    changes = spark.range(0, 2000, 1, 4).selectExpr(
        "id % 50 as id",
        "(id * 7919) % 1000 as ts",
        "if(id % 3 = 0, null, id) as a",
        "repeat(string(id), 20) as b",
        "id % 50 > 45 and id > 1500 as _hoodie_is_deleted",
    )
    found = []
    for number, budget in enumerate(["1", "1000000000"]):
        spill = {
            "hoodie.memory.merge.max.size": budget,
            "hoodie.memory.spillable.map.path": f"{tmp_path}/spill",
        }
        table = create(spark, tmp_path / str(number), **definition)
        for part in (changes.where("id < 40"), changes):
            table.upsert(part, options={**options, **spill})
        found.append(rows_of(table, "id", "ts", "a", "b"))
        assert table.validate(keys=True) == []
        assert list((tmp_path / "spill").iterdir()) == []
    assert found[0] == found[1] and 40 < len(found[0]) < 50


def of_numbers(spark, *numbers, v):
    return spark.createDataFrame([(number, v) for number in numbers], "id long, v string")


def test_buckets_of_one_partition_are_shared_by_tasks_and_each_stays_one_file_group(spark, tmp_path):
    table = create(
        spark, tmp_path, options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "5"}
    )
    rows = spark.range(0, 3000, 1, 3).selectExpr("id", "sha2(string(id), 256) as v")
    options = {**EXECUTORS, "hoodie.parquet.max.file.size": "50000"}
    for step in (0, 1500):
        table.upsert(rows.selectExpr(f"id + {step} as id", f"concat(v, '{step}') as v"), options=options)
        names = file_names(table)
        assert len(tasks_of(names)) > 1
        assert sorted(name[:8] for name in names) == [f"{number:08d}" for number in range(5)]
    table.upsert(of_numbers(spark, 7, 1507, 9999, v="small"), options={**QUIET})
    found = dict(rows_of(table, "id", "v"))
    assert len(found) == table.snapshot().count() == 4501
    assert [found[each] for each in (7, 1507, 9999)] == ["small"] * 3
    assert found[1400].endswith("0") and found[1600].endswith("1500")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_files_of_one_partition_are_shared_by_tasks_when_a_small_batch_meets_many_bytes(
    spark, tmp_path, kind
):
    table = create(spark, tmp_path, table_type=kind)
    no_packing = {**QUIET, "hoodie.parquet.small.file.limit": "0"}
    for first in (0, 10, 20):
        table.insert(spark.range(first, first + 10).selectExpr("id", "'old' as v"), options=no_packing)
    batch = of_numbers(spark, 1, 11, 21, 30, v="new")
    table.upsert(batch, options={**QUIET, "hoodie.engine.driver.merge.bytes": "0"})
    assert rows_of(table, "id", "v") == [
        (number, "new" if number in (1, 11, 21, 30) else "old") for number in range(31)
    ]
    if kind == "cow":
        assert len(tasks_of(file_names(table))) == 3


def test_new_rows_of_a_wide_partition_go_to_its_small_file(spark, tmp_path):
    table = create(spark, tmp_path)
    table.insert(spark.range(0, 100).selectExpr("id", "'old' as v"), options=QUIET)
    rows = spark.range(90, 300, 1, 3).selectExpr("id", "'new' as v")
    assert table.upsert(rows, options=WIDE).path_taken == "joined"
    assert len(file_names(table)) == 1
    assert rows_of(table, "id", "v") == [(each, "old" if each < 90 else "new") for each in range(300)]


def test_new_rows_of_a_wide_partition_that_has_no_room_for_all_fill_its_files_and_new_ones(spark, tmp_path):
    table = create(spark, tmp_path)
    size = {"hoodie.parquet.max.file.size": "60000", "hoodie.copyonwrite.record.size.estimate": "60"}
    table.insert(
        spark.range(0, 300).selectExpr("id", "sha2(string(id), 256) as v"), options={**QUIET, **size}
    )
    before = file_names(table)
    rows = spark.range(200, 4000, 1, 3).selectExpr("id", "sha2(string(id), 256) as v")
    table.upsert(rows, options={**WIDE, **size})
    counts = {
        row[0].split("_")[0]: row[1]
        for row in table.snapshot().groupBy("_hoodie_file_name").count().collect()
    }
    assert counts[before[0].split("_")[0]] > 300
    assert 3 <= len(counts) <= 12 and min(counts.values()) > 100
    assert table.snapshot().select("id").distinct().count() == table.snapshot().count() == 4000


def test_new_rows_of_merge_on_read_go_to_the_smallest_file_also_when_it_has_logs(spark, tmp_path):
    table = create(spark, tmp_path, table_type="mor")
    for number in range(4):
        table.upsert(of_numbers(spark, 0, number, v=f"at {number}").distinct(), options=QUIET)
    assert len(file_names(table)) == 1
    assert rows_of(table, "id", "v") == [(0, "at 3"), (1, "at 1"), (2, "at 2"), (3, "at 3")]


def test_thousands_of_partitions_with_several_files_each_make_no_deep_plan(spark):
    parts = {f"p{number}": new_row_buckets(f"p{number}", 2) for number in range(2000)}
    frame = spark.range(0, 4000).selectExpr(
        f"concat('{NEW_ROWS}p', id % 2000) as {BUCKET}", f"string(id) as {RECORD_KEY}"
    )
    spread = spread_new_rows(frame, parts).select(BUCKET).distinct().collect()
    assert {row[0].rpartition("|")[0] for row in spread} == {f"{NEW_ROWS}p{number}" for number in range(2000)}
    assert {row[0].rpartition("|")[2] for row in spread} == {"0", "1"}


@pytest.mark.parametrize("options", [QUIET, EXECUTORS], ids=["driver", "bulk"])
def test_an_overwrite_by_rows_that_are_all_marked_as_deleted_empties_their_partition(
    spark, tmp_path, options
):
    columns = "id int, dt string, _hoodie_is_deleted boolean"
    table = create(spark, tmp_path, partition_by=["dt"])
    table.upsert(spark.createDataFrame([(1, "x", False), (2, "y", False)], columns))
    table.insert_overwrite(spark.createDataFrame([(1, "x", True)], columns), options=options)
    assert [tuple(row) for row in table.snapshot().select("id", "dt").collect()] == [(2, "y")]


def test_a_batch_that_is_larger_than_spark_thinks_is_not_written_from_the_driver(spark, tmp_path):
    table = create(spark, tmp_path)
    wide = spark.range(40).selectExpr("id", "repeat(sha2(string(id), 256), 1000) as payload")
    assert (
        table.upsert(wide, options={**QUIET, "hoodie.engine.small.batch.bytes": "1000000"}).path_taken
        != "driver"
    )
    assert (
        table.upsert(
            wide.limit(5), options={**QUIET, "hoodie.engine.small.batch.bytes": "1000000"}
        ).path_taken
        == "driver"
    )
    assert table.snapshot().count() == 40


ODD_NAMES = [
    "plain",
    "",
    "it's",
    'a "quoted" one',
    "back\\slash",
    "tab\there",
    "a=1/b=2",
    "üñí/名前",
    "\U0001f600",
    "null",
    "{}",
    "x,y:z",
    " ",
]


def test_every_partition_gets_a_task_of_its_own_whatever_its_name(spark):
    rows = spark.createDataFrame(
        [(name,) for name in ODD_NAMES for _ in range(5)], f"{BUCKET} string"
    ).repartition(3)
    shuffled = shuffle_by_bucket(rows, ODD_NAMES, 0)
    assert shuffled.columns == [BUCKET]
    found = shuffled.groupBy(F.spark_partition_id().alias("task"), BUCKET).count().collect()
    assert sorted((row["task"], row[BUCKET], row["count"]) for row in found) == [
        (task, name, 5) for task, name in enumerate(ODD_NAMES)
    ]


@pytest.mark.parametrize("tasks", [1, 5])
def test_buckets_share_as_many_tasks_as_allowed(spark, tasks):
    rows = spark.createDataFrame([(name,) for name in ODD_NAMES for _ in range(5)], f"{BUCKET} string")
    shuffled = shuffle_by_bucket(rows, ODD_NAMES, tasks)
    found = shuffled.groupBy(F.spark_partition_id().alias("task"), BUCKET).count().collect()
    assert sorted((row["task"], row[BUCKET], row["count"]) for row in found) == sorted(
        (number % tasks, name, 5) for number, name in enumerate(ODD_NAMES)
    )


@pytest.mark.parametrize("tasks", [1, 5, 600])
def test_a_task_gets_its_buckets_one_after_the_other(spark, tasks):
    names = ODD_NAMES if tasks < 600 else [*ODD_NAMES, *map(str, range(600))]
    rows = spark.createDataFrame([(name,) for _ in range(3) for name in names], f"{BUCKET} string")

    def turns(_, batches):
        found = [row[BUCKET] for row in batches]
        return iter([(len(found), sum(one != other for one, other in itertools.pairwise(["-", *found])))])

    found = shuffle_by_bucket(rows, names, tasks % 600).rdd.mapPartitionsWithIndex(turns).collect()
    assert [sum(each) for each in zip(*found, strict=True)] == [3 * len(names), len(names)]


def test_a_task_holds_the_rows_of_one_bucket_at_a_time():
    read = []

    def batches():
        for name in ("a", "a", "ab", "b", "c"):
            read.append(name)
            yield pa.record_batch({BUCKET: [*name], "number": [len(read)] * len(name)})

    found = [
        (bucket, pa.concat_tables(parts)["number"].to_pylist(), "".join(read))
        for bucket, parts in by_bucket(batches())
    ]
    assert found == [("a", [1, 2, 3], "aaab"), ("b", [3, 4], "aaabbc"), ("c", [5], "aaabbc")]


@pytest.mark.parametrize(
    ("operation", "key"),
    [
        ("upsert", "hoodie.upsert.shuffle.parallelism"),
        ("insert", "hoodie.insert.shuffle.parallelism"),
        ("delete", "hoodie.delete.shuffle.parallelism"),
    ],
)
def test_a_write_has_no_more_tasks_than_its_option_allows(spark, tmp_path, operation, key):
    table = create(spark, tmp_path, partition_by=["dt"])
    rows = spark.range(0, 40).selectExpr("id", "concat('d', id % 8) as dt", "'x' as v")
    if operation == "delete":
        table.bulk_insert(rows, options=QUIET)
        rows = rows.where("id < 32")
    for tasks, found in ((3, 3), (0, 8)):
        options = {**EXECUTORS, key: str(tasks)}
        result = getattr(table, operation)(rows, options=options)
        names = [name for name in file_names(table) if result.instant in name]
        assert len(names) == 8
        assert len(tasks_of(names)) == found
        if operation == "delete":
            table.upsert(spark.range(0, 40).selectExpr("id", "concat('d', id % 8) as dt", "'x' as v"))


def test_rows_whose_partition_is_the_time_are_written_where_they_were_counted(spark, tmp_path, monkeypatch):
    spark.range(100).write.parquet(str(tmp_path / "rows"))
    rows = spark.read.parquet(str(tmp_path / "rows"))
    at = F.date_format(F.current_timestamp(), "yyyyMMddHHmmssSSSSSS")
    table = create(spark, tmp_path, partition_by=["at"])
    counted = []
    count = distributed._rows_by_partition

    def noted(*given):
        counted.append(count(*given))
        return counted[-1]

    monkeypatch.setattr(distributed, "_rows_by_partition", noted)
    table.upsert(rows.withColumn("at", at), options=EXECUTORS)
    [found] = counted
    stored = table.snapshot().groupBy("at").count().collect()
    assert {row["at"]: row["count"] for row in stored} == found


def test_rows_of_files_that_only_say_when_they_were_loaded_are_not_kept(spark, tmp_path, monkeypatch):
    spark.range(100).write.parquet(str(tmp_path / "rows"))
    rows = spark.read.parquet(str(tmp_path / "rows")).withColumn("loaded_at", F.current_timestamp())
    kept = []
    monkeypatch.setattr(type(rows), "persist", lambda frame, *given: kept.append(frame) or frame)
    table = create(spark, tmp_path)
    table.upsert(rows, options=EXECUTORS)
    assert (kept, table.snapshot().count()) == ([], 100)


@pytest.mark.parametrize("lets_through", [True, False], ids=["measured", "too large"])
def test_the_rows_that_are_measured_on_the_driver_are_few_where_rows_are_large(
    spark, tmp_path, monkeypatch, lets_through
):
    table = create(spark, tmp_path)
    rows = spark.range(0, 3000, 1, 4).selectExpr("id", "sha2(string(id), 256) as v")
    table.insert(rows.limit(500), options=QUIET)
    monkeypatch.setattr(distributed, "SAMPLE_BYTES", 10_000)
    measured, fetch = [], distributed.to_arrow_within_limit

    def noted(frame, *limits):
        measured.append(fetch(frame, *limits).num_rows)
        return fetch(frame, *limits) if lets_through else None

    monkeypatch.setattr(distributed, "to_arrow_within_limit", noted)
    table.upsert(rows, options={**EXECUTORS, "hoodie.parquet.max.file.size": "50000"})
    assert len(measured) == 1 and 1 < measured[0] < 250
    assert len(file_names(table)) > 2
    assert table.snapshot().count() == 3000


def test_a_write_leaves_nothing_behind_that_it_sent_to_its_tasks(spark, tmp_path):
    table = create(spark, tmp_path)
    rows = spark.range(0, 400, 1, 2).selectExpr("id", "string(id) as v")
    sent = Path(spark.sparkContext._temp_dir)
    before = set(sent.iterdir())
    table.bulk_insert(rows, options=EXECUTORS)
    table.upsert(rows, options=EXECUTORS)
    assert table.upsert(rows, options=WIDE).path_taken == "joined"
    assert set(sent.iterdir()) <= before
    assert table.snapshot().count() == 400


def lose_one(monkeypatch, way):
    """Let one bucket, or the result of one task, of a write get lost."""
    if way == "driver":
        each_once = driver_path.each_once
        monkeypatch.setattr(driver_path, "each_once", lambda found, *rest: each_once(found[1:], *rest))
    else:
        reported = executor_path.collect_buckets
        monkeypatch.setattr(
            executor_path, "collect_buckets", lambda *given: (reported(*given)[0], reported(*given)[1][1:])
        )


@pytest.mark.parametrize("operation", ["upsert", "delete"])
@pytest.mark.parametrize(
    ("way", "options", "definition"),
    [
        ("driver", QUIET, {}),
        ("partitions", EXECUTORS, {}),
        ("joined", WIDE, {}),
        ("partitions", EXECUTORS, {"options": {"hoodie.index.type": "BUCKET"}}),
        ("partitions", EXECUTORS, {"options": {"hoodie.index.type": "GLOBAL_SIMPLE"}}),
    ],
    ids=["driver", "partitions", "joined", "buckets", "global"],
)
def test_a_bucket_that_gets_lost_is_no_commit(
    spark, tmp_path, monkeypatch, operation, way, options, definition
):
    table = create(spark, tmp_path, partition_by=["p"], **definition)
    rows = spark.range(20).selectExpr("id", "id % 2 as p", "'old' as v")
    table.upsert(rows, options=options)
    before = rows_of(table, "id", "v")
    with monkeypatch.context() as patch:
        lose_one(patch, way)
        with pytest.raises(IncompleteWriteError, match="nothing was committed"):
            getattr(table, operation)(rows.selectExpr("id", "p", "'new' as v"), options=options)
    assert rows_of(table, "id", "v") == before
    result = getattr(table, operation)(rows.selectExpr("id", "p", "'new' as v"), options=options)
    assert (result.path_taken, result.rows_updated + result.rows_deleted) == (way, 20)


def test_a_bucket_that_two_tasks_write_is_no_commit(spark, tmp_path, monkeypatch):
    table = create(spark, tmp_path, partition_by=["p"])
    monkeypatch.setattr(distributed, "shuffle_by_bucket", lambda frame, *_: frame.repartition(3))
    with pytest.raises(IncompleteWriteError, match="was written by 3 tasks; nothing was committed"):
        table.upsert(spark.range(60).selectExpr("id", "1 as p"), options=EXECUTORS)
    assert table.snapshot().count() == 0


@pytest.mark.parametrize("ends", ["refused", "failed", "committed"])
def test_no_frame_stays_cached_whatever_a_write_ends_in(spark, tmp_path, monkeypatch, ends):
    cached = spark.sparkContext._jsc.getPersistentRDDs
    table = create(spark, tmp_path, partition_by=["dt"])
    rows = spark.range(0, 40, 1, 2).selectExpr("id", "concat('d', id % 8) as dt", "uuid() as v")
    kept, options = set(cached()), dict(EXECUTORS)
    if ends == "refused":
        options["hoodie.engine.max.partitions.per.commit"] = "1"
    if ends == "failed":
        seen = []

        def fail(*_, **__):
            seen.append(len(set(cached()) - kept))
            raise OSError("the disk is full")

        monkeypatch.setattr(distributed, "run_buckets", fail)
    if ends == "committed":
        table.upsert(rows, options=options)
    else:
        with pytest.raises((HudiError, OSError)):
            table.upsert(rows, options=options)
    if ends == "failed":
        assert seen == [1]
    assert set(cached()) <= kept


def test_buckets_of_ten_partitions_keep_more_tasks_busy_than_partitions(spark, tmp_path):
    index = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = create(spark, tmp_path, partition_by=["dt"], options=index)
    rows = spark.range(0, 200).selectExpr("id", "concat('d', id % 10) as dt", "'x' as v")
    for options, tasks in ((EXECUTORS, 10), (WIDE, 20)):
        result = table.upsert(rows, options=options)
        names = [name for name in file_names(table) if result.instant in name]
        assert len(names) == 20
        assert len(tasks_of(names)) == tasks
    assert table.snapshot().count() == 200
