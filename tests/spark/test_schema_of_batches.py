"""What a batch may do to the types of a table's columns."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, SchemaError

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
