"""What a batch may do to the types of a table's columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hudi_engine import HudiTable, SchemaError

from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled

ANY = {"hoodie.engine.schema.evolution": "any"}


@pytest.fixture
def table(spark, tmp_path):
    made = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    made.upsert(spark.sql("select 1 id, 10 amount, named_struct('a', 1) s"))
    return made


def types(table):
    return {field.name: field.dataType.simpleString() for field in table.schema.fields}


@pytest.mark.parametrize(
    "columns",
    ["1 id, 'ten' amount", "'1' id, 10 amount", "1L id, 10 amount", "1 id, 10 amount, named_struct('a', 'x') s"],
    ids=["text-for-a-number", "text-for-the-key", "a-wider-key", "text-in-a-struct"],
)  # fmt: skip
def test_a_batch_never_turns_numbers_into_text_or_changes_the_key_unless_asked(spark, table, columns):
    before = types(table)
    with pytest.raises(SchemaError, match="cast it to int32.*hoodie.engine.schema.evolution=any"):
        table.upsert(spark.sql(f"select {columns}"))
    assert types(table) == before
    table.upsert(spark.sql(f"select {columns}"), options=ANY)
    assert types(table) != before


def test_numbers_widen_and_new_columns_come_unless_types_are_fixed(spark, table):
    rows = spark.sql("select 1 id, 1L amount, true extra")
    with pytest.raises(SchemaError, match="'amount' is int32"):
        table.upsert(rows, options={"hoodie.engine.schema.evolution": "columns"})
    table.upsert(rows)
    assert types(table) == {"id": "int", "amount": "bigint", "s": "struct<a:int>", "extra": "boolean"}


def test_keys_to_delete_may_come_as_text(spark, table):
    assert table.delete(spark.sql("select '1' id")).rows_deleted == 1


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_dropped_column_comes_back_only_with_a_type_its_files_can_be_read_as(spark, tmp_path, table_type):
    table = keyed_table(
        spark,
        tmp_path / "t",
        table_type,
        precombine_field=None,
        partition_by=None,
        schema="id int, note string",
    )
    table.upsert(spark.createDataFrame([(1, "old")], "id int, note string"))
    table.alter_schema("id int")
    for refused in (
        lambda: table.upsert(spark.createDataFrame([(2, 5)], "id int, note int")),
        lambda: table.alter_schema("id int, note bigint"),
    ):
        with pytest.raises(SchemaError, match="'note' was dropped as string and would come back as int"):
            refused()
    table.upsert(spark.createDataFrame([(2, "new")], "id int, note string"))
    rows = table.snapshot().select("id", "note").collect()
    assert sorted(tuple(row) for row in rows) == [(1, "old"), (2, "new")], "as in Hudi, by its name"
    table.alter_schema("id int")
    table.insert_overwrite_table(spark.createDataFrame([(3, 7)], "id int, note int"))
    assert [tuple(row) for row in table.snapshot().select("id", "note").collect()] == [(3, 7)]
    table.alter_schema("id int")
    with pytest.raises(SchemaError, match="was dropped as int32"):
        table.alter_schema("id int, note date")


def test_a_service_that_carries_older_columns_takes_none_away(spark, table):
    """Apache Hudi gives a service the columns as of its begin, and a write that began before it may bring more."""
    table.upsert(spark.sql("select 2 id, 20 amount, named_struct('a', 2) s, 'new' extra"))
    assert table.cluster(
        "id", options={"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    ).instant
    commit = max(Path(table.path).glob(".hoodie/*.replacecommit"))
    told = json.loads(commit.read_text())
    assert told["operationType"] == "CLUSTER"
    columns = json.loads(told["extraMetadata"]["schema"])
    columns["fields"] = [field for field in columns["fields"] if field["name"] != "extra"]
    commit.write_text(json.dumps({**told, "extraMetadata": {"schema": json.dumps(columns)}}))

    table = HudiTable.open(spark, table.path)
    assert {(row.id, row.extra) for row in table.snapshot().collect()} == {(1, None), (2, "new")}
    table.upsert(spark.sql("select 3 id, 30 amount, named_struct('a', 3) s"))
    assert {(row.id, row.extra) for row in table.snapshot().collect()} == {(1, None), (2, "new"), (3, None)}
