"""Requests of a small write: how often it reads the table's properties and lists its timeline."""

from __future__ import annotations

from hudi_engine import HudiTable
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.local import LocalStorage

from tests.helpers.logged import LoggingStorage


def test_a_small_upsert_reads_its_properties_twice_and_lists_its_timeline_four_times(spark, tmp_path):
    rows = spark.createDataFrame([("a", 1, "x")], "id string, ts long, day string")
    path = str(tmp_path / "table")
    table = HudiTable.create(
        spark, path, record_key="id", precombine_field="ts", partition_by="day", name="t"
    )
    table.upsert(rows)
    storage = LoggingStorage(LocalStorage(path))
    HudiTable(spark, path, storage).upsert(rows)
    assert storage.count("read", PROPERTIES_PATH) == 2, storage.requests
    # open, begin and commit under the lock, and the look after the files were listed for the manifest
    assert storage.count("list", ".hoodie") == 4, storage.requests


def test_a_metadata_table_with_statistics_costs_a_small_upsert_half_as_many_requests_again(spark, tmp_path):
    rows = spark.createDataFrame([("a", 1, "x")], "id string, ts long, day string")
    asked = {}
    for kept in ("false", "true"):
        path = str(tmp_path / kept)
        options = {
            "hoodie.write.table.version": "9",
            "hoodie.metadata.enable": kept,
            "hoodie.metadata.index.column.stats.enable": kept,
        }
        HudiTable.create(spark, path, record_key="id", partition_by="day", name="t", options=options).upsert(
            rows
        )
        storage = LoggingStorage(LocalStorage(path))
        HudiTable(spark, path, storage, options).upsert(rows)
        asked[kept] = len(storage.requests)
    assert asked["false"] < asked["true"] <= 1.6 * asked["false"], asked
