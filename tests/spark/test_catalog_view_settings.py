"""Views come back from their files under settings of their own, and the session that is filled has its own all the time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hudi_engine.spark.catalog import DirectoryCatalog, kept
from hudi_engine.spark.catalog.spark_entry import put_view
from pyspark import RDD

ZONE, PRECISION = "spark.sql.session.timeZone", "spark.sql.decimalOperations.allowPrecisionLoss"


@pytest.fixture
def warehouse(tmp_path, spark):
    """A catalog with the file of one view, made in the schema ``dirs``, which Spark has forgotten."""
    catalog = DirectoryCatalog(str(tmp_path / "warehouse"))
    catalog.create_schema("dirs")
    spark.sql("create database dirs")
    spark.catalog.setCurrentDatabase("dirs")
    spark.sql("create view v as select cast(hour(timestamp_seconds(0)) as int) as h")
    spark.catalog.setCurrentDatabase("default")
    catalog.save_view(spark, "dirs", "v")
    spark.sql("drop database dirs cascade")
    before = {key: spark.conf.get(key, None) for key in (ZONE, PRECISION)}
    yield catalog
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)
    spark.sql("drop database if exists dirs cascade")


def settings(warehouse, change):
    """Change the settings that the view's file tells of."""
    file = Path(warehouse.root) / "dirs" / "v.view.json"
    body = json.loads(file.read_text())
    file.write_text(json.dumps({**body, "settings": change(body["settings"])}))


def test_the_session_keeps_its_settings_and_schema_while_views_are_made(spark, warehouse, monkeypatch):
    """Other threads may use it."""
    settings(warehouse, lambda made: {**made, ZONE: "Asia/Tokyo"})
    seen, to_frame = {}, RDD.toDF

    def look(session, spec, existing):
        for who, each in {"view": session, "caller": spark}.items():
            seen[who] = each.conf.get(ZONE), each.catalog.currentDatabase()
        return put_view(session, spec, existing)

    monkeypatch.setattr(kept, "put_view", look)
    spark.conf.set(ZONE, "America/New_York")
    spark.conf.set(PRECISION, "false")
    assert warehouse.load(spark).warnings == ()
    assert seen == {"view": ("Asia/Tokyo", "dirs"), "caller": ("America/New_York", "default")}
    assert spark.conf.get(PRECISION) == "false"
    assert spark.sql("select h from dirs.v").collect() == [(9,)]
    assert RDD.toDF is to_frame
    assert spark.getActiveSession()._jsparkSession.equals(spark._jsparkSession)


def test_a_file_of_an_earlier_version_makes_the_view_under_the_settings_of_the_session(spark, warehouse):
    settings(warehouse, lambda _: {})
    spark.conf.set(ZONE, "Asia/Tokyo")
    assert warehouse.load(spark).warnings == ()
    spark.conf.set(ZONE, "America/New_York")
    assert spark.sql("select h from dirs.v").collect() == [(9,)]
