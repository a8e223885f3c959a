"""Tables of other writers: read by name, and not a byte written into them."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.spark.catalog import TableName, register_foreign

from tests.helpers.handmade import HandmadeTable

SCHEMA = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.string())])


def rows(*ids, dt="x", v="base"):
    return pa.table({"id": list(ids), "dt": [dt] * len(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def read(spark, relation):
    return sorted(tuple(row) for row in spark.sql(f"select id, v from {relation}").collect())


def everything(path):
    """Every file and folder below a path with its time and size."""
    return {
        os.path.join(folder, name): (
            os.stat(os.path.join(folder, name)).st_mtime_ns,
            os.stat(folder).st_mtime_ns,
        )
        for folder, folders, files in os.walk(path)
        for name in folders + files
    }


@pytest.fixture
def name(database):
    return TableName(database, "events")


@pytest.fixture
def cache(tmp_path):
    return str(tmp_path / "cache")


def test_a_copy_on_write_table_is_read_natively_without_writing_into_it(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",))
    table.commit({"dt=x": {"f-0": rows(1)}, "dt=y": {"g-0": rows(2, dt="y")}})
    before = everything(table.path)
    register_foreign(spark, name, str(table.path), cache)
    assert read(spark, name.sql) == [(1, "base"), (2, "base")]
    plan = (
        spark.sql(f"select * from {name.sql} where dt = 'y'")._jdf.queryExecution().executedPlan().toString()
    )
    assert "PartitionFilters: [isnotnull" in plan
    assert everything(table.path) == before


def test_it_is_refreshed_when_the_timeline_moved(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",))
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_foreign(spark, name, str(table.path), cache)
    table.commit({"dt=x": {"f-0": rows(1, v="new")}})
    register_foreign(spark, name, str(table.path), cache)
    assert read(spark, name.sql) == [(1, "new")]


def test_a_merge_on_read_table_is_merged_from_sidecars_in_the_cache(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), merge_on_read=True)
    first = table.commit({"dt=x": {"f-0": rows(1, 2, 3)}, "dt=y": {"g-0": rows(4, dt="y")}})
    register_foreign(spark, name, str(table.path), cache)
    assert read(spark, name.sql)[0] == (1, "base")
    for expected in ("one", "two"):
        instant = table.next_instant()
        blocks = table.data_blocks("dt=x", "f-0", rows(2, v=expected), instant)
        table.complete(instant, [table.append_log("dt=x", "f-0", first, blocks, instant)])
        before = everything(table.path)
        register_foreign(spark, name, str(table.path), cache)
        assert read(spark, name.sql) == [(1, "base"), (2, expected), (3, "base"), (4, "base")]
        assert [row.dt for row in spark.sql(f"select dt from {name.sql} where id = 4").collect()] == ["y"]
        assert everything(table.path) == before
    assert (2, "base") in read(spark, name.with_suffix("_ro").sql)


def test_files_from_before_a_column_was_widened_are_read_as_the_table_says(spark, name, tmp_path, cache):
    narrow = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("f", pa.float32())])
    wide = pa.schema([("id", pa.int64()), ("v", pa.string()), ("f", pa.float64())])
    table = HandmadeTable(tmp_path / "t", narrow)
    table.commit({"": {"f-0": pa.table({"id": [1], "v": [7], "f": [1.1]}, schema=narrow)}})
    table.schema = wide
    table.commit({"": {"g-0": pa.table({"id": [2], "v": ["eight"], "f": [2.2]}, schema=wide)}})
    before = everything(table.path)
    register_foreign(spark, name, str(table.path), cache)
    assert spark.sql(f"select * from {name.sql} order by id").collect() == [(1, "7", 1.1), (2, "eight", 2.2)]
    assert everything(table.path) == before


def test_partition_columns_that_are_not_in_the_files_come_from_the_folders(spark, name, tmp_path, cache):
    dropped = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.datasource.write.hive_style_partitioning": "false",
    }
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), properties=dropped)
    table.schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("v")])
    table.commit({"x": {"f-0": rows(1).drop_columns(["dt"])}})
    register_foreign(spark, name, str(table.path), cache)
    assert spark.sql(f"select id, dt, v from {name.sql}").collect() == [(1, "x", "base")]


def test_a_table_whose_own_folder_looks_like_a_partition(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "region=eu", SCHEMA, ("dt",))
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_foreign(spark, name, str(table.path), cache)
    assert spark.sql(f"select * from {name.sql}").collect() == [(1, "x", "base")]


def test_a_cache_inside_the_table_is_refused(spark, name, tmp_path):
    table = HandmadeTable(tmp_path / "t", SCHEMA)
    with pytest.raises(ConfigError, match="inside the table"):
        register_foreign(spark, name, str(table.path), str(table.path / ".hoodie" / "cache"))
