"""Tables of other writers: read by name, and not a byte written into them."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hudi_engine.catalog import TableName, register_foreign
from hudi_engine.errors import ConfigError, UnsupportedTableError

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
    entry = register_foreign(spark, name, str(table.path), cache)
    assert entry.is_native and read(spark, entry.relation) == [(1, "base"), (2, "base")]
    plan = (
        spark.sql(f"select * from {entry.relation} where dt = 'y'")
        ._jdf.queryExecution()
        .executedPlan()
        .toString()
    )
    assert "PartitionFilters: [isnotnull" in plan
    assert everything(table.path) == before


def test_it_is_refreshed_when_the_timeline_moved(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",))
    table.commit({"dt=x": {"f-0": rows(1)}})
    register_foreign(spark, name, str(table.path), cache)
    table.commit({"dt=x": {"f-0": rows(1, v="new")}})
    assert read(spark, register_foreign(spark, name, str(table.path), cache).relation) == [(1, "new")]


def test_a_merge_on_read_table_is_merged_from_sidecars_in_the_cache(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), merge_on_read=True)
    first = table.commit({"dt=x": {"f-0": rows(1, 2, 3)}, "dt=y": {"g-0": rows(4, dt="y")}})
    assert read(spark, register_foreign(spark, name, str(table.path), cache).relation)[0] == (1, "base")
    for expected in ("one", "two"):
        instant = table.next_instant()
        blocks = table.data_blocks("dt=x", "f-0", rows(2, v=expected), instant)
        table.complete(instant, [table.append_log("dt=x", "f-0", first, blocks, instant)])
        before = everything(table.path)
        entry = register_foreign(spark, name, str(table.path), cache)
        assert read(spark, entry.relation) == [(1, "base"), (2, expected), (3, "base"), (4, "base")]
        assert [row.dt for row in spark.sql(f"select dt from {entry.relation} where id = 4").collect()] == [
            "y"
        ]
        assert everything(table.path) == before
    assert (2, "base") in read(spark, name.with_suffix("_ro").sql)


def test_what_spark_cannot_read_goes_through_the_reader_that_is_given(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",))
    table.commit({"dt=x": {"f-0": rows(1)}})
    sibling = spark.newSession()
    calls = []

    def is_readable(storage, config, path, schema):
        calls.append((path, schema))
        return len(calls) == 1

    def fallback(session):
        return session.createDataFrame([(1, "through the reader")], "id long, v string")

    options = {"is_readable": is_readable, "fallback": fallback, "sessions": [sibling]}
    assert register_foreign(spark, name, str(table.path), cache, **options).is_native
    register_foreign(spark, name, str(table.path), cache, **options)
    assert len(calls) == 1 and calls[0][1] == SCHEMA
    table.commit({"dt=x": {"g-0": rows(2)}})
    entry = register_foreign(spark, name, str(table.path), cache, **options)
    assert not entry.is_native
    assert read(spark, entry.relation) == read(sibling, entry.relation) == [(1, "through the reader")]


def test_a_table_altered_by_schema_on_read_is_not_read_by_column_name(spark, name, tmp_path, cache):
    table = HandmadeTable(tmp_path / "t", SCHEMA)
    table.commit({"": {"f-0": rows(1)}})
    (table.path / ".hoodie" / ".schema").mkdir()
    (table.path / ".hoodie" / ".schema" / "20260101000001000.schemacommit").write_text("{}")
    with pytest.raises(UnsupportedTableError, match="schema on read"):
        register_foreign(spark, name, str(table.path), cache)


def test_a_cache_inside_the_table_is_refused(spark, name, tmp_path):
    table = HandmadeTable(tmp_path / "t", SCHEMA)
    with pytest.raises(ConfigError, match="inside the table"):
        register_foreign(spark, name, str(table.path), str(table.path / ".hoodie" / "cache"))
