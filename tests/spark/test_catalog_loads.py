"""Loads of a directory catalog past what Java fails for, and into a session that an earlier load has filled."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.catalog import DirectoryCatalog, found_table

from tests.helpers.handmade import HandmadeTable

SCHEMA = pa.schema([("id", pa.int64())])


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
    put = found_table.put_entries

    def failing(spark, name, *more):
        if name.name == "one":
            spark._jvm.java.nio.file.Files.size(spark._jvm.java.io.File("/nothing-here").toPath())
        return put(spark, name, *more)

    monkeypatch.setattr(found_table, "put_entries", failing)
    report = warehouse.load(spark)
    assert [each.name for each in report.tables] == ["two"]
    assert report.warnings == ("loads.one was not registered: /nothing-here",)
