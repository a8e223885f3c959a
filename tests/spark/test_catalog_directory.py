"""The directory catalog: a warehouse folder fills a session, and another one after it."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.catalog import (
    DirectoryCatalog,
    TableName,
    list_entries,
    register_foreign,
    register_table,
)
from hudi_engine.spark.catalog.entry import EntryNotes
from hudi_engine.spark.catalog.kept import made_under, settings_of
from hudi_engine.spark.catalog.spark_entry import copied_view

from tests.helpers.handmade import HandmadeTable

pytestmark = pytest.mark.sampled

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def rows(*ids, v="a"):
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def read(spark, query):
    return sorted(tuple(row) for row in spark.sql(query).collect())


@pytest.fixture
def warehouse(tmp_path, spark):
    """A catalog whose schema ``dirs`` is forgotten by Spark before and after."""
    catalog = DirectoryCatalog(str(tmp_path / "a warehouse"))
    catalog.create_schema("dirs")
    yield catalog
    forget(spark)


def forget(spark):
    """What a new process knows of the schema: nothing."""
    for entry in list_entries(spark, "dirs"):
        spark.sql(f"drop {'view' if entry.is_view else 'table'} if exists {entry.name.sql}")
    spark.sql("drop database if exists dirs cascade")


def make(catalog, name, **more):
    table = HandmadeTable(schema_folder(catalog) / name, SCHEMA, **more)
    table.commit({"": {"f-0": rows(1)}})
    return table


def schema_folder(catalog):
    return Path(catalog.root) / "dirs"


def test_a_session_is_filled_with_every_table_and_those_behind_their_timeline_are_published(spark, warehouse):
    one, _ = make(warehouse, "one"), make(warehouse, "two", merge_on_read=True)
    report = warehouse.load(spark)
    assert [each.label for each in report.tables] == ["dirs.one", "dirs.two"]
    assert read(spark, "select * from dirs.one") == read(spark, "select * from dirs.two") == [(1, "a")]
    one.commit({"": {"f-0": rows(1, v="b")}})
    forget(spark)
    warehouse.load(spark)
    assert read(spark, "select * from dirs.one") == [(1, "b")]


def test_loading_again_in_a_live_session_shows_what_others_committed(spark, warehouse):
    table = make(warehouse, "one")
    warehouse.load(spark)
    assert read(spark, "select v from dirs.one") == [("a",)]
    table.commit({"": {"f-0": rows(1, v="b")}})
    warehouse.load(spark)
    assert read(spark, "select v from dirs.one") == [("b",)]


def test_loading_again_forgets_tables_that_another_process_dropped(spark, warehouse):
    for name, merge_on_read in (("one", False), ("two", True), ("stays", True)):
        make(warehouse, name, merge_on_read=merge_on_read)
    warehouse.load(spark)
    for name in ("one", "two"):
        shutil.rmtree(schema_folder(warehouse) / name)
    warehouse.load(spark)
    left = {entry.name.name for entry in list_entries(spark, "dirs") if not entry.is_internal}
    assert left == {"stays", "stays_ro", "stays_rt"}


def test_loading_again_shows_a_column_that_a_merge_on_read_table_got(spark, warehouse):
    table = make(warehouse, "one", merge_on_read=True)
    warehouse.load(spark)
    assert read(spark, "select * from dirs.one") == [(1, "a")]
    table.schema = SCHEMA.append(pa.field("n", pa.int32()))
    wider = pa.table({"id": [1], "v": ["b"], "n": [7]}, schema=table.schema)
    table.commit({"": {"f-0": wider}})
    assert warehouse.load(spark).warnings == ()
    assert read(spark, "select * from dirs.one") == read(spark, "select * from dirs.one_ro") == [(1, "b", 7)]


def test_comments_come_back(spark, warehouse):
    table = make(warehouse, "one")
    warehouse.load(spark)
    register_table(
        spark, TableName("dirs", "one"), table.storage, comment="it's", column_comments={"v": "value"}
    )
    forget(spark)
    warehouse.load(spark)
    assert [each.comment for each in list_entries(spark, "dirs")] == ["it's"]
    assert spark.table("dirs.one").schema["v"].metadata["comment"] == "value"


def test_a_table_placed_elsewhere_is_found_through_its_pointer(spark, warehouse, tmp_path):
    HandmadeTable(tmp_path / "elsewhere", SCHEMA).commit({"": {"f-0": rows(5)}})
    warehouse.save_pointer("dirs", "away", str(tmp_path / "elsewhere"))
    warehouse.save_pointer("dirs", "lost", str(tmp_path / "nowhere"))
    report = warehouse.load(spark)
    assert read(spark, "select id from dirs.away") == [(5,)]
    assert len(report.warnings) == 1 and "dirs.lost" in report.warnings[0]


def test_views_come_back_in_the_order_they_need(spark, warehouse):
    make(warehouse, "one")
    warehouse.load(spark)
    spark.sql(
        "create view dirs.z_base (n comment 'it\\'s') comment 'b' tblproperties ('k'='v')"
        " as select id from dirs.one"
    )
    spark.sql("create view dirs.m_middle as with x as (select n from dirs.z_base) select n + 1 as n from x")
    spark.sql(
        "create view dirs.a_top as select * from dirs.m_middle where n in (select n + 1 from dirs.z_base)"
    )
    for view in ("a_top", "m_middle", "z_base"):
        warehouse.save_view(spark, "dirs", view)
    forget(spark)
    report = warehouse.load(spark)
    assert [each.name for each in report.views] == ["z_base", "m_middle", "a_top"]
    assert report.warnings == ()
    assert read(spark, "select * from dirs.a_top") == [(2,)]
    assert spark.table("dirs.z_base").schema["n"].metadata["comment"] == "it's"
    assert {"k": "v"}.items() <= {
        row.key: row.value for row in spark.sql("show tblproperties dirs.z_base").collect()
    }.items()


def test_a_view_finds_unqualified_names_where_it_was_made(spark, warehouse):
    make(warehouse, "one")
    warehouse.load(spark)
    spark.catalog.setCurrentDatabase("dirs")
    spark.sql("create view dirs.v as select id from one")
    spark.catalog.setCurrentDatabase("default")
    warehouse.save_view(spark, "dirs", "v")
    forget(spark)
    warehouse.load(spark)
    assert spark.catalog.currentDatabase() == "default"
    assert read(spark, "select * from dirs.v") == [(1,)]


def test_a_view_goes_by_the_settings_that_it_was_made_under(spark, warehouse):
    zone, moment = "spark.sql.session.timeZone", "timestamp_seconds(0)"
    before = spark.conf.get(zone, None)
    spark.sql("create database dirs")
    for name, value in {"east": "Asia/Tokyo", "west": "America/New_York"}.items():
        spark.conf.set(zone, value)
        spark.sql(f"create view dirs.{name} as select cast(hour({moment}) as int) as h")
        warehouse.save_view(spark, "dirs", name)
    spark.conf.set(zone, before or "UTC")
    for _ in range(2):
        forget(spark)
        assert warehouse.load(spark).warnings == ()
        assert read(spark, "select e.h, w.h from dirs.east e, dirs.west w") == [(9, 19)]
    assert spark.conf.get(zone) == (before or "UTC")
    # another process builds it again under other settings
    kept = schema_folder(warehouse) / "east.view.json"
    kept.write_text(kept.read_text().replace("Asia/Tokyo", "Asia/Kolkata"))
    warehouse.load(spark)
    assert read(spark, "select h from dirs.east") == [(5,)]


def test_a_view_goes_by_no_setting_that_it_was_not_made_under(spark, warehouse):
    setting = "spark.sql.decimalOperations.allowPrecisionLoss"
    spark.sql("create database dirs")
    spark.sql("create view dirs.v as select 1 as one")
    warehouse.save_view(spark, "dirs", "v")
    made = settings_of(list_entries(spark, "dirs")[0].properties)
    forget(spark)
    spark.conf.set(setting, "false")
    try:
        assert warehouse.load(spark).warnings == ()
        assert spark.conf.get(setting) == "false"
        assert settings_of(list_entries(spark, "dirs")[0].properties) == made
    finally:
        spark.conf.unset(setting)


def test_a_view_file_sets_nothing_but_settings_of_queries(spark, warehouse):
    said = {
        "spark.sql.variable.substitute": "true",
        "spark.sql.catalog.spark_catalog": "org.example.Catalog",
        "spark.sql.warehouse.dir": "/elsewhere",
        "spark.hadoop.fs.defaultFS": "s3a://elsewhere",
        "spark.sql.no.such.setting": "1",
        "spark.sql.caseSensitive": "true",
    }
    before = {key: spark.conf.get(key, None) for key in said}
    with made_under(spark, said):
        assert spark.conf.get("spark.sql.caseSensitive") == "true"
        changed = {key for key in said if spark.conf.get(key, None) != before[key]}
    assert changed == {"spark.sql.caseSensitive"}
    assert {key: spark.conf.get(key, None) for key in said} == before


def test_a_broken_view_is_left_out_with_a_warning_and_the_others_come_back(spark, warehouse):
    make(warehouse, "one")
    warehouse.load(spark)
    spark.sql("create table dirs.gone (id int) using parquet")
    for view, query in {"good": "select * from dirs.one", "bad": "select * from dirs.gone"}.items():
        spark.sql(f"create view dirs.{view} as {query}")
        warehouse.save_view(spark, "dirs", view)
    spark.sql("create view dirs.worse as select * from dirs.bad")
    warehouse.save_view(spark, "dirs", "worse")
    (schema_folder(warehouse) / "torn.view.json").write_text("{")
    forget(spark)
    report = warehouse.load(spark)
    assert [each.name for each in report.views] == ["good"]
    assert len(report.warnings) == 3
    for name in ("dirs.bad", "dirs.worse", "dirs.torn"):
        assert any(name in each for each in report.warnings)


@pytest.mark.parametrize("now", ["name, id", "id, more, name", "id, name, more", "name, more, id"])
def test_a_view_of_all_columns_keeps_its_own_whatever_its_source_has_by_now(spark, warehouse, now):
    def land(columns):
        spark.sql("drop table if exists dirs.landed")
        told = {"id": "1 as id", "name": "'a' as name", "more": "'m' as more"}
        spark.sql(
            f"create table dirs.landed using parquet as select {', '.join(told[each] for each in columns.split(', '))}"
        )

    spark.sql("create database dirs")
    land("id, name")
    spark.sql("create view dirs.v (number comment 'n', text) as select * from dirs.landed -- all of it")
    spark.sql("create view dirs.w as select * from dirs.v")
    for view in ("v", "w"):
        warehouse.save_view(spark, "dirs", view)
    for view in ("v", "w"):
        spark.sql(f"drop view dirs.{view}")
    land(now)
    for _ in range(2):
        report = warehouse.load(spark)
        assert (len(report.views), report.warnings) == (2, ())
    for view in ("v", "w"):
        assert spark.table(f"dirs.{view}").columns == ["number", "text"]
        assert read(spark, f"select number, text from dirs.{view}") == [(1, "a")]


def test_a_view_is_left_out_when_a_column_that_it_shows_is_gone_though_another_stands_there(spark, warehouse):
    spark.sql("create database dirs")
    spark.sql("create table dirs.landed using parquet as select 1 as id, 'a' as name")
    spark.sql("create view dirs.v as select * from dirs.landed")
    warehouse.save_view(spark, "dirs", "v")
    forget(spark)
    spark.sql("create database dirs")
    spark.sql("create table dirs.landed using parquet as select 1 as id, 'a' as label")
    report = warehouse.load(spark)
    assert report.views == ()
    assert "name" in report.warnings[0]
    assert not spark.catalog.tableExists("dirs.v")


def test_a_view_over_a_table_of_another_writer_comes_back_with_it(spark, warehouse, tmp_path):
    outside = HandmadeTable(tmp_path / "lake", SCHEMA, merge_on_read=True)
    outside.commit({"": {"f-0": rows(1)}})
    warehouse.save_source("dirs", "Events", str(outside.path))
    warehouse.load(spark)
    register_foreign(spark, TableName("dirs", "events"), str(outside.path), str(tmp_path / "cache"))
    spark.sql("create view dirs.v as select id from dirs.events_ro")
    warehouse.save_view(spark, "dirs", "v")
    forget(spark)
    report = warehouse.load(spark)
    assert report.warnings == ()
    assert read(spark, "select * from dirs.v") == [(1,)]
    assert [each.name.name for each in list_entries(spark, "dirs") if each.foreign]
    forget(spark)
    outside.path.rename(tmp_path / "gone")
    (warning, _) = warehouse.load(spark).warnings
    assert "the source dirs.events was not registered" in warning
    assert "dirs/events.source.json" in warning


def test_a_view_that_was_removed_stays_away(spark, warehouse):
    make(warehouse, "one")
    warehouse.load(spark)
    spark.sql("create view dirs.v as select 1 as one")
    warehouse.save_view(spark, "dirs", "V")
    warehouse.remove_view("dirs", "v")
    warehouse.remove_view("dirs", "v")
    forget(spark)
    assert warehouse.load(spark).views == ()


def test_a_damaged_table_is_left_out_with_a_warning_and_the_others_are_there(spark, warehouse):
    make(warehouse, "one")
    damaged = make(warehouse, "two")
    damaged.storage.replace(".hoodie/hoodie.properties", b"hoodie.table.name=x\n")
    make(warehouse, "not-a-name")
    (schema_folder(warehouse) / "empty").mkdir()
    report = warehouse.load(spark)
    assert [each.name for each in report.tables] == ["one"]
    assert sorted(each.split(" ")[0] for each in report.warnings) == ["dirs.not-a-name", "dirs.two"]


def test_what_cannot_be_read_is_left_out_and_what_is_shown_of_it_stays(spark, warehouse, monkeypatch):
    for name in ("one", "two"):
        make(warehouse, name)
    warehouse.load(spark)
    spark.sql("create view dirs.v as select 1 as one")
    warehouse.save_view(spark, "dirs", "v")
    warehouse.create_schema("closed")
    looks = {method: getattr(LocalStorage, method) for method in ("list", "stat", "read")}

    def refused(method):
        def look(self, path, *more, **named):
            where = f"{self.base}/{path}"
            if any(each in where for each in ("/closed", "/dirs/two/", ".view.json")):
                raise PermissionError(errno.EACCES, "Permission denied", where)
            return looks[method](self, path, *more, **named)

        return look

    with monkeypatch.context() as patched:
        for method in looks:
            patched.setattr(LocalStorage, method, refused(method))
        report = warehouse.load(spark)
    spark.sql("drop database closed cascade")
    assert [each.label for each in report.tables] == ["dirs.one"]
    assert sorted(each.split(":")[0] for each in report.warnings) == [
        "dirs.two was not registered",
        "dirs.v was not restored",
        "the tables and views of closed are left out",
    ]
    assert read(spark, "select * from dirs.two") == [(1, "a")]


def test_a_rebuild_that_was_cut_off_is_recovered_first(spark, warehouse):
    make(warehouse, ".one.rebuild-0123456789ab")

    def recover(base):
        (schema_folder(warehouse) / ".one.rebuild-0123456789ab").rename(base)

    assert DirectoryCatalog(warehouse.root).load(spark).tables == ()
    report = DirectoryCatalog(warehouse.root, recover).load(spark)
    assert [each.label for each in report.tables] == ["dirs.one"]


def test_a_definition_is_a_small_readable_file(spark, warehouse):
    make(warehouse, "one")
    warehouse.load(spark)
    spark.sql("create view dirs.v as select id as n from dirs.one")
    warehouse.save_view(spark, "dirs", "v")
    raw = json.loads((schema_folder(warehouse) / "v.view.json").read_text())
    assert raw["query"] == "select id as n from dirs.one"
    assert raw["columns"] == [{"name": "n", "comment": ""}]


def test_a_definition_of_a_view_that_says_it_is_a_table_is_left_out(spark, warehouse, tmp_path):
    warehouse.load(spark)
    spark.sql("create view dirs.v as select 1 as one")
    warehouse.save_view(spark, "dirs", "v")
    forget(spark)
    file = schema_folder(warehouse) / "v.view.json"
    raw = json.loads(file.read_text())
    marks = {"hoodie.base.path": f"file:{tmp_path}/another", "hoodie.catalog.role": "snapshot"}
    file.write_text(json.dumps({**raw, "properties": marks}))
    (warning,) = warehouse.load(spark).warnings
    assert "dirs.v was not restored" in warning and "are those of a table" in warning
    assert list_entries(spark, "dirs") == []


def test_dropping_a_database_in_spark_leaves_the_tables_of_the_warehouse(spark, warehouse):
    warehouse.load(spark)
    table = make(warehouse, "made_by_another_process")
    spark.sql("drop database dirs cascade")
    assert [each.label for each in warehouse.load(spark).tables] == ["dirs.made_by_another_process"]
    assert table.storage.exists(".hoodie/hoodie.properties")


def test_a_warehouse_that_must_not_be_written_to_is_read_and_left_as_it_is(spark, warehouse, monkeypatch):
    make(warehouse, "one")
    make(warehouse, "two", merge_on_read=True)
    before = sorted(Path(warehouse.root).rglob("*"))
    allowed = LocalStorage._mutable

    def refused(self, path):
        if self.base.startswith(warehouse.root):
            raise OSError(errno.EROFS, "Read-only file system", f"{self.base}/{path}")
        return allowed(self, path)

    monkeypatch.setattr(LocalStorage, "_mutable", refused)
    monkeypatch.setattr(
        "hudi_engine.spark.catalog.directory.is_read_only", lambda root: root == warehouse.root
    )
    report = DirectoryCatalog(warehouse.root).load(spark)
    assert report.warnings == ()
    for name in ("one", "two", "two_rt", "two_ro"):
        assert read(spark, f"select * from dirs.{name}") == [(1, "a")]
    assert sorted(Path(warehouse.root).rglob("*")) == before


def test_the_views_of_a_second_table_are_copies_that_equal_what_a_statement_makes(
    spark, warehouse, monkeypatch
):
    make(warehouse, "one", merge_on_read=True)
    two = make(warehouse, "two", merge_on_read=True)
    two.schema = SCHEMA.append(pa.field("n", pa.int32()))
    two.commit({"": {"f-0": rows(2, v="b").append_column(two.schema[2], pa.array([7], pa.int32()))}})
    EntryNotes("of 'us'", {"v": "the ${v}"}, {"mine": "a, b"}).save(two.storage)

    def told():
        forget(spark)
        assert warehouse.load(spark).warnings == ()
        found = [spark.sql(f"describe extended dirs.{name}").collect() for name in ("two", "two_rt")]
        return [row for rows in found for row in rows if row[0] != "Created Time"]

    made = []
    monkeypatch.setattr(
        "hudi_engine.spark.catalog.spark_entry.copied_view",
        lambda *given: made.append(copied_view(*given)) or made[-1],
    )
    copies = told()
    assert read(spark, "select * from dirs.two") == read(spark, "select * from dirs.two_rt") == [(2, "b", 7)]
    assert sum(each is not None for each in made) >= (0 if spark.version.startswith("3.") else 3)
    monkeypatch.setattr("hudi_engine.spark.catalog.spark_entry.copied_view", lambda *given: None)
    assert told() == copies


@pytest.mark.parametrize("mode", ["BINDING", "TYPE EVOLUTION", "EVOLUTION"])
def test_a_view_follows_the_columns_of_its_query_as_it_was_told_to(spark, warehouse, mode):
    if spark.version.startswith("3."):
        pytest.skip("this Spark knows one way only")
    make(warehouse, "one")
    warehouse.load(spark)
    spark.sql("create view dirs.landed as select 1 as a")
    spark.sql(f"create view dirs.v with schema {mode} as select * from dirs.landed")
    for view in ("landed", "v"):
        warehouse.save_view(spark, "dirs", view)
    forget(spark)
    assert warehouse.load(spark).warnings == ()
    told = spark.sql("describe extended dirs.v").where("col_name = 'View Schema Mode'").collect()
    assert [row["data_type"] for row in told] == [mode]
    spark.sql("create or replace view dirs.landed as select 1 as a, 2 as b")
    assert spark.table("dirs.v").columns == (["a", "b"] if mode == "EVOLUTION" else ["a"])
