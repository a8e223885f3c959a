"""Loads of a directory catalog past what Java fails for, and into a session that an earlier load has filled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.spark.catalog import DirectoryCatalog, directory, function_names, kept, list_entries
from hudi_engine.spark.catalog.directory import forget_other_warehouses
from hudi_engine.spark.catalog.spark_entry import drop_entry
from pyspark import __version__

from tests.helpers.handmade import HandmadeTable

pytestmark = pytest.mark.sampled

SCHEMA = pa.schema([("id", pa.int64())])
sql_functions = pytest.mark.skipif(__version__.startswith("3."), reason="SQL functions came with Spark 4")


@pytest.fixture
def warehouse(tmp_path, spark):
    """A catalog with the schema ``loads``, which Spark forgets afterwards."""
    catalog = DirectoryCatalog(str(tmp_path / "warehouse"))
    catalog.create_schema("loads")
    yield catalog
    spark.sql("drop database if exists loads cascade")


def folder(warehouse):
    return Path(warehouse.root) / "loads"


def make(warehouse, name, *ids):
    table = HandmadeTable(folder(warehouse) / name, SCHEMA)
    table.commit({"": {"f-0": pa.table({"id": list(ids)}, schema=SCHEMA)}})


def read(spark, query):
    return [tuple(row) for row in spark.sql(query).collect()]


def keep_view(warehouse, name, query):
    """Keep a view as another process does."""
    raw = {"format": 1, "database": "loads", "query": query, "columns": [], "comment": "", "properties": {}}
    (folder(warehouse) / f"{name}.view.json").write_text(json.dumps(raw))


def keep_function(warehouse, name, body):
    """Keep a function as another process does."""
    statement = f"create function loads.{name}() returns int return {body}"
    raw = {"format": 1, "database": "loads", "statement": statement}
    (folder(warehouse) / f"{name}.function.json").write_text(json.dumps(raw))


def test_a_view_and_a_function_for_which_java_fails_are_left_out_and_the_others_come_back(spark, warehouse):
    too_deep = f"{'(' * 5000}1{')' * 5000}"  # for Java's stack, of which PySpark makes no error of its own
    make(warehouse, "one", 1)
    keep_view(warehouse, "good", "select id from loads.one")
    keep_view(warehouse, "deep", f"select {too_deep} as one")
    keep_function(warehouse, "deeper", too_deep)
    report = warehouse.load(spark)
    assert [each.name for each in report.views] == ["good"]
    view, function = report.warnings
    assert view.startswith("view loads.deep was not restored: java.lang.StackOverflowError")
    assert function.startswith("function loads.deeper was not restored")


def test_a_table_for_which_java_fails_is_left_out_with_a_warning(spark, warehouse, monkeypatch):
    for name in ("one", "two"):
        make(warehouse, name, 1)
    put = directory.put_entries

    def failing(spark, name, *more):
        if name.name == "one":
            spark._jvm.java.nio.file.Files.size(spark._jvm.java.io.File("/nothing-here").toPath())
        return put(spark, name, *more)

    monkeypatch.setattr(directory, "put_entries", failing)
    report = warehouse.load(spark)
    assert [each.name for each in report.tables] == ["two"]
    assert report.warnings == ("loads.one was not registered: /nothing-here",)


def test_loading_again_shows_the_table_that_a_view_of_before_has_become(spark, warehouse):
    make(warehouse, "one", 1)
    keep_view(warehouse, "v", "select id from loads.one")
    keep_view(warehouse, "over", "select id from loads.v")
    warehouse.load(spark)
    (folder(warehouse) / "v.view.json").unlink()
    make(warehouse, "v", 7)
    report = warehouse.load(spark)
    assert report.warnings == ()
    assert [each.name for each in report.tables] == ["one", "v"]
    assert read(spark, "select id from loads.over") == [(7,)]


def test_loading_again_forgets_views_that_others_dropped_and_leaves_those_of_no_file(spark, warehouse):
    keep_view(warehouse, "loaded", "select 1 as one")
    warehouse.load(spark)
    for name in ("made", "of_the_session"):
        spark.sql(f"create view loads.{name} as select 1 as one")
    warehouse.save_view(spark, "loads", "made")
    for name in ("loaded", "made"):
        (folder(warehouse) / f"{name}.view.json").unlink()
    warehouse.load(spark)
    assert [each.name.name for each in list_entries(spark, "loads")] == ["of_the_session"]


def test_loading_again_forgets_a_schema_that_another_process_dropped(spark, warehouse):
    make(warehouse, "one", 1)
    keep_view(warehouse, "v", "select id from loads.one")
    if not __version__.startswith("3."):
        keep_function(warehouse, "f", "1")
    warehouse.create_schema("stays")
    try:
        warehouse.load(spark)
        shutil.rmtree(folder(warehouse))
        warehouse.load(spark, ["stays"])
        assert {each.name.name for each in list_entries(spark, "loads")} == {"one", "v"}
        assert warehouse.load(spark).warnings == ()
        assert not spark.catalog.databaseExists("loads")
        assert spark.catalog.databaseExists("stays")
    finally:
        spark.sql("drop database if exists stays cascade")


def test_a_schema_that_another_process_dropped_stays_with_what_is_of_no_file(spark, warehouse):
    make(warehouse, "one", 1)
    warehouse.load(spark)
    spark.sql("create view loads.of_the_session as select 1 as one")
    shutil.rmtree(folder(warehouse))
    for _ in range(2):
        warehouse.load(spark)
        assert [each.name.name for each in list_entries(spark, "loads")] == ["of_the_session"]
    spark.sql("create database elsewhere")
    warehouse.load(spark)
    assert spark.catalog.databaseExists("elsewhere")
    spark.sql("drop database elsewhere")


def test_a_schema_that_somebody_has_put_in_another_place_keeps_that_with_its_files(
    spark, warehouse, tmp_path
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    spark.sql(f"create database loads location '{elsewhere.as_uri()}'")
    make(warehouse, "one", 1)
    warehouse.load(spark)
    shutil.rmtree(folder(warehouse))
    warehouse.load(spark)
    assert list_entries(spark, "loads") == []
    assert spark.catalog.databaseExists("loads") and (elsewhere / "precious").exists()


def test_a_folder_whose_name_is_no_schema_may_go(spark, warehouse):
    odd = folder(warehouse).parent / "my-folder"
    odd.mkdir(parents=True)
    assert len(warehouse.load(spark).warnings) <= 1
    odd.rmdir()
    assert warehouse.load(spark).warnings == ()


def test_a_view_that_others_have_made_anew_and_that_cannot_be_restored_is_left_out(spark, warehouse):
    keep_view(warehouse, "v", "select 1 as one")
    warehouse.load(spark)
    keep_view(warehouse, "v", "select * from loads.nowhere")
    (warning,) = warehouse.load(spark).warnings
    assert warning.startswith("view loads.v was not restored")
    assert list_entries(spark, "loads") == []


@sql_functions
def test_loading_again_shows_functions_as_others_have_made_them_anew_and_forgets_those_dropped(
    spark, warehouse
):
    for name in ("changed", "dropped", "same"):
        keep_function(warehouse, name, "1")
    for body in ("1", "2", "3"):
        keep_function(warehouse, "changed", body)
        assert warehouse.load(spark).warnings == ()
        assert read(spark, "select loads.changed() + loads.same()") == [(int(body) + 1,)]
    (folder(warehouse) / "dropped.function.json").unlink()
    warehouse.load(spark)
    assert function_names(spark, "loads") == {"changed", "same"}


@sql_functions
def test_a_warehouse_used_later_has_none_of_the_functions_of_the_one_before(spark, warehouse, tmp_path):
    keep_function(warehouse, "first", "1")
    keep_function(warehouse, "both", "1")
    forget_other_warehouses(spark, warehouse)
    warehouse.load(spark)
    later = DirectoryCatalog(str(tmp_path / "later"))
    later.create_schema("loads")
    keep_function(later, "both", "2")
    forget_other_warehouses(spark, later)
    later.load(spark)
    assert function_names(spark, "loads") == {"both"}
    assert read(spark, "select loads.both()") == [(2,)]


@sql_functions
def test_functions_of_a_schema_that_is_dropped_leave_none_of_a_warehouse_behind(spark, warehouse, tmp_path):
    make(warehouse, "one", 1)
    keep_view(warehouse, "v", "select 1 as one")
    warehouse.create_schema("dropped")
    statement = "create function dropped.f() returns int return 1"
    raw = {"format": 1, "database": "dropped", "statement": statement}
    (Path(warehouse.root) / "dropped" / "f.function.json").write_text(json.dumps(raw))
    forget_other_warehouses(spark, warehouse)
    warehouse.load(spark)
    assert function_names(spark, "dropped") == {"f"}
    spark.sql("drop database dropped cascade")
    assert function_names(spark, "dropped") == set()
    forget_other_warehouses(spark, DirectoryCatalog(str(tmp_path / "later")))
    assert list_entries(spark, "loads") == []


def test_a_view_that_spark_refuses_to_drop_leaves_no_table_of_a_warehouse_behind(
    spark, warehouse, tmp_path, monkeypatch, caplog
):
    make(warehouse, "one", 1)
    keep_view(warehouse, "a", "select 1 as one")
    keep_view(warehouse, "b", "select 1 as one")
    forget_other_warehouses(spark, warehouse)
    warehouse.load(spark)

    def refused(spark, entry):
        if entry.name.name == "a":
            spark.sql("drop view loads.nowhere")
        return drop_entry(spark, entry)

    monkeypatch.setattr(kept, "drop_entry", refused)
    forget_other_warehouses(spark, DirectoryCatalog(str(tmp_path / "later")))
    assert "loads.a of" in caplog.text and "may still be shown" in caplog.text
    assert list_entries(spark, "loads") == []
