"""Every write operation on both table types, partitioned and not, read back by our reader and by hudi-rs."""

from __future__ import annotations

import shutil

import pytest
from hudi_engine import ConfigError, DataError, HudiTable, build_table, rebuild_table
from hudi_engine.errors import TableExistsError, WriteConflictError
from hudi_engine.spark.write.spread import distributed

from tests.spark.orders import (
    COLUMNS,
    FIRST,
    HIVE,
    check_readers,
    create,
    every_pair,
    frame,
    one_shape,
    rows_of,
    the_others,
)


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
def test_delete_removes_the_keys_given(spark, table):
    table.upsert(frame(spark, *FIRST))
    result = table.delete(frame(spark, (1, 0, "a", ""), (9, 0, "a", "")))
    assert result.rows_deleted == 1
    check_readers(table, FIRST[1:])


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


@pytest.mark.core
def test_a_bulk_insert_gathers_partitions_unless_all_rows_of_large_files_are_loaded(
    spark, tmp_path, monkeypatch
):
    rows = frame(spark, (1, 10, "a", "one"), (2, 10, "b", "two"), (3, 10, "a", "three"), (4, 10, "b", "four"))
    rows.coalesce(1).write.parquet(str(tmp_path / "first"))
    rows.coalesce(1).write.parquet(str(tmp_path / "second"))
    monkeypatch.setattr(distributed, "UNSHUFFLED_FILE_BYTES", 100)
    monkeypatch.setattr(distributed, "COUNTED_BYTES", 1)
    table = create(spark, tmp_path, partition_by=["dt"], options={"hoodie.engine.small.batch.rows": 0})
    loaded = spark.read.parquet(str(tmp_path / "first"), str(tmp_path / "second"))
    assert loaded.rdd.getNumPartitions() == 2
    assert table.bulk_insert(loaded).files_written == 4
    assert table.bulk_insert(loaded.where("id < 4")).files_written == 4, "what the filter leaves is large too"
    monkeypatch.setattr(distributed, "UNSHUFFLED_FILE_BYTES", 1000)
    assert table.bulk_insert(loaded.where("id < 4")).files_written == 2
    assert table.bulk_insert(loaded.where("id < 0")).files_written == 0
    by_two = {"hoodie.bulkinsert.shuffle.parallelism": 2}
    assert table.bulk_insert(loaded, options=by_two).files_written == 2


@pytest.mark.core
def test_a_bulk_insert_of_many_source_tasks_uses_as_few_as_there_are_cores(spark, tmp_path, monkeypatch):
    """Each task makes a file of each partition, so fewer tasks make larger files; none holds more rows than it may."""
    monkeypatch.setattr(distributed, "UNSHUFFLED_FILE_BYTES", 100)
    cores = spark.sparkContext.defaultParallelism
    rows = spark.range(3000).selectExpr(
        "cast(id as int) id", "1L ts", "concat('p', id % 2) dt", "cast(id as string) name"
    )
    rows.repartition(3 * cores).write.parquet(str(tmp_path / "source"))
    settings = {
        "spark.sql.files.maxPartitionBytes": "2000",
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        source = spark.read.parquet(str(tmp_path / "source"))
        table = create(spark, tmp_path, partition_by=["dt"], options={"hoodie.engine.small.batch.rows": 0})
        assert source.rdd.getNumPartitions() >= 3 * cores, (
            "of larger files some tasks find no rows to begin at"
        )
        assert table.bulk_insert(source).files_written == 2 * cores
        little = {"hoodie.engine.write.task.max.bytes": 1000}
        assert table.insert_overwrite(source, options=little).files_written == 6 * cores, "a task a file"
        spark.conf.set("spark.dynamicAllocation.enabled", "true")
        assert table.insert_overwrite(source).files_written == 6 * cores, "cores come as tasks ask for them"
        assert table.snapshot().selectExpr("count(distinct id)", "count(*)").first() == (3000, 3000)
    finally:
        for key in ("spark.dynamicAllocation.enabled", *settings):
            spark.conf.unset(key)


@pytest.mark.core
def test_a_bulk_insert_writes_when_a_task_holds_too_many_rows(spark, tmp_path):
    rows = spark.range(0, 40_000, 1, 1).selectExpr(
        "cast(id as int) id", "1L ts", "'a' dt", "cast(id as string) name"
    )
    table = create(spark, tmp_path, options={"hoodie.engine.small.batch.rows": 0})
    assert table.bulk_insert(rows).files_written == 1
    few = {"hoodie.engine.write.task.max.bytes": 200_000}
    written = table.bulk_insert(rows.selectExpr("id + 40000 id", "ts", "dt", "name"), options=few)
    assert written.files_written > 2, "Arrow brings ten thousand rows at a time"
    assert table.snapshot().selectExpr("count(distinct id)", "count(*)").first() == (80_000, 80_000)


@pytest.mark.core
def test_partition_counts_of_parquet_sources_decide_spread(spark, tmp_path, monkeypatch):
    counts = []
    original = distributed._rows_of_few_partitions
    monkeypatch.setattr(
        distributed, "_rows_of_few_partitions", lambda *given: counts.append(original(*given)) or counts[-1]
    )
    monkeypatch.setattr(distributed, "UNSHUFFLED_FILE_BYTES", 100)
    a_task_a_file = {"spark.sql.files.maxPartitionBytes": "2000", "spark.sql.files.openCostInBytes": "0"}
    for key, value in a_task_a_file.items():
        spark.conf.set(key, value)
    try:
        for number in range(16):
            one = spark.range(number * 100, number * 100 + 100, 1, 1).selectExpr(
                "cast(id as int) id", "1L ts", "concat('p', id % 2) dt", "cast(id as string) name"
            )
            one.write.parquet(str(tmp_path / "even" / f"f{number}"))
        even = spark.read.parquet(*map(str, sorted((tmp_path / "even").iterdir())))
        options = {"hoodie.engine.small.batch.rows": 0}
        table = create(spark, tmp_path / "t1", partition_by=["dt"], options=options)
        assert table.bulk_insert(even).rows_inserted == 1600 and counts[-1] == {"p0": 800, "p1": 800}
        assert table.insert_overwrite(even.where("id >= 8")).rows_inserted == 1592
        assert len(counts) == 1, "what a filter leaves of a small source is shuffled without a count"
        monkeypatch.setattr(distributed, "COUNTED_BYTES", 1)
        assert table.insert_overwrite(even.where("id >= 8")).rows_inserted == 1592
        assert counts[-1] == {"p0": 796, "p1": 796}
        assert table.snapshot().count() == 1592
    finally:
        for key in a_task_a_file:
            spark.conf.unset(key)


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


def test_characters_with_a_meaning_in_patterns_are_plain_in_partition_folders(spark, tmp_path):
    table = create(spark, tmp_path, partition_by=["dt"])
    rows = [(1, 1, "a[b]*?{c}", "x"), (2, 1, "d\\e", "y"), (3, 1, "50%20 é&#", "z")]
    table.upsert(frame(spark, *rows))
    assert rows_of(table) == sorted(rows)
    with pytest.raises(DataError, match="300 bytes"):
        table.upsert(frame(spark, (1, 1, "x" * 300, "x")))
    assert len(table.timeline()) == 1


def test_delete_partitions_takes_whole_partitions_out(spark, tmp_path, table_type):
    table = create(spark, tmp_path, partition_by=["dt"], table_type=table_type, options=HIVE)
    table.upsert(frame(spark, *FIRST))
    result = table.delete_partitions(["dt=a"])
    assert result.rows_deleted == 2
    check_readers(table, FIRST[2:])
    with pytest.raises(ConfigError, match="hold no rows"):
        table.delete_partitions(["dt=nowhere"])


@pytest.mark.core
def test_a_first_build_replaces_no_rows_that_came_before_or_meanwhile(
    spark, tmp_path, table_type, monkeypatch
):
    path, original = str(tmp_path / "t"), HudiTable.write_anew
    definition = {"name": "t", "record_key": ["id"], "partition_by": ["dt"], "table_type": table_type}
    other = spark.createDataFrame([(1, "a", "other")], "id int, dt string, v string")

    def late(self, *given, **named):
        monkeypatch.undo()
        build_table(spark, path, other, **definition)
        return original(self, *given, **named)

    for begun in ("the folder", "nothing"):
        if begun == "the folder":
            shutil.rmtree(path, ignore_errors=True)
            HudiTable.create(spark, path, **definition)  # a first build that died leaves no more than this
        monkeypatch.setattr(HudiTable, "write_anew", late)
        with pytest.raises(WriteConflictError):
            build_table(spark, path, other.selectExpr("id", "dt", "'mine' as v"), **definition)
        assert [row.v for row in HudiTable.open(spark, path).snapshot().collect()] == ["other"]
        with pytest.raises(TableExistsError, match="has rows by now"):
            build_table(spark, path, other, **definition)
        shutil.rmtree(path)


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
def test_an_empty_batch_makes_an_instant_unless_asked_not_to(spark, table):
    empty = frame(spark, *FIRST).limit(0)
    assert table.upsert(empty).instant is not None
    options = {"hoodie.skip.empty.commit": "true", "hoodie.engine.small.batch.rows": "1000"}
    assert table.upsert(empty, options=options).instant is None


EMPTY = "org.apache.hudi.common.model.EmptyHoodieRecordPayload"


@pytest.mark.parametrize("key", ["hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_an_upsert_of_empty_payloads_deletes(spark, tmp_path, kind, key):
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field="ts", table_type=kind
    )
    table.upsert(spark.sql("select id, 5 as ts from range(4)"))
    before = table.config.properties
    options = {key: EMPTY, "hoodie.datasource.write.operation": "upsert"}
    result = table.upsert(spark.sql("select id, 1 as ts from range(2, 6)"), options=options)
    assert result.rows_deleted == 2
    assert sorted(row.id for row in table.snapshot().collect()) == [0, 1]
    assert table.config.properties == before
    for refused in (
        lambda: table.insert(spark.sql("select 7L as id, 1 as ts"), options={key: EMPTY}),
        lambda: table.upsert(
            spark.sql("select 0L as id, 1 as ts"), options={key: EMPTY}, update_columns=["ts"]
        ),
        lambda: HudiTable.create(
            spark, str(tmp_path / "n"), name="n", record_key=["id"], options={key: EMPTY}
        ),
    ):
        with pytest.raises(ConfigError, match="EmptyHoodieRecordPayload', (with )?which"):
            refused()
