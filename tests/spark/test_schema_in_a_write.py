"""A write that changes the table's columns in its own commit, and files from before that Spark cannot read as the new types."""

from __future__ import annotations

import os

import hudi_engine
import pyarrow as pa
import pytest
from hudi_engine import HudiTable, SchemaError, WriteConflictError
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.table.state import TableState
from hudi_engine.table.write import operation as operations
from hudi_engine.table.write.schema_change import with_same_columns

from tests.helpers.forms import forms
from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled

FIRST = "id int, dt string, gone string, n int"
NOW = "id int, dt string, n bigint, extra string"
WAYS = ("upsert", "insert", "insert_overwrite", "replace", "merge", "delete")
NARROW, WIDE = (pa.float32(), pa.int32()), (pa.float64(), pa.string())
BATCH = "select 2 id, 'a' dt, 20L n, 'x' extra"


@pytest.fixture(params=["cow", "mor"])
def table(request, spark, tmp_path):
    """Ids 1 and 2 in partition a, 3 in b; of 3 there is a log in a merge-on-read table."""
    made = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["dt"], table_type=request.param,
        schema=FIRST, options={"hoodie.index.type": "SIMPLE"},
    )  # fmt: skip
    made.upsert(spark.createDataFrame([(1, "a", "x", 10), (2, "a", "y", 11), (3, "b", "z", 12)], FIRST))
    made.upsert(spark.createDataFrame([(3, "b", "z", 13)], FIRST))
    return made


def rows(frame):
    shown = [name for name in frame.columns if not name.startswith("_hoodie")]
    return shown, sorted(tuple(row) for row in frame.select(shown).collect())


def write(table, way, frame):
    if way == "replace":
        return table.replace(frame, keys=["id"])
    if way == "merge":
        return table.merge(frame, MergeClauses(matched_condition="t.n < 20", target="t"))
    if way == "delete":
        return table.delete(frame.select("id", "dt"))
    return getattr(table, way)(frame)


STAYING = [(1, "a", 10, None), (3, "b", 13, None)]
LEFT = {
    "insert": [(1, "a", 10, None), (2, "a", 11, None), (2, "a", 20, "x"), (3, "b", 13, None)],
    "insert_overwrite": [(2, "a", 20, "x"), (3, "b", 13, None)],
    "delete": STAYING,
}


@pytest.mark.parametrize("way", forms(WAYS, gate=("upsert", "insert_overwrite", "replace")))
def test_columns_come_go_and_widen_in_the_commit_of_the_rows(spark, database, table, way):
    before = len(table.commits())
    write(table.with_schema(NOW), way, spark.sql(BATCH))
    expected = ["id", "dt", "n", "extra"], LEFT.get(way) or sorted([*STAYING, (2, "a", 20, "x")])
    assert len(table.commits()) == before + 1
    assert rows(table.snapshot()) == expected
    read = hudi_engine.read(table.path).to_arrow()
    assert sorted(zip(*(read[name].to_pylist() for name in expected[0]), strict=True)) == expected[1]
    name = TableName(database, "t")
    register_table(spark, name, table.storage)
    assert rows(spark.table(name.sql)) == expected
    assert not table.validate()


def test_a_write_that_fails_changes_no_column(spark, table):
    before = rows(table.snapshot())
    failing = spark.sql(f"{BATCH} where raise_error('boom') is null")
    with pytest.raises(Exception, match="boom"):
        table.with_schema(NOW).upsert(failing)
    assert rows(table.snapshot()) == before
    assert table.schema.simpleString() == "struct<id:int,dt:string,gone:string,n:int>"


def test_what_hudi_refuses_is_refused_before_anything_runs(spark, table):
    failing = spark.sql(f"{BATCH} where raise_error('boom') is null")
    for schema, reason in {
        "id int, dt string, n int, gone int": "'gone' cannot change from string to int;",
        "dt string, n int": "'id' is a key, ordering or partition column and cannot be dropped",
    }.items():
        with pytest.raises(SchemaError, match=reason):
            table.with_schema(schema).upsert(failing)


def test_columns_that_another_writer_changed_meanwhile_are_a_conflict(table):
    before = TableState.load(table.storage)
    wanted = TableState(before.storage, before.config, before.timeline, pa.schema([("id", pa.int32())]))
    assert with_same_columns(wanted, before).columns == wanted.columns
    table.alter_schema(f"{FIRST}, theirs int")
    with pytest.raises(WriteConflictError, match="changed the columns"):
        with_same_columns(wanted, TableState.load(table.storage))


def test_no_row_is_still_a_change_of_columns(spark, table):
    table.with_schema(NOW).write(
        operations.UPSERT, spark.sql(f"{BATCH} where 1 = 0"), {"hoodie.skip.empty.commit": "true"}
    )
    assert rows(table.snapshot())[0] == ["id", "dt", "n", "extra"]


@pytest.mark.core
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_name_in_sql_reads_widened_columns_as_every_reader_does(spark, database, tmp_path, table_type):
    """Spark widens a float by its bits and Hudi by its text; numbers as text it refuses. So it reads copies."""
    table = keyed_table(
        spark,
        tmp_path / "t",
        table_type,
        precombine_field=None,
        partition_by=None,
        schema="id int, f float, n int",
    )
    name = TableName(database, "t")

    def write_rows(*rows, kinds=NARROW):
        columns = {"id": pa.array([row[0] for row in rows], pa.int32())}
        columns["f"] = pa.array([row[1] for row in rows], kinds[0])
        columns["n"] = pa.array([row[2] for row in rows], kinds[1])
        table.upsert(pa.table(columns))

    def check(*expected):
        register_table(spark, name, table.storage)
        found = spark.table(name.sql)
        assert rows(found)[1] == rows(table.snapshot())[1] == sorted(expected)
        assert [row[0] for row in found.where("f <= 0.1").select("id").collect()] == [1]
        if table_type == "mor":
            assert rows(spark.table(name.with_suffix("_ro").sql)) == rows(table.read_optimized())

    write_rows((1, 0.1, 1), (2, 0.7, 2), (3, 0.3, 3))
    write_rows((2, 0.2, 2))
    table.alter_schema("id int, f double, n string")
    check((1, 0.1, "1"), (2, 0.2, "2"), (3, 0.3, "3"))
    write_rows((3, 0.3, "three"), kinds=WIDE)
    check((1, 0.1, "1"), (2, 0.2, "2"), (3, 0.3, "three"))
    if table_type == "mor":
        table.compact()
        check((1, 0.1, "1"), (2, 0.2, "2"), (3, 0.3, "three"))
    for number in range(3):
        write_rows((3, 0.3, str(number)), kinds=WIDE)
    if table_type == "mor":
        table.compact()
    table.clean(retain_commits=1)
    register_table(spark, name, table.storage)
    table.clean(retain_commits=1)
    assert not [each for each in os.listdir(table.path) if each.endswith(".delta")] or table_type == "mor"
    assert not table.validate()


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_after_another_column_has_become_text_both_zeros_are_found_and_deleted(
    spark, database, tmp_path, table_type
):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=table_type)
    numbers = "element_at(array(-0.0d, 0.5d, 0.25d), cast(id % 3 as int) + 1) g"
    structs = "named_struct('inner', cast(if(id % 3 = 0, -0.0d, 1.5d) as float)) s"
    table.upsert(spark.sql(f"select id, {numbers}, {structs}, cast(id as int) n from range(30)"))
    table.upsert(spark.sql(f"select 3L id, {numbers}, {structs}, 1 n from (select 3L id)"))
    table.alter_schema("id bigint, g double, s struct<inner: float>, n string")
    name = TableName(database, "zeros")
    register_table(spark, name, table.storage)
    for source in (spark.table(name.sql), table.snapshot()):
        for condition in ("g = 0", "g in (0, 7)", "s.inner = 0", "g + 0 = 0"):
            assert source.where(condition).count() == 10, condition
    assert table.update_where("s.inner = 0", {"n": "'zero'"}).rows_updated == 10
    assert table.delete_where("g = 0").rows_deleted == 10
    assert table.snapshot().count() == 20
