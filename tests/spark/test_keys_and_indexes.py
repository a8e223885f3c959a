"""Which row of a batch and which stored row a key means, whatever the index and the path of the write."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError, HudiTable, read
from hudi_engine.errors import InvalidKeyError

from tests.helpers.forms import forms, in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table
from tests.spark.orders import FIRST, HIVE, check_readers, create, frame, one_shape, rows_of

pytestmark = pytest.mark.sampled


@pytest.mark.core
@pytest.mark.parametrize(("table_type", "index"), [("mor", "SIMPLE"), ("cow", "GLOBAL_SIMPLE")])
def test_wide_partitions_tell_a_key_of_two_partitions_apart_unless_the_index_is_global(
    spark, tmp_path, table_type, index
):
    options = {
        "hoodie.engine.small.batch.rows": 0,
        "hoodie.engine.wide.partition.bytes": 1,
        "hoodie.combine.before.insert": "true",
        "hoodie.index.type": index,
    }
    table = create(
        spark, tmp_path, precombine_field="ts", partition_by=["dt"], table_type=table_type, options=options
    )
    both = [(1, 10, "a", "one"), (1, 11, "b", "one"), (2, 10, "a", "two")]
    table.bulk_insert(frame(spark, *both, (2, 9, "a", "late")))
    is_global = index == "GLOBAL_SIMPLE"
    assert rows_of(table) == (both[1:] if is_global else both)
    updates = [(1, 20, "a", "x"), (1, 21, "b", "y"), (3, 20, "a", "z"), (3, 21, "b", "z")]
    result = table.upsert(frame(spark, *updates, (3, 19, "b", "late")))
    assert result.path_taken == "joined"
    kept = [updates[1], updates[3]] if is_global else updates
    assert rows_of(table) == sorted([*kept, both[2]])


@pytest.mark.parametrize("small_rows", ["0", "1000"])
def test_rows_of_a_batch_become_one_by_key_before_an_insert(spark, tmp_path, small_rows):
    options = {
        "hoodie.engine.small.batch.rows": small_rows,
        "hoodie.combine.before.insert": "true",
        "hoodie.index.type": "GLOBAL_SIMPLE",
    }
    rows = [(1, 10, "a", "one"), (1, 11, "b", "one"), (2, 10, "a", "two")]
    definition = {"precombine_field": "ts", "partition_by": ["dt"], "options": options}
    keyed = HudiTable.create(spark, str(tmp_path / "keyed"), name="t", record_key=["id"], **definition)
    keyed.insert(frame(spark, *rows))
    assert rows_of(keyed) == rows[1:]
    generated = HudiTable.create(spark, str(tmp_path / "generated"), name="t", **definition)
    generated.insert(frame(spark, *rows, *rows))
    assert rows_of(generated) == sorted([*rows, *rows])


@pytest.mark.core
@one_shape
def test_delete_without_partition_columns_finds_the_key_anywhere(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.delete(spark.createDataFrame([(3,)], "id int"))
    check_readers(table, FIRST[:2])


def test_a_deleted_key_can_come_back(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.delete(frame(spark, (1, 0, "a", "")))
    table.upsert(frame(spark, (1, 11, "a", "again")))
    check_readers(table, [(1, 11, "a", "again"), *FIRST[1:]])


def test_update_columns_of_a_deleted_key_bring_the_whole_row(spark, tmp_path):
    table = create(spark, tmp_path, table_type="mor")
    table.upsert(frame(spark, *FIRST))
    table.delete(frame(spark, FIRST[0]))
    table.upsert(frame(spark, (1, 20, "a", "back"), (2, 20, "a", "ignored")), update_columns=["ts"])
    check_readers(table, [(1, 20, "a", "back"), (2, 20, "a", "two"), FIRST[2]])


MARKED = "id int, ts int, dt string, name string, __hudi_is_deleted boolean"
PARTIAL = "id int, ts int, dt string, name string, note string, __hudi_is_deleted boolean"
LATE_WAYS = {
    "cow": ("cow", {}),
    "mor": ("mor", {}),
    "cow-executors": ("cow", {"hoodie.engine.small.batch.rows": "0"}),
    "mor-executors": ("mor", {"hoodie.engine.small.batch.rows": "0"}),
    "mor-bucket": ("mor", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}),
    "cow-bucket": ("cow", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}),
    "changelog": ("mor", {"hoodie.allow.operation.metadata.field": "true"}),
    "cow-global": ("cow", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    "mor-global-executors": (
        "mor",
        {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.engine.small.batch.rows": "0"},
    ),
    "cow-unchanged": ("cow", {"hoodie.engine.skip.unchanged": "true"}),
}


@pytest.mark.parametrize("taken", [["name"], ["name", "dt"], ["name", "ts"]], ids=" ".join)
@pytest.mark.parametrize("way", forms(LATE_WAYS, ("cow", "mor", "mor-bucket", "mor-global-executors")))
def test_a_late_row_of_a_partial_update_is_late_whether_its_time_is_taken_or_not(spark, tmp_path, way, taken):
    table_type, options = LATE_WAYS[way]
    parted = "dt" in taken and "global" in way
    table = create(
        spark,
        tmp_path,
        precombine_field="ts",
        partition_by=["dt"] if parted else [],
        table_type=table_type,
        options=options,
    )
    stored = [(number, 5, "a", "stored", "kept", False) for number in range(1, 7)]
    table.upsert(spark.createDataFrame(stored, PARTIAL))
    batch = [
        (1, 4, "b", "late", "x", False),
        (2, 4, "b", "late", "x", True),
        (3, 5, "b", "equal", "x", False),
        (4, 6, "b", "newer", "x", False),
        (5, 6, "b", "gone", "x", True),
        (6, None, "b", "no claim", "x", True),
        (7, 1, "b", "new", "x", False),
    ]
    result = table.upsert(spark.createDataFrame(batch, PARTIAL), update_columns=taken)
    day, time = "b" if "dt" in taken else "a", 6 if "ts" in taken else 5
    expected = [
        (1, 5, "a", "stored", "kept"),
        (2, 5, "a", "stored", "kept"),
        (3, 5, day, "equal", "kept"),
        (4, time, day, "newer", "kept"),
        (7, 1, "b", "new", "x"),
    ]
    names = ["id", "ts", "dt", "name", "note"]
    assert sorted(map(tuple, table.snapshot().select(*names).collect())) == expected
    assert rows_by_hudi_rs(table.path, names) == expected
    if taken != ["name", "ts"] and not parted:
        assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 2, 2)


@pytest.mark.parametrize("files", ["1", "2"])
@pytest.mark.parametrize("small_rows", ["1000", "0"])
def test_a_partial_update_leaves_the_newer_of_two_copies(spark, tmp_path, table_type, small_rows, files):
    limit = "0" if files == "2" else str(1024**2)
    options = {"hoodie.engine.small.batch.rows": small_rows, "hoodie.parquet.small.file.limit": limit}
    table = create(spark, tmp_path, precombine_field="ts", table_type=table_type, options=options)
    table.insert(frame(spark, (1, 3, "a", "older"), (2, 9, "a", "newest")))
    table.insert(frame(spark, (1, 9, "a", "newest"), (2, 3, "a", "older")))
    table.upsert(frame(spark, (1, 5, "z", "mid"), (2, 1, "z", "late")), update_columns=["name"])
    check_readers(
        table, [(1, 3, "a", "mid"), (1, 9, "a", "newest"), (2, 3, "a", "older"), (2, 9, "a", "newest")]
    )


@pytest.mark.parametrize("way", ["delete", "by a mark", "by key alone"])
@pytest.mark.parametrize("small_rows", ["1000", "0"])
def test_a_global_delete_takes_every_copy_also_the_one_in_the_partition_it_names(
    spark, tmp_path, table_type, small_rows, way
):
    options = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.engine.small.batch.rows": small_rows}
    table = create(
        spark, tmp_path, precombine_field="ts", partition_by=["dt"], table_type=table_type, options=options
    )
    for day in "ab":
        table.insert(frame(spark, (1, 10, day, "copy"), (2, 10, day, "other")))
    if way == "by a mark":
        rows = spark.createDataFrame([(1, 20, "a", "", True), (3, 20, "c", "", True)], MARKED)
        result = table.upsert(rows)
    else:
        keys = frame(spark, (1, 20, "a", ""), (3, 20, "c", ""))
        result = table.delete(keys if way == "delete" else keys.select("id"))
    assert result.rows_deleted == 2
    check_readers(table, [(2, 10, "a", "other"), (2, 10, "b", "other")])


def test_a_partial_update_takes_all_ordering_fields_or_none(spark, tmp_path):
    table = create(spark, tmp_path, precombine_field=["ts", "dt"])
    table.upsert(frame(spark, (1, 10, "a", "one")))
    with pytest.raises(ConfigError, match="update_columns takes dt of the ordering fields ts, dt"):
        table.upsert(frame(spark, (1, 20, "b", "two")), update_columns=["name", "DT"])
    table.upsert(frame(spark, (1, 20, "b", "two")), update_columns=["name", "dt", "ts"])
    assert rows_of(table) == [(1, 20, "b", "two")]


@pytest.mark.parametrize("path", ["driver", "joined"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
def test_a_row_that_stays_where_its_key_is_says_so_to_every_reader_and_filter(
    spark, tmp_path, table_type, index, path
):
    short = index.removeprefix("GLOBAL_").removesuffix("_INDEX").lower()
    options = {"hoodie.index.type": index, f"hoodie.{short}.index.update.partition.path": "false"}
    if index == "RECORD_INDEX":
        options["hoodie.write.table.version"] = "9"
    if path == "joined":
        options |= {"hoodie.engine.small.batch.rows": 0, "hoodie.engine.wide.partition.bytes": 1}
    table = create(
        spark, tmp_path, precombine_field="ts", partition_by=["dt"], table_type=table_type, options=options
    )
    table.upsert(frame(spark, (1, 10, "a", "one"), (2, 10, "b", "two")))
    assert table.upsert(frame(spark, (1, 20, "b", "stays"), (3, 20, "b", "new"))).path_taken == path
    check_readers(table, [(1, 20, "a", "stays"), (2, 10, "b", "two"), (3, 20, "b", "new")])
    found = {
        value: sorted(read(table.path, filters=[("dt", "=", value)]).to_arrow()["id"].to_pylist())
        for value in "ab"
    }
    assert found == {"a": [1], "b": [2, 3]}
    table.update_where("id = 1", {"name": "'renamed'"})
    check_readers(table, [(1, 20, "a", "renamed"), (2, 10, "b", "two"), (3, 20, "b", "new")])


def test_update_columns_leave_the_others_in_a_bucket(spark, tmp_path, table_type):
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = create(spark, tmp_path, table_type=table_type, options=options)
    table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 20, "z", "ignored"), (4, 20, "d", "four")), update_columns=["ts"])
    check_readers(table, [(1, 20, "a", "one"), *FIRST[1:], (4, 20, "d", "four")])


@pytest.mark.parametrize(
    ("index", "small_rows"),
    [("SIMPLE", "1000"), ("GLOBAL_SIMPLE", "0"), ("GLOBAL_SIMPLE", "1000"), ("BUCKET", "0")],
)
def test_match_condition_asks_the_row_that_would_be_updated(spark, tmp_path, index, small_rows):
    options = {"hoodie.index.type": index, "hoodie.engine.small.batch.rows": small_rows}
    table = create(spark, tmp_path, partition_by=["dt"], options=options)
    stored = [(1, 10, "a", "one")] if index == "GLOBAL_SIMPLE" else [(1, 10, "a", "one"), (1, 90, "b", "x")]
    table.upsert(frame(spark, *stored))
    new = (1, 20, "b" if index == "GLOBAL_SIMPLE" else "a", "miss")
    table.upsert(frame(spark, new), match_condition="DBT_INTERNAL_DEST.ts > 50")
    assert rows_of(table) == sorted([*stored, new])


RECORD_INDEX = {
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.write.table.version": "9",
}


@pytest.mark.core
@pytest.mark.parametrize(
    ("table_type", "rows_limit", "index"),
    [
        ("cow", "200000", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
        ("mor", "0", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
        ("mor", "200000", RECORD_INDEX),
        ("cow", "0", RECORD_INDEX),
    ],
)
def test_a_global_index_moves_a_key_to_its_new_partition(spark, tmp_path, table_type, rows_limit, index):
    options = {**HIVE, **index, "hoodie.engine.small.batch.rows": rows_limit}
    table = keyed_table(spark, tmp_path / "t", table_type, options=options)
    table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 20, "b", "moved"), (2, 5, "b", "late"), (4, 20, "c", "four")))
    check_readers(table, [(1, 20, "b", "moved"), *FIRST[1:], (4, 20, "c", "four")])
    table.upsert(frame(spark, (3, 20, "a", "ignored")), update_columns=["ts", "dt"])
    check_readers(table, [(1, 20, "b", "moved"), FIRST[1], (3, 20, "a", "three"), (4, 20, "c", "four")])
    result = table.delete(spark.createDataFrame([(1,), (3,)], "id int"))
    assert result.rows_deleted == 2
    check_readers(table, [FIRST[1], (4, 20, "c", "four")])


def test_a_key_that_came_back_by_insert_is_updated_once(spark, tmp_path, table_type):
    table = create(
        spark,
        tmp_path,
        precombine_field="ts",
        table_type=table_type,
        options={"hoodie.parquet.small.file.limit": "0"},
    )
    table.upsert(frame(spark, *FIRST))
    table.delete(frame(spark, (1, 0, "a", ""), (2, 0, "a", "")))
    table.insert(frame(spark, (1, 11, "a", "again")))
    table.upsert(frame(spark, (1, 12, "a", "updated")))
    check_readers(table, [(1, 12, "a", "updated"), FIRST[2]])
    without_duplicates = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    rows = frame(spark, (1, 20, "a", "known"), (2, 20, "a", "older"), (2, 21, "a", "back"))
    table.insert(rows, options=without_duplicates)
    check_readers(table, [(1, 12, "a", "updated"), (2, 21, "a", "back"), FIRST[2]])


def test_delete_by_key_alone_removes_every_row_of_the_key(spark, tmp_path, table_type):
    table = create(spark, tmp_path, partition_by=["dt"], table_type=table_type)
    table.insert(frame(spark, (1, 10, "a", "one"), (1, 10, "b", "uno"), (2, 10, "b", "two")))
    assert table.delete(spark.createDataFrame([(1,)], "id int")).rows_deleted == 2
    check_readers(table, [(2, 10, "b", "two")])


@pytest.mark.parametrize("rows_limit", ["200000", "0"], ids=["driver", "executors"])
def test_rows_marked_as_deleted_are_not_inserted(spark, tmp_path, rows_limit):
    options = {"hoodie.engine.small.batch.rows": rows_limit}
    table = create(spark, tmp_path, options=options)
    rows = spark.createDataFrame([(1, False), (2, True), (3, None)], "id int, _hoodie_is_deleted boolean")
    table.bulk_insert(rows)
    assert sorted(row.id for row in table.snapshot().collect()) == [1, 3]


@pytest.mark.core
@pytest.mark.parametrize(("index", "table_type"), in_turn(("SIMPLE", "BLOOM", "BUCKET"), ("cow", "mor")))
def test_every_index_gives_the_same_rows(spark, tmp_path, table_type, index):
    options = {**HIVE, "hoodie.index.type": index, "hoodie.parquet.small.file.limit": "0"}
    table = keyed_table(spark, tmp_path / "t", table_type, options=options)
    table.upsert(frame(spark, *[(n, 1, "ab"[n % 2], f"v{n}") for n in range(40)]))
    table.upsert(frame(spark, *[(n, 2, "ab"[n % 2], f"w{n}") for n in range(30, 50)]))
    expected = [(n, 1, "ab"[n % 2], f"v{n}") for n in range(30)] + [
        (n, 2, "ab"[n % 2], f"w{n}") for n in range(30, 50)
    ]
    check_readers(table, expected)


@pytest.mark.core
def test_a_model_without_a_key_gets_generated_keys(spark, tmp_path, table_type):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", table_type=table_type)
    table.insert(frame(spark, *FIRST))
    table.insert(frame(spark, FIRST[0]))
    for number in range(10):
        table.insert(frame(spark, *[(number, 1, "a", "x")] * 5))
    keys = [row[0] for row in table.snapshot().select("_hoodie_record_key").collect()]
    assert len(set(keys)) == 4 + 50
    with pytest.raises(ConfigError, match="no record key"):
        table.upsert(frame(spark, *FIRST))


@pytest.mark.core
@pytest.mark.parametrize(("table_type", "rows_limit"), in_turn(("mor", "cow"), ("200000", "0")))
def test_a_bucketed_table_keeps_its_buckets_whatever_is_called(spark, tmp_path, table_type, rows_limit):
    path = str(tmp_path / "t")
    options = {**HIVE, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    keyed_table(
        spark,
        path,
        table_type,
        options=options,
    )
    table = HudiTable.open(spark, path, options={"hoodie.engine.small.batch.rows": rows_limit})
    rows = [(n, 1, "a", f"v{n}") for n in range(20)]
    table.bulk_insert(frame(spark, *rows))
    table.insert_overwrite(frame(spark, *rows[:10]))
    table.upsert(frame(spark, *[(n, 2, "a", f"w{n}") for n in range(5, 15)]))
    check_readers(table, rows[:5] + [(n, 2, "a", f"w{n}") for n in range(5, 15)])
    names = {row[0] for row in table.snapshot().select("_hoodie_file_name").distinct().collect()}
    assert {int(name[:8]) for name in names} == {0, 1, 2}
    with pytest.raises(ConfigError, match="made with"):
        table.upsert(frame(spark, *rows), options={"hoodie.bucket.index.num.buckets": "4"})


@pytest.mark.core
@pytest.mark.parametrize(("operation", "rows_limit"), in_turn(("insert", "bulk_insert"), ("200000", "0")))
def test_an_insert_stands_beside_the_stored_row_of_its_key_in_a_bucket_of_base_files(
    spark, tmp_path, operation, rows_limit
):
    path = str(tmp_path / "t")
    options = {**HIVE, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    keyed_table(spark, path, "cow", options=options)
    table = HudiTable.open(spark, path, options={"hoodie.engine.small.batch.rows": rows_limit})
    stored = [(n, 5, "a", f"v{n}") for n in range(5)]
    table.bulk_insert(frame(spark, *stored))
    added = [(n, 1, "a", f"w{n}") for n in range(3, 8)]
    getattr(table, operation)(frame(spark, *added))
    check_readers(table, stored + added)
    table.insert(
        frame(spark, (4, 9, "a", "skipped"), (9, 9, "a", "new")),
        options={"hoodie.datasource.write.insert.drop.duplicates": "true"},
    )
    check_readers(table, [*stored, *added, (9, 9, "a", "new")])


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
@pytest.mark.parametrize("written", ["true", "false"])
def test_times_as_keys_in_another_form_than_the_stored_ones_are_refused(
    spark, tmp_path, table_type, index, written
):
    option = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    options = {option: written, "hoodie.index.type": index}
    table = create(spark, tmp_path, table_type=table_type, options=options)
    rows = spark.sql("select timestamp '2026-01-02 03:04:05.678' id, 'a' name")
    table.upsert(rows)
    assert table.upsert(rows).rows_updated == 1
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    other = {"true": "false", "false": "true"}[written]
    kept = [line for line in properties.read_text().splitlines() if not line.startswith(option)]
    properties.write_text("\n".join([*kept, f"{option}={other}", ""]))

    with pytest.raises(InvalidKeyError, match=f"no stored row would be found; set {option} to {written}"):
        HudiTable.open(spark, table.path).upsert(rows)
    assert len(table.commits()) == 2
