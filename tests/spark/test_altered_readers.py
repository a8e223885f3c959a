"""Readers of changes that were made before their table got other columns."""

from __future__ import annotations

import pytest
from hudi_engine import rebuild_table, register_change_source

from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts bigint, name string"
KEPT = {"hoodie.clean.automatic": "false", "hoodie.engine.schema.evolution": "any"}


@pytest.fixture
def table(spark, tmp_path):
    if spark.version.startswith("3."):
        pytest.skip("this Spark has no such sources")
    register_change_source(spark)
    made = keyed_table(spark, tmp_path / "t", partition_by=(), schema=COLUMNS, options=KEPT)
    made.upsert(spark.createDataFrame([(1, 1, "one")], COLUMNS))
    return made


def stream(spark, table, schema=None):
    reader = spark.readStream.format("hudi_changes")
    return (reader if schema is None else reader.schema(schema)).load(table.path)


def run(frame, checkpoint):
    taken = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: taken.extend(map(tuple, batch.collect())))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return [row[:-2] for row in taken]


def test_a_stream_without_a_column_that_is_new_fails_and_a_restart_takes_its_batch_with_it(
    spark, tmp_path, table
):
    assert run(stream(spark, table), tmp_path / "all") == [(1, 1, "one")]
    few = "id int, name string, _change_type string, _commit_time string"
    assert run(stream(spark, table, few), tmp_path / "few") == [(1, "one")]
    of_before = stream(spark, table)
    table.upsert(spark.createDataFrame([(2, 2, "two", 7)], f"{COLUMNS}, extra int"))
    with pytest.raises(Exception, match="SchemaError: .*: 'extra' is new; .*: start it again"):
        run(of_before, tmp_path / "all")
    assert run(stream(spark, table), tmp_path / "all") == [(2, 2, "two", 7)]
    assert run(stream(spark, table, few), tmp_path / "few") == [(2, "two")], "which it did not ask for"


def test_a_batch_of_columns_that_are_gone_or_have_other_types_is_refused(spark, table):
    reader = spark.read.format("hudi_changes")
    of_before = reader.load(table.path)
    rows = spark.createDataFrame([(1, 1, "one")], "id int, ts double, title string")
    rebuild_table(spark, table.path, rows, name="t", record_key=["id"], precombine_field="ts")
    said = "'name' was renamed or dropped, 'ts' was bigint and is double, 'title' is new; load it anew"
    with pytest.raises(Exception, match=f"SchemaError: .*{said}"):
        of_before.collect()
    assert [tuple(row)[:3] for row in reader.load(table.path).collect()] == [(1, 1.0, "one")]
    asked = reader.schema("id int, title int, _change_type string, _commit_time string").load(table.path)
    with pytest.raises(
        Exception,
        match="SchemaError: .*: 'title' was int and is string; give a schema that fits, or load it anew",
    ):
        asked.collect()


def test_a_frame_of_changes_tells_what_it_was_made_for_whatever_the_table_has_since(spark, tmp_path, table):
    first = table.timeline()[0].requested_time
    table.upsert(spark.createDataFrame([(2, 2, "two")], COLUMNS))
    frames = [table.changes(first, mode=mode) for mode in ("net", "all", "latest")]
    table.upsert(spark.createDataFrame([(3, 3, "three", 7)], f"{COLUMNS}, extra int"))
    table.upsert(spark.createDataFrame([(2, 4, 22, 7)], "id int, ts bigint, name int, extra int"))
    for frame in frames:
        assert [tuple(row)[:3] for row in frame.collect()] == [(2, 2, "two")]
