"""A table's columns, changed with or without rows: key columns, other spellings, and writers that come between."""

from __future__ import annotations

import hudi_engine
import pytest
from hudi_engine import HudiTable, SchemaError, WriteConflictError
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.table.txn.transaction import WriteTransaction

pytestmark = pytest.mark.sampled

ANY = {"hoodie.engine.schema.evolution": "any"}
AGAIN = {"hoodie.write.num.retries.on.conflict.failures": "2"}
OF_ITS_OWN = {"hoodie.parquet.small.file.limit": "0"}
COLUMNS = "k decimal(10,2), p int, ts bigint, v string"
HARM = {
    "key": ("k decimal(12,4), p int, ts bigint, v string", "'k' is a key column and cannot change from"),
    "partition": ("k decimal(10,2), p double, ts bigint, v string", "'p' is a partition column and cannot"),
    "ordering": ("k decimal(10,2), p int, ts string, v string", "'ts' is an ordering column and cannot"),
}


def keyed(spark, tmp_path):
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["k"], partition_by=["p"], precombine_field="ts", schema=COLUMNS
    )  # fmt: skip
    table.upsert(spark.sql("select 1.5 k, 1 p, 1L ts, 'a' v"))
    return table


def plain(spark, tmp_path, table_type="cow"):
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["Id"], table_type=table_type,
        schema="Id int, name string, s struct<a: int>",
    )  # fmt: skip
    table.upsert(spark.sql("select 1 id, 'one' name, struct(1 a) s union all select 2, 'two', struct(2)"))
    return table


def shown(table, *columns):
    """The rows, which Spark and the engine's own reader have to agree about."""
    found = sorted(tuple(row) for row in table.snapshot().select(*columns).collect())
    read = hudi_engine.read(table.path).to_arrow()
    assert sorted(zip(*(read[name].to_pylist() for name in columns), strict=True)) == found
    return found


@pytest.mark.parametrize("role", HARM)
def test_a_key_partition_or_ordering_column_never_gets_a_type_in_which_stored_values_count_as_others(
    spark, tmp_path, role
):
    table, (wanted, reason) = keyed(spark, tmp_path), HARM[role]
    rows = spark.createDataFrame([], wanted)
    for change in (
        lambda: table.alter_schema(wanted),
        lambda: table.with_schema(wanted).upsert(rows),
        lambda: table.upsert(rows, options=ANY),
    ):
        with pytest.raises(SchemaError, match=reason):
            change()
    assert table.schema.simpleString() == "struct<k:decimal(10,2),p:int,ts:bigint,v:string>"


def test_key_partition_and_ordering_columns_widen_where_stored_rows_are_found_all_the_same(spark, tmp_path):
    table = keyed(spark, tmp_path)
    table.alter_schema("k decimal(12,2), p bigint, ts bigint, v string")
    assert table.upsert(spark.sql("select 1.5 k, 1L p, 2L ts, 'b' v")).rows_updated == 1
    assert shown(table, "p", "v") == [(1, "b")]
    table.with_schema("k decimal(14,4), p double, ts string, v string").insert_overwrite_table(
        spark.sql("select 2.5 k, 2d p, '3' ts, 'c' v")
    )
    assert shown(table, "p", "ts", "v") == [(2.0, "3", "c")], "of the whole table nothing is left to be found"


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("with_rows", [False, True], ids=["alone", "with-rows"])
def test_a_column_in_another_spelling_is_the_column_that_the_table_has(
    spark, tmp_path, table_type, with_rows
):
    table = plain(spark, tmp_path, table_type)
    wanted, rows = "ID int, NAME string, S struct<A: int, b: int>, extra int", "select 1 id, 'ONE' NAME"
    if with_rows:
        table.with_schema(wanted).upsert(spark.sql(rows))
    else:
        table.alter_schema(wanted)
        table.upsert(spark.sql(rows))
    assert table.schema.simpleString() == "struct<Id:int,name:string,s:struct<a:int,b:int>,extra:int>"
    if table_type == "mor":
        table.compact()
    assert shown(table, "Id", "name") == [(1, "ONE"), (2, "two")]
    assert [row.s for row in table.snapshot().where("id = 2").select("s").collect()] == [(2, None)]


def test_two_columns_that_differ_by_case_only_are_refused(spark, tmp_path):
    table = plain(spark, tmp_path)
    for wanted in ("Id int, name string, s struct<a: int>, NAME int", "Id int, s struct<a: int, A: int>"):
        with pytest.raises(SchemaError, match="appears twice"):
            table.alter_schema(wanted)


def test_a_dropped_column_comes_back_only_in_the_spelling_that_its_files_have(spark, tmp_path):
    table = plain(spark, tmp_path)
    table.alter_schema("Id int, s struct<a: int>")
    for refused in (
        lambda: table.alter_schema("Id int, s struct<a: int>, NAME string"),
        lambda: table.upsert(spark.sql("select 1 id, 'x' NAME")),
    ):
        with pytest.raises(SchemaError, match="'NAME' was dropped as 'name'"):
            refused()
    table.upsert(spark.sql("select 1 id, 'x' name"))
    assert shown(table, "Id", "name") == [(1, "x"), (2, "two")]


@pytest.fixture
def between(spark, overtaken):
    """Have another writer add a column once a change of columns has been checked, before its instant begins."""
    return lambda table: overtaken(
        lambda: HudiTable.open(spark, table.path).upsert(spark.sql("select 3 id, 'x' theirs"))
    )


WANTED = "Id int, name string, s struct<a: int>, mine int"


@pytest.mark.parametrize("options", [{}, AGAIN], ids=["once", "again"])
def test_a_change_of_columns_never_takes_back_the_column_of_a_writer_that_came_between(
    spark, tmp_path, between, options
):
    table = plain(spark, tmp_path)
    between(table)
    with pytest.raises(WriteConflictError, match="changed the columns"):
        table.alter_schema(WANTED, options=options)
    assert table.schema.names == ["Id", "name", "s", "theirs"]


def test_a_merge_that_begins_again_does_not_take_back_the_column_of_a_writer_that_came_between(
    spark, tmp_path, between
):
    table = plain(spark, tmp_path)
    between(table)
    with pytest.raises(WriteConflictError, match="changed the columns"):
        table.with_schema(WANTED).merge(spark.sql("select 1 id, 1 mine"), MergeClauses(), options=AGAIN)
    assert table.schema.names == ["Id", "name", "s", "theirs"]


@pytest.mark.parametrize("way", ["alone", "with-rows"])
def test_a_column_is_never_hidden_by_a_write_that_began_later_and_was_done_first(
    spark, tmp_path, monkeypatch, way
):
    table, inflight = plain(spark, tmp_path), WriteTransaction.inflight

    def late(transaction, profile):
        monkeypatch.undo()
        inflight(transaction, profile)
        HudiTable.open(spark, table.path).insert(spark.sql("select 3 id"), options=OF_ITS_OWN)

    def change(options):
        monkeypatch.setattr(WriteTransaction, "inflight", late)
        if way == "alone":
            return table.alter_schema(WANTED, options=options)
        return table.insert(spark.sql("select 4 id, 4 mine"), options={**OF_ITS_OWN, **options})

    with pytest.raises(WriteConflictError, match="began later and came first, would hide that"):
        change({})
    assert table.schema.names == ["Id", "name", "s"]
    change(AGAIN)
    assert table.schema.names == ["Id", "name", "s", "mine"]
