"""Every write operation on both table types, partitioned and not, read back by our reader and by hudi-rs."""

from __future__ import annotations

import hudi_engine
import pytest
from hudi_engine import (
    ConfigError,
    CorruptTableError,
    DataError,
    HudiTable,
    InvalidKeyError,
    PathEscapeError,
    SchemaError,
    TableExistsError,
    TableNotFoundError,
    rebuild_table,
)
from hudi_engine.write.spread import bulk_order
from py4j.protocol import Py4JJavaError

from tests.helpers.forms import forms, in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
COLUMNS = "id int, ts bigint, dt string, name string"


def frame(spark, *rows):
    return spark.createDataFrame([tuple(row) for row in rows], COLUMNS)


def create(spark, tmp_path, **definition):
    """An empty table in folder ``t`` with the key ``id``."""
    return HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], **definition)


def rows_of(table):
    return sorted(tuple(row) for row in table.snapshot().select("id", "ts", "dt", "name").collect())


def check_readers(table, expected):
    """Our reader and hudi-rs return exactly these rows."""
    assert rows_of(table) == sorted(expected)
    assert rows_by_hudi_rs(table.path, ["id", "ts", "dt", "name"]) == sorted(expected)


@pytest.fixture(params=forms(("cow", "mor"), ("mor",)))
def table_type(request):
    return request.param


# The small-batch path on the driver and the distributed path give the same table.
SHAPES = {
    "cow-driver-partitioned": ("cow", None, ["dt"]),
    "cow-executors-partitioned": ("cow", "0", ["dt"]),
    "mor-driver-partitioned": ("mor", None, ["dt"]),
    "mor-executors-partitioned": ("mor", "0", ["dt"]),
    "cow-executors-unpartitioned": ("cow", "0", None),
    "mor-driver-unpartitioned": ("mor", None, None),
}
BOTH = ("cow-driver-partitioned", "mor-executors-partitioned")


def shapes(*in_the_gate):
    """All of them; those that are not named are for the long tier."""
    return [
        pytest.param(shape, id=name, marks=() if name in in_the_gate else pytest.mark.long)
        for name, shape in SHAPES.items()
    ]


OTHERS = ("cow-executors-unpartitioned", "mor-driver-unpartitioned")
# Type, path and partitions in every pair of them; the other two of those pairs; what is the same for all of them.
every_pair = pytest.mark.parametrize("table", shapes(*BOTH, *OTHERS), indirect=True)
the_others = pytest.mark.parametrize("table", shapes(*OTHERS), indirect=True)
one_shape = pytest.mark.parametrize("table", shapes(BOTH[1]), indirect=True)


@pytest.fixture(params=shapes(*BOTH))
def table(request, spark, tmp_path):
    kind, small_rows, partition_by = request.param
    return HudiTable.create(
        spark,
        str(tmp_path / "orders"),
        name="orders",
        record_key=["id"],
        precombine_field="ts",
        partition_by=partition_by,
        table_type=kind,
        options={**HIVE, **({} if small_rows is None else {"hoodie.engine.small.batch.rows": small_rows})},
    )


FIRST = [(1, 10, "a", "one"), (2, 10, "a", "two"), (3, 10, "b", "three")]


@one_shape
def test_a_table_without_a_commit_reads_as_empty(spark, table):
    assert table.snapshot().count() == 0
    assert table.timeline() == []


@pytest.mark.core
@every_pair
def test_upsert_updates_known_keys_and_inserts_new_ones(spark, table):
    first = table.upsert(frame(spark, *FIRST))
    second = table.upsert(frame(spark, (2, 20, "a", "TWO"), (4, 20, "c", "four")))
    assert (first.rows_inserted, first.rows_updated) == (3, 0)
    assert (second.rows_inserted, second.rows_updated, second.rows_deleted) == (1, 1, 0)
    assert second.files_written > 0 and second.bytes_written > 0
    check_readers(
        table, [(1, 10, "a", "one"), (2, 20, "a", "TWO"), (3, 10, "b", "three"), (4, 20, "c", "four")]
    )


def test_a_late_row_with_a_smaller_precombine_value_loses(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 5, "a", "late")))
    check_readers(table, FIRST)


def test_the_case_of_names_does_not_decide_which_row_stands(spark, tmp_path):
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["ID"],
        precombine_field="TS",
        partition_by=["Dt"],
        table_type="mor",
        options=HIVE,
    )
    table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 5, "a", "late")))
    assert rows_of(table) == FIRST
    assert table.schema.names == ["ID", "TS", "Dt", "name"]


@pytest.mark.core
@the_others
def test_rows_of_one_batch_with_the_same_key_become_the_newest(spark, table):
    table.upsert(frame(spark, (1, 10, "a", "old"), (1, 30, "a", "newest"), (1, 20, "a", "middle")))
    check_readers(table, [(1, 30, "a", "newest")])


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
def test_delete_removes_the_keys_given(spark, table):
    table.upsert(frame(spark, *FIRST))
    result = table.delete(frame(spark, (1, 0, "a", ""), (9, 0, "a", "")))
    assert result.rows_deleted == 1
    check_readers(table, FIRST[1:])


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


def test_insert_keeps_rows_with_a_known_key(spark, table):
    table.insert(frame(spark, *FIRST))
    result = table.insert(frame(spark, (1, 20, "a", "again")))
    assert result.rows_inserted == 1
    assert rows_of(table) == sorted([*FIRST, (1, 20, "a", "again")])


@pytest.mark.core
@one_shape
def test_insert_without_duplicates_drops_rows_whose_key_is_known(spark, table):
    table.insert(frame(spark, *FIRST))
    options = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    table.insert(frame(spark, (1, 20, "a", "again"), (5, 20, "a", "five")), options=options)
    check_readers(table, [*FIRST, (5, 20, "a", "five")])


@pytest.mark.core
def test_bulk_insert_then_upsert(spark, table):
    table.bulk_insert(frame(spark, *FIRST))
    table.upsert(frame(spark, (3, 20, "b", "THREE")))
    check_readers(table, [*FIRST[:2], (3, 20, "b", "THREE")])


@pytest.mark.core
@the_others
def test_insert_overwrite_replaces_touched_partitions(spark, table):
    table.upsert(frame(spark, *FIRST))
    result = table.insert_overwrite(frame(spark, (7, 20, "a", "seven")))
    kept = [FIRST[2]] if table.config.is_partitioned else []
    assert result.rows_deleted == 3 - len(kept)
    check_readers(table, [(7, 20, "a", "seven"), *kept])


def test_insert_overwrite_table_replaces_everything(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.insert_overwrite_table(frame(spark, (7, 20, "c", "seven")))
    check_readers(table, [(7, 20, "c", "seven")])


@one_shape
def test_overwriting_with_no_rows_empties_the_table(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.insert_overwrite_table(frame(spark, *FIRST).limit(0))
    assert rows_of(table) == []


@pytest.mark.core
def test_update_columns_leave_the_others(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 20, "a", "ignored")), update_columns=["ts"])
    check_readers(table, [(1, 20, "a", "one"), *FIRST[1:]])


def test_update_columns_of_a_deleted_key_bring_the_whole_row(spark, tmp_path):
    table = create(spark, tmp_path, table_type="mor")
    table.upsert(frame(spark, *FIRST))
    table.delete(frame(spark, FIRST[0]))
    table.upsert(frame(spark, (1, 20, "a", "back"), (2, 20, "a", "ignored")), update_columns=["ts"])
    check_readers(table, [(1, 20, "a", "back"), (2, 20, "a", "two"), FIRST[2]])


def test_update_columns_leave_the_others_in_a_bucket(spark, tmp_path, table_type):
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = create(spark, tmp_path, table_type=table_type, options=options)
    table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 20, "z", "ignored"), (4, 20, "d", "four")), update_columns=["ts"])
    check_readers(table, [(1, 20, "a", "one"), *FIRST[1:], (4, 20, "d", "four")])


@pytest.mark.core
def test_a_bulk_insert_gathers_partitions_unless_all_rows_of_large_files_are_loaded(
    spark, tmp_path, monkeypatch
):
    rows = frame(spark, (1, 10, "a", "one"), (2, 10, "b", "two"), (3, 10, "a", "three"), (4, 10, "b", "four"))
    rows.coalesce(1).write.parquet(str(tmp_path / "first"))
    rows.coalesce(1).write.parquet(str(tmp_path / "second"))
    monkeypatch.setattr(bulk_order, "UNSHUFFLED_FILE_BYTES", 100)
    table = create(spark, tmp_path, partition_by=["dt"], options={"hoodie.engine.small.batch.rows": 0})
    loaded = spark.read.parquet(str(tmp_path / "first"), str(tmp_path / "second"))
    assert loaded.rdd.getNumPartitions() == 2
    assert table.bulk_insert(loaded).files_written == 4
    assert table.bulk_insert(loaded.where("id < 3")).files_written == 2
    by_two = {"hoodie.bulkinsert.shuffle.parallelism": 2}
    assert table.bulk_insert(loaded, options=by_two).files_written == 2


@pytest.mark.core
@one_shape
def test_match_condition_inserts_what_does_not_match(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.upsert(
        frame(spark, (1, 20, "a", "hit"), (2, 20, "a", "miss")), match_condition="DBT_INTERNAL_DEST.id <> 2"
    )
    assert rows_of(table) == sorted(
        [(1, 20, "a", "hit"), (2, 10, "a", "two"), (2, 20, "a", "miss"), FIRST[2]]
    )


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


def test_a_log_bucket_refuses_a_second_row_of_a_key(spark, tmp_path):
    table = create(spark, tmp_path, table_type="mor", options={"hoodie.index.type": "BUCKET"})
    table.upsert(frame(spark, *FIRST))
    with pytest.raises(DataError, match="'2' is stored in a row that does not fulfil the match condition"):
        table.upsert(frame(spark, (2, 20, "a", "two")), match_condition="DBT_INTERNAL_DEST.ts > 50")
    assert rows_of(table) == FIRST


@pytest.mark.core
@the_others
def test_delete_where_and_update_where(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.update_where("id = 2", {"name": "upper(name)"})
    table.delete_where("id = 3")
    check_readers(table, [FIRST[0], (2, 10, "a", "TWO")])
    commits = len(table.timeline())
    asked = {"hoodie.engine.small.batch.rows": "1000"}
    assert table.delete_where("id = 3", options=asked).instant is None
    assert table.update_where("id = 3", {"name": "'x'"}, options=asked).instant is None
    assert len(table.timeline()) == commits, "what changes no row makes no commit"


@pytest.mark.core
def test_assignments_and_columns_that_make_no_sense_are_refused_by_name(spark, tmp_path):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    with pytest.raises(
        ConfigError, match="'nam' is not in the table; did you mean 'name'. its columns: id, ts"
    ):
        table.update_where("id = 1", {"nam": "'x'"})
    for assignments in ({"name": "nowhere"}, {"name": "upper("}, {}, ["name"]):
        with pytest.raises(ConfigError, match="assignments"):
            table.update_where("id = 1", assignments)
    with pytest.raises(ConfigError, match="update_columns"):
        table.upsert(frame(spark, *FIRST), update_columns=["nowhere"])
    with pytest.raises(ConfigError, match="schema is"):
        table.alter_schema(["id"])
    table.upsert(frame(spark, (1, 20, "z", "ignored")), update_columns="ts")
    table.alter_schema("id int, ts bigint, dt string, name string, price double")
    table.update_where("id = 2", {"price": 5})
    found = table.snapshot().orderBy("id").select("ts", "name", "price").collect()
    assert [tuple(row) for row in found] == [(20, "one", None), (10, "two", 5.0), (10, "three", None)]


@pytest.mark.core
@one_shape
def test_a_new_column_is_null_in_old_rows(spark, table):
    table.upsert(frame(spark, *FIRST))
    wider = spark.createDataFrame([(1, 20, "a", "one", 1.5)], COLUMNS + ", price double")
    table.upsert(wider)
    found = {row.id: row.price for row in table.snapshot().collect()}
    assert found == {1: 1.5, 2: None, 3: None}


@pytest.mark.core
def test_fields_of_structs_are_matched_by_name(spark, tmp_path):
    table = create(spark, tmp_path)
    first = "id int, s struct<a:int,b:int>, l array<struct<a:int,b:int>>, m map<string,struct<a:int,b:int>>"
    table.upsert(spark.createDataFrame([(1, (1, 2), [(1, 2)], {"k": (1, 2)}), (2, None, None, None)], first))
    second = (
        "id int, s struct<B:int,c:string,a:bigint>, l array<struct<b:int,a:int>>, m map<string,struct<b:int>>"
    )
    table.upsert(
        spark.createDataFrame(
            [(3, (20, "c", 10), [(20, 10), None], {"k": (20,)}), (4, None, None, None)], second
        )
    )
    found = {
        row.id: row.asDict(recursive=True) for row in table.snapshot().select("id", "s", "l", "m").collect()
    }
    assert found == {
        1: {"id": 1, "s": {"a": 1, "b": 2, "c": None}, "l": [{"a": 1, "b": 2}], "m": {"k": {"a": 1, "b": 2}}},
        2: {"id": 2, "s": None, "l": None, "m": None},
        3: {
            "id": 3,
            "s": {"a": 10, "b": 20, "c": "c"},
            "l": [{"a": 10, "b": 20}, None],
            "m": {"k": {"a": None, "b": 20}},
        },
        4: {"id": 4, "s": None, "l": None, "m": None},
    }


@one_shape
def test_a_batch_without_a_column_writes_null(spark, table):
    table.upsert(frame(spark, *FIRST))
    table.upsert(spark.createDataFrame([(1, 20, "a")], "id int, ts bigint, dt string"))
    assert {row.id: row.name for row in table.snapshot().collect()} == {1: None, 2: "two", 3: "three"}


@pytest.mark.core
def test_rollback_of_the_newest_commit_brings_the_old_rows_back(spark, table):
    table.upsert(frame(spark, *FIRST))
    result = table.upsert(frame(spark, (1, 20, "a", "x"), (9, 20, "z", "nine")))
    table.rollback(result.instant)
    check_readers(table, FIRST)
    table.upsert(frame(spark, (1, 30, "a", "after")))
    check_readers(table, [(1, 30, "a", "after"), *FIRST[1:]])


@pytest.mark.core
@one_shape
def test_time_travel_to_an_instant(spark, table):
    first = table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 20, "a", "x")))
    rows = table.snapshot(as_of=first.instant).select("id", "ts", "dt", "name").collect()
    assert sorted(tuple(row) for row in rows) == FIRST


@pytest.mark.core
@one_shape
def test_meta_columns_come_first_and_are_filled(spark, table):
    result = table.upsert(frame(spark, *FIRST))
    row = table.snapshot().where("id = 3").first()
    assert table.snapshot().columns[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert row["_hoodie_commit_time"] == result.instant
    assert row["_hoodie_record_key"] == "3"
    assert row["_hoodie_partition_path"] == ("dt=b" if table.config.is_partitioned else "")


@one_shape
@pytest.mark.parametrize(
    ("rows", "columns", "error"),
    [
        ([(None, 1, "a", "x")], COLUMNS, InvalidKeyError),
        ([(1, "a", "x")], "ts bigint, dt string, name string", SchemaError),
        ([(1, [1], "a", "x")], "id int, ts array<int>, dt string, name string", SchemaError),
        ([(1, 1, "a", "x", 1)], COLUMNS + ", __hudi_delete int", SchemaError),
    ],
    ids=["null key", "no key column", "ordering column without order", "reserved name"],
)
def test_bad_rows_leave_the_table_as_it_was(spark, table, rows, columns, error):
    table.upsert(frame(spark, *FIRST))
    before = table.timeline()
    with pytest.raises(error):
        table.upsert(spark.createDataFrame(rows, columns))
    assert rows_of(table) == FIRST
    assert [each for each in table.timeline() if each.action != "rollback"] == before


def test_a_partition_value_cannot_leave_the_table(spark, tmp_path, table_type):
    table = create(spark, tmp_path, partition_by=["dt"], table_type=table_type)
    with pytest.raises(PathEscapeError, match="nothing was read or written"):
        table.upsert(frame(spark, (1, 1, "../../out", "x")))
    assert not (tmp_path.parent / "out").exists()
    assert table.snapshot().count() == 0


def test_characters_with_a_meaning_in_patterns_are_plain_in_partition_folders(spark, tmp_path):
    table = create(spark, tmp_path, partition_by=["dt"])
    rows = [(1, 1, "a[b]*?{c}", "x"), (2, 1, "d\\e", "y"), (3, 1, "50%20 é&#", "z")]
    table.upsert(frame(spark, *rows))
    assert rows_of(table) == sorted(rows)
    with pytest.raises(DataError, match="300 bytes"):
        table.upsert(frame(spark, (1, 1, "x" * 300, "x")))
    assert len(table.timeline()) == 1


@pytest.mark.core
def test_rows_that_are_no_dataframe_are_refused(spark, tmp_path):
    table = create(spark, tmp_path)
    for rows in (None, [(1, "a")]):
        with pytest.raises(ConfigError, match="Spark, pandas or Polars DataFrame"):
            table.upsert(rows)


@pytest.mark.core
def test_a_damaged_base_file_is_named(spark, tmp_path):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    (base,) = (tmp_path / "t").glob("*.parquet")
    base.write_bytes(base.read_bytes()[:100])
    with pytest.raises(Py4JJavaError, match=base.name):
        table.snapshot().collect()
    with pytest.raises(CorruptTableError, match=base.name):
        hudi_engine.read(str(tmp_path / "t")).to_arrow()


def test_delete_partitions_takes_whole_partitions_out(spark, tmp_path, table_type):
    table = create(spark, tmp_path, partition_by=["dt"], table_type=table_type, options=HIVE)
    table.upsert(frame(spark, *FIRST))
    result = table.delete_partitions(["dt=a"])
    assert result.rows_deleted == 2
    check_readers(table, FIRST[2:])
    with pytest.raises(ConfigError, match="hold no rows"):
        table.delete_partitions(["dt=nowhere"])


@pytest.mark.core
@pytest.mark.parametrize(("table_type", "rows_limit"), in_turn(("cow", "mor"), ("200000", "0")))
def test_a_global_index_moves_a_key_to_its_new_partition(spark, tmp_path, table_type, rows_limit):
    options = {**HIVE, "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.engine.small.batch.rows": rows_limit}
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


def test_create_and_open_refuse_by_name(spark, tmp_path):
    HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(TableExistsError, match="already"):
        HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(TableNotFoundError, match="no Hudi table"):
        HudiTable.open(spark, str(tmp_path / "nothing"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.csv").write_text("1")
    with pytest.raises(TableExistsError):
        HudiTable.create(spark, str(tmp_path / "files"), name="t", record_key=["id"])
    a_file = tmp_path / "files" / "a.csv"
    with pytest.raises(TableExistsError, match="is a file"):
        HudiTable.create(spark, a_file, name="t", record_key=["id"])
    with pytest.raises(TableNotFoundError):
        HudiTable.open(spark, a_file)


@pytest.mark.core
def test_rebuild_replaces_rows_and_columns_in_one_instant(spark, tmp_path, table_type):
    path = str(tmp_path / "t")
    definition = {
        "name": "t",
        "record_key": ["id"],
        "partition_by": ["dt"],
        "table_type": table_type,
        "options": HIVE,
    }
    rebuild_table(spark, path, frame(spark, *FIRST), **definition)
    narrower = spark.createDataFrame([(8, "z")], "id int, dt string")
    result = rebuild_table(spark, path, narrower, **definition)
    table = HudiTable.open(spark, path)
    assert [tuple(row)[5:] for row in table.snapshot().collect()] == [(8, "z")]
    assert result.operation == "INSERT_OVERWRITE_TABLE"
    assert len(table.timeline()) == 2


def test_rebuild_with_another_key_swaps_the_table(spark, tmp_path, table_type):
    path = str(tmp_path / "t")
    rebuild_table(spark, path, frame(spark, *FIRST), name="t", record_key=["id"], table_type=table_type)
    rebuild_table(spark, path, frame(spark, *FIRST), name="t", record_key=["id", "dt"], table_type=table_type)
    table = HudiTable.open(spark, path)
    assert table.config.record_key_fields == ("id", "dt")
    assert rows_of(table) == FIRST
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


@one_shape
def test_a_small_batch_into_big_partitions_is_written_by_executors(spark, table):
    table.upsert(frame(spark, *FIRST))
    result = table.upsert(
        frame(spark, (1, 20, "a", "x"), (4, 20, "c", "four")),
        options={"hoodie.engine.driver.merge.bytes": "0", "hoodie.engine.small.batch.rows": "1000"},
    )
    assert result.path_taken == "executors"
    check_readers(table, [(1, 20, "a", "x"), *FIRST[1:], (4, 20, "c", "four")])


@one_shape
def test_options_that_contradict_the_table_are_refused(spark, table):
    with pytest.raises(ConfigError, match=r"recordkey\.field is 'name'.*has 'id'"):
        table.upsert(frame(spark, *FIRST), options={"hoodie.datasource.write.recordkey.field": "name"})
    payload = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    with pytest.raises(ConfigError, match=r"payload\.class.*has .*DefaultHoodieRecordPayload"):
        table.upsert(frame(spark, *FIRST), options={"hoodie.datasource.write.payload.class": payload})
    with pytest.raises(ConfigError, match=r"keygenerator\.type is 'TIMESTAMP'"):
        table.upsert(frame(spark, *FIRST), options={"hoodie.datasource.write.keygenerator.type": "TIMESTAMP"})
    assert table.timeline() == []


@one_shape
def test_an_empty_batch_makes_an_instant_unless_asked_not_to(spark, table):
    empty = frame(spark, *FIRST).limit(0)
    assert table.upsert(empty).instant is not None
    options = {"hoodie.skip.empty.commit": "true", "hoodie.engine.small.batch.rows": "1000"}
    assert table.upsert(empty, options=options).instant is None


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


@pytest.mark.parametrize("value", ["1", "cast(null as bigint)"])
def test_an_update_that_makes_a_row_older_is_refused_and_changes_nothing(spark, tmp_path, value):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field="ts")
    table.upsert(spark.createDataFrame([(1, 10, "a"), (2, 10, "b")], "id int, ts bigint, name string"))
    with pytest.raises(Exception, match="orders the versions of a row, and one would go from 10 to (1|null)"):
        table.update_where("id = 1", {"ts": value, "name": "'late'"})
    assert table.update_where("id = 2", {"TS": "ts + 1", "name": "'newer'"}).rows_updated == 1
    assert sorted(tuple(row) for row in table.snapshot().select("id", "ts", "name").collect()) == [
        (1, 10, "a"),
        (2, 11, "newer"),
    ]


def test_an_update_of_one_of_several_ordering_fields_is_refused_where_they_make_the_row_older(
    spark, tmp_path
):
    fields = ["day", "ts"]
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field=fields)
    rows = [(1, 2, 10, "a"), (2, 2, 10, "b"), (3, 2, None, "c")]
    table.upsert(spark.createDataFrame(rows, "id int, day int, ts bigint, name string"))
    for late in ({"ts": "9"}, {"TS": "cast(null as bigint)"}, {"day": "1", "ts": "99"}):
        with pytest.raises(
            Exception, match="day, ts order the versions of a row, and one would go from 2, 10 to"
        ):
            table.update_where("id = 1", {**late, "name": "'late'"})
    assert table.update_where("id = 2", {"day": "3", "ts": "1", "name": "'newer'"}).rows_updated == 1
    assert table.update_where("id = 3", {"ts": "1", "name": "'later'"}).rows_updated == 1
    assert sorted(tuple(row) for row in table.snapshot().select("id", *fields, "name").collect()) == [
        (1, 2, 10, "a"),
        (2, 3, 1, "newer"),
        (3, 2, 1, "later"),
    ]
