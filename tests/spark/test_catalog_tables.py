"""Copy-on-write tables under a name of the catalog, read by nothing but Spark's own Parquet scan."""

from __future__ import annotations

import datetime
import re

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, TableExistsError
from hudi_engine.spark.catalog import TableName, drop_table, list_entries, register_table, registered_base
from hudi_engine.spark.catalog.spark_entry import (
    Column,
    TableSpec,
    _create_by_statements,
    find_entry,
    put_table,
)
from hudi_engine.spark.catalog.spark_table import refresh_table
from hudi_engine.table.snapshot.manifest import publish
from hudi_engine.table.snapshot.manifest_file import Layout

from tests.helpers.handmade import HandmadeTable

pytestmark = pytest.mark.core

SCHEMA = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.string())])


def rows(*ids, dt="x", v="a"):
    return pa.table({"id": list(ids), "dt": [dt] * len(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def read(spark, query):
    return sorted(tuple(row) for row in spark.sql(query).collect())


def plan(spark, query):
    return spark.sql(query)._jdf.queryExecution().executedPlan().toString()


@pytest.fixture
def name(database):
    return TableName(database, "t")


@pytest.fixture
def table(tmp_path):
    return HandmadeTable(tmp_path / "a b%20é" / "t", SCHEMA, ("dt",))


def test_a_plain_read_of_the_folder_counts_rows_twice_and_the_table_does_not(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1, 2, 3)}})
    register_table(spark, name, table.storage)
    table.commit({"dt=x": {"f-0": rows(1, 2, 3, v="b")}})
    publish(table.storage)
    refresh_table(spark, name)
    assert spark.read.parquet(f"{table.path}/dt=x").count() == 6
    assert read(spark, f"select id, v from {name.sql}") == [(1, "b"), (2, "b"), (3, "b")]
    assert spark.sql(f"select v from {name.sql} limit 2").collect() == [("b",), ("b",)]


def test_a_table_is_read_natively_with_partitions_pruned_and_filters_pushed(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1, 2)}, "dt=y": {"g-0": rows(3, dt="y")}})
    register_table(spark, name, table.storage)
    query = f"select id, dt from {name.sql} where dt = 'y' and id > 1"
    assert read(spark, query) == [(3, "y")]
    text = plan(spark, query)
    assert "FileScan parquet" in text and "Batched: true" in text
    assert re.search(r"PartitionFilters: \[[^\]]*dt#\d+ = y", text)
    assert "GreaterThan(id,1)" in text
    assert len(spark.sql(query).inputFiles()) == 2
    assert spark.sql(query)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() > 0


@pytest.mark.parametrize(
    "write",
    [
        lambda spark, name: spark.sql(f"insert into {name.sql} values (9, 'x', 'lost')"),
        lambda spark, name: spark.sql(f"insert into {name.sql} partition (dt='y') values (9, 'lost')"),
        lambda spark, name: spark.sql(f"insert overwrite {name.sql} values (9, 'x', 'lost')"),
        lambda spark, name: spark.table(name.sql).write.insertInto(name.sql),
        lambda spark, name: spark.table(name.sql).write.mode("append").saveAsTable(name.sql),
    ],
)
def test_plain_spark_is_refused_to_write_into_a_table_by_name(spark, name, table, tmp_path, write):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(
        Exception, match="(?i)this is an apache hudi table.*write with hudi_engine.HudiTable or"
    ):
        write(spark, name)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == files
    assert read(spark, f"select id from {name.sql}") == [(1,)]


def test_folder_values_that_look_like_something_else_stay_what_they_are(spark, name, table):
    folders = {"dt=a b": "a b", "dt=01": "01", "dt=50%25": "50%", "dt=x%3D1": "x=1", "dt=ü": "ü"}
    folders["dt=__HIVE_DEFAULT_PARTITION__"] = None
    for number, (folder, value) in enumerate(folders.items()):
        table.commit({folder: {f"f{number}-0": rows(number, dt=value)}})
    assert register_table(spark, name, table.storage).layout is Layout.HIVE
    found = {row.id: row.dt for row in spark.sql(f"select id, dt from {name.sql}").collect()}
    assert found == dict(enumerate(folders.values()))
    assert read(spark, f"select id from {name.sql} where dt = '01'") == [(1,)]
    assert read(spark, f"select id from {name.sql} where dt is null") == [(5,)]


def test_typed_partition_columns_keep_their_types(spark, name, tmp_path):
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32()), ("n", pa.int32()), ("b", pa.bool_())])
    table = HandmadeTable(tmp_path / "t", schema, ("d", "n", "b"))
    day = datetime.date(2026, 1, 31)
    data = pa.table({"id": [1], "d": [day], "n": [7], "b": [True]}, schema=schema)
    nulls = pa.table({"id": [2], "d": [None], "n": [None], "b": [False]}, schema=schema)
    empty = "d=__HIVE_DEFAULT_PARTITION__/n=__HIVE_DEFAULT_PARTITION__/b=false"
    table.commit({"d=2026-01-31/n=7/b=true": {"f-0": data}, empty: {"g-0": nulls}})
    assert register_table(spark, name, table.storage).layout is Layout.HIVE
    assert spark.table(name.sql).dtypes == [("id", "bigint"), ("d", "date"), ("n", "int"), ("b", "boolean")]
    query = f"select * from {name.sql}"
    assert {row.id: tuple(row)[1:] for row in spark.sql(query).collect()} == {
        1: (day, 7, True),
        2: (None, None, False),
    }
    assert [row.id for row in spark.sql(f"{query} where n = 7 and d = date'2026-01-31'").collect()] == [1]


def test_an_empty_string_partition_is_no_null(spark, name, table):
    table.commit({"dt=__HIVE_DEFAULT_PARTITION__": {"f-0": rows(1, dt=None)}})
    assert register_table(spark, name, table.storage).layout is Layout.HIVE
    table.commit({"dt=__HIVE_DEFAULT_PARTITION__": {"g-0": rows(2, dt="")}})
    assert register_table(spark, name, table.storage).layout is Layout.FLAT
    assert read(spark, f"select id from {name.sql} where dt is null") == [(1,)]
    assert read(spark, f"select id from {name.sql} where dt = ''") == [(2,)]


@pytest.mark.parametrize(
    ("folder", "value", "changes"),
    [
        ("dt=50%25", "50%25", {"hoodie.datasource.write.partitionpath.urlencode": "false"}),
        ("dt=a b/c", "a b/c", {"hoodie.datasource.write.partitionpath.urlencode": "false"}),
        ("plain", "plain", {"hoodie.datasource.write.hive_style_partitioning": "false"}),
    ],
    ids=["escaped looking", "slash", "not hive style"],
)
def test_folders_that_do_not_say_the_value_are_not_believed(spark, name, tmp_path, folder, value, changes):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), properties=changes)
    table.commit({folder: {"f-0": rows(1, dt=value)}})
    register_table(spark, name, table.storage)
    assert read(spark, f"select * from {name.sql} where dt = '{value}'") == [(1, value, "a")]


def test_a_table_without_partitions(spark, name, tmp_path):
    table = HandmadeTable(tmp_path / "t", SCHEMA)
    table.commit({"": {"f-0": rows(1, 2)}})
    register_table(spark, name, table.storage)
    table.commit({"": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    assert read(spark, f"select * from {name.sql}") == [(1, "x", "a")]


def test_a_table_without_a_commit_reads_as_empty_and_goes_on(spark, name, table):
    register_table(spark, name, table.storage)
    assert read(spark, f"select * from {name.sql}") == []
    table.commit({"dt=01": {"f-0": rows(1, dt="01")}})
    register_table(spark, name, table.storage)
    assert read(spark, f"select * from {name.sql}") == [(1, "01", "a")]


def test_a_table_without_a_schema_cannot_be_registered_yet(spark, name, tmp_path):
    table = HandmadeTable(tmp_path / "t", SCHEMA, properties={"hoodie.table.create.schema": ""})
    with pytest.raises(ConfigError, match="no schema yet"):
        register_table(spark, name, table.storage)


def test_meta_columns_are_not_in_a_star(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    assert spark.table(name.sql).columns == ["id", "dt", "v"]


def test_a_session_that_was_not_told_sees_the_commit_before_until_it_refreshes(spark, name, table):
    sibling = spark.newSession()
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    query = f"select v from {name.sql}"
    assert read(sibling, query) == [("a",)]
    table.commit({"dt=x": {"f-0": rows(1, v="b")}})
    register_table(spark, name, table.storage)
    assert read(sibling, query) == [("a",)]
    refresh_table(sibling, name)
    assert read(sibling, query) == [("b",)]


def test_a_view_follows_its_table(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    spark.sql(f"create view {name.with_suffix('_view').sql} as select upper(v) as u from {name.sql}")
    table.commit({"dt=x": {"f-0": rows(1, v="b")}})
    register_table(spark, name, table.storage)
    assert read(spark, f"select * from {name.with_suffix('_view').sql}") == [("B",)]


def test_a_commit_costs_one_refresh_and_no_statement(spark, name, table, monkeypatch):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    table.commit({"dt=x": {"f-0": rows(1, v="b")}})
    statements, refreshes = [], []
    monkeypatch.setattr(type(spark), "sql", lambda self, text, *args, **more: statements.append(text))
    refresh = type(spark.catalog).refreshTable
    monkeypatch.setattr(
        type(spark.catalog), "refreshTable", lambda self, text: (refreshes.append(text), refresh(self, text))
    )
    register_table(spark, name, table.storage)
    assert (statements, refreshes) == ([], [name.sql])


def evolved(table, schema):
    table.schema = schema
    return table


def test_columns_may_be_added_dropped_changed_and_moved(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage, column_comments={"v": "value", "id": "key"})
    wider = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("n", pa.int32()), ("v", pa.string())])
    evolved(table, wider).commit(
        {"dt=x": {"g-0": pa.table({"id": [2], "dt": ["x"], "n": [5], "v": ["b"]}, schema=wider)}}
    )
    register_table(spark, name, table.storage)
    assert read(spark, f"select id, dt, coalesce(n, 0), v from {name.sql}") == [
        (1, "x", 0, "a"),
        (2, "x", 5, "b"),
    ]
    other = pa.schema([("id", pa.int64()), ("n", pa.string()), ("dt", pa.string())])
    data = pa.table({"id": [3], "n": ["six"], "dt": ["x"]}, schema=other)
    evolved(table, other).commit({"dt=x": {"h-0": data}}, replaced={"dt=x": ["f-0", "g-0"]})
    register_table(spark, name, table.storage)
    assert read(spark, f"select * from {name.sql}") == [(3, "six", "x")]
    comments = {row.col_name: row.comment for row in spark.sql(f"describe {name.sql}").collect()}
    assert comments["id"] == "key"


def test_comments_and_properties_say_exactly_what_was_given(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    odd = 'it\'s `${env:HOME}` \\ "q"; drop table x -- ü\nline 2'
    properties = {"owner's": "a'b\\c"}
    register_table(spark, name, table.storage, comment=odd, column_comments={"V": odd}, properties=properties)
    entry = find_entry(spark, name)
    assert entry.comment == odd
    assert entry.properties["owner's"] == "a'b\\c"
    assert entry.properties["hoodie.base.path"] == table.storage.uri() == registered_base(spark, name)
    assert [f.metadata.get("comment") for f in spark.table(name.sql).schema] == [None, None, odd]
    register_table(spark, name, table.storage)
    assert find_entry(spark, name).comment == odd
    register_table(spark, name, table.storage, comment="", column_comments={})
    assert find_entry(spark, name).comment in (None, "")
    assert [f.metadata.get("comment") for f in spark.table(name.sql).schema] == [None, None, None]


@pytest.mark.parametrize(
    "told",
    [
        {"note": "1\x1fhoodie.base.path -> file:/another\x1fz -> 1"},
        {"hoodie.base.path -> file:/another": "1"},
        {"note -> 1": "2 -> 3", "a\x1fb": "\x1f"},
    ],
)
def test_no_text_of_a_property_is_taken_for_another_property(spark, name, table, told):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage, properties=told)
    entry = find_entry(spark, name)
    assert entry.base == table.storage.uri() == registered_base(spark, name)
    assert {key: entry.properties[key] for key in told} == told


def test_nested_columns_keep_their_types(spark, name, tmp_path):
    schema = pa.schema(
        [("id", pa.int64()), ("s", pa.struct([("a_b", pa.list_(pa.map_(pa.string(), pa.int32())))]))]
    )
    table = HandmadeTable(tmp_path / "t", schema)
    table.commit({"": {"f-0": pa.table({"id": [1], "s": [{"a_b": [[("k", 2)]]}]}, schema=schema)}})
    register_table(spark, name, table.storage)
    assert spark.table(name.sql).dtypes[1] == ("s", "struct<a_b:array<map<string,int>>>")
    assert spark.sql(f"select s.a_b[0]['k'] from {name.sql}").collect()[0][0] == 2


def test_another_tables_name_is_not_taken_over(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    spark.sql(f"create view {name.sql} as select 1 as one")
    with pytest.raises(TableExistsError, match="another view"):
        register_table(spark, name, table.storage)
    with pytest.raises(TableExistsError, match="not a Hudi table"):
        drop_table(spark, name)
    assert read(spark, f"select * from {name.sql}") == [(1,)]


def test_a_table_at_a_new_place_takes_over_its_own_name(spark, name, table, tmp_path):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    other = HandmadeTable(tmp_path / "other", SCHEMA, ("dt",))
    other.commit({"dt=x": {"f-0": rows(2)}})
    register_table(spark, name, other.storage)
    assert read(spark, f"select id from {name.sql}") == [(2,)]


def test_dropping_an_entry_leaves_the_files(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    assert [(each.name.name, each.kind, each.base) for each in list_entries(spark, name.database)] == [
        ("t", "table", table.storage.uri())
    ]
    drop_table(spark, name)
    drop_table(spark, name)
    assert list_entries(spark, name.database) == []
    register_table(spark, name, table.storage)
    assert read(spark, f"select id from {name.sql}") == [(1,)]


def estimated_bytes(spark, name):
    return int(spark.table(name.sql)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def test_a_size_of_zero_that_spark_measured_is_put_right(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    published_size = register_table(spark, name, table.storage).size_bytes
    assert estimated_bytes(spark, name) == published_size
    spark.sql(f"analyze table {name.sql} compute statistics")
    register_table(spark, name, table.storage)
    assert estimated_bytes(spark, name) == published_size


@pytest.mark.parametrize(
    "statement", ["insert into {} values (9, 'x', 'stray')", "insert overwrite {} values (9, 'x', 'stray')"]
)
def test_what_plain_spark_wrote_round_the_engine_is_healed(spark, name, table, statement, monkeypatch):
    table.commit({"dt=x": {"f-0": rows(1)}})
    with monkeypatch.context() as before_writes_were_refused:
        before_writes_were_refused.setattr("hudi_engine.spark.catalog.spark_table.REFUSED_TO_SPARK", {})
        register_table(spark, name, table.storage)
    spark.sql(statement.format(name.sql))
    register_table(spark, name, table.storage)
    assert read(spark, f"select * from {name.sql}") == [(1, "x", "a")]


def test_a_name_that_shows_a_list_which_its_table_has_left_fails_and_says_so(spark, name, table):
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    table.commit({"odd": {"h-0": rows(2, dt="odd")}})
    published = publish(table.storage)
    for read_again in ("refresh table {}", "select id from {}"):
        with pytest.raises(Exception, match=r"are listed in \.hoodie/spark_catalog/flat now, make its name"):
            read(spark, read_again.format(name.sql))
    register_table(spark, name, table.storage, published=published)
    assert read(spark, f"select id, dt from {name.sql}") == [(1, "x"), (2, "odd")]


@pytest.mark.parametrize(
    ("merge_on_read", "suffixes"), [(False, ("",)), (True, ("_ro", "__hudi_files"))], ids=["cow", "mor"]
)
def test_streams_from_a_name_and_into_it_are_refused(spark, name, tmp_path, merge_on_read, suffixes):
    """One into it would take the manifest for its own log of batches, one from it would tell rewritten rows again."""
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), merge_on_read=merge_on_read)
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_table(spark, name, table.storage)
    before = sorted((table.path / ".hoodie").rglob("*"))
    for entry in (name.with_suffix(suffix).sql for suffix in suffixes):
        stream = spark.readStream.format("rate").load().selectExpr("value id", "'x' dt", "'stray' v")
        with pytest.raises(Exception, match=r"input source\(parquet\) is different from the table"):
            stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).toTable(entry)
        found = spark.readStream.table(entry).writeStream.format("noop").trigger(availableNow=True)
        with pytest.raises(Exception, match="not allowed in file stream sources"):
            found.option("checkpointLocation", str(tmp_path / "d")).start().awaitTermination(60)
    assert sorted((table.path / ".hoodie").rglob("*")) == before


def test_dates_before_1900_are_read_as_they_are(spark, name, tmp_path):
    moment = datetime.datetime(1500, 3, 1, tzinfo=datetime.timezone.utc)
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC"))])
    table = HandmadeTable(tmp_path / "t", schema)
    table.commit({"": {"f-0": pa.table({"id": [1], "d": [moment.date()], "t": [moment]}, schema=schema)}})
    register_table(spark, name, table.storage)
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")
    try:
        query = f"select cast(d as string), cast(t as string) from {name.sql}"
        assert read(spark, query) == [("1500-03-01", "1500-03-01 00:00:00")]
    finally:
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")


def test_in_a_session_with_another_catalog_statements_give_the_same_entry(spark, name, table):
    """Delta's and Iceberg's session catalogs do not let Spark analyse a CREATE TABLE to its own command."""
    table.commit({"dt=01": {"f-0": rows(1, dt="01")}})
    register_table(spark, name, table.storage)
    columns = [Column("id", "bigint"), Column("dt", "string", "it's"), Column("v", "string")]
    location = table.storage.uri(Layout.HIVE.folder)
    spec = TableSpec(name.with_suffix("_2"), columns, location, {"basePath": table.storage.uri()})
    _create_by_statements(spark, spec)
    assert read(spark, f"select * from {spec.name.sql}") == [(1, "01", "a")]
    assert put_table(spark, spec, find_entry(spark, spec.name)) is False
