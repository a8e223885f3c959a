"""Values that an update or the clauses of a merge set: fields of structs go by their names, and what does not fit is refused."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError, HudiTable
from hudi_engine.spark.write.rows.clauses import MergeClauses

pytestmark = pytest.mark.sampled

COLUMNS = "id int, s struct<a: int, b: int>"


@pytest.fixture
def table(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    table.upsert(spark.createDataFrame([(1, (1, 2))], COLUMNS))
    return table


def rows(table):
    return sorted((row.id, row.s.a, row.s.b) for row in table.snapshot().collect())


def test_an_update_sets_fields_by_name_whatever_their_order_and_case(table):
    table.update_where("id = 1", {"s": "named_struct('B', s.a, 'A', s.b)"})
    assert rows(table) == [(1, 2, 1)]


def test_clauses_of_a_merge_set_fields_by_name(spark, table):
    swapped = "named_struct('b', DBT_INTERNAL_DEST.s.a, 'a', DBT_INTERNAL_DEST.s.b)"
    batch = spark.createDataFrame([(1, (5, 6)), (2, (7, 8))], COLUMNS)
    table.merge(batch, MergeClauses(update_set={"s": swapped}))
    assert rows(table) == [(1, 2, 1), (2, 7, 8)]
    table.merge(batch.where("id = 2"), MergeClauses(by_source={"s": swapped}))
    assert rows(table) == [(1, 1, 2), (2, 7, 8)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("named_struct('a', 1, 'c', 2, 'b', 3)", "s has no field 'c'; its fields: a, b"),
        ("named_struct('a', 1)", "s lacks the field 'b'"),
        ("struct(1 + 0, 2 + 0)", "s has no field 'col1'"),
    ],
)
def test_other_fields_are_refused_and_nothing_is_written(spark, table, value, reason):
    with pytest.raises(ConfigError, match=reason):
        table.update_where("id = 1", {"s": value})
    batch = spark.createDataFrame([(1, (5, 6))], COLUMNS)
    with pytest.raises(ConfigError, match=reason):
        table.merge(batch, MergeClauses(update_set={"s": value}))
    assert rows(table) == [(1, 1, 2)]


def test_a_batch_may_widen_a_struct_that_clauses_leave_in_other_rows(spark, table):
    batch = spark.createDataFrame([(2, (7, 8, 9))], "id int, s struct<a: int, b: int, c: int>")
    table.merge(batch, MergeClauses(by_source="delete", by_source_condition="id > 5"))
    assert sorted((row.id, row.s.a, row.s.c) for row in table.snapshot().collect()) == [
        (1, 1, None),
        (2, 7, 9),
    ]


NUMBERS = "id int, n int, f float, d decimal(5, 2), day date, name string"


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("way", ["update", "merge"])
def test_values_that_do_not_fit_their_columns_fail_whatever_spark_makes_of_them(
    spark, tmp_path, monkeypatch, ansi, way
):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    batch = spark.createDataFrame([(1, 1, 1.0, None, None, "a")], NUMBERS)
    table.upsert(batch)
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:

        def give(**values):
            if way == "update":
                table.update_where("id = 1", values)
            else:
                table.merge(batch, MergeClauses(update_set=values))

        for column, value in (
            ("n", "cast(id as bigint) * 3000000000"),
            ("n", "concat('a', id)"),
            ("f", "id * 1e300"),
            ("d", "id * 12345"),
            ("day", "concat('2024-13-0', id)"),
        ):
            with pytest.raises(Exception, match=f"column {column} does not fit|CAST_|OUT_OF_RANGE"):
                give(**{column: value.replace("id", "DBT_INTERNAL_DEST.id") if way == "merge" else value})
        give(n="7.9", f="double('Infinity')", d="'1.239'", day="'2024-01-02'", name="5")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    (row,) = table.snapshot().collect()
    assert (row.n, row.f, str(row.d), str(row.day), row.name) == (7, float("inf"), "1.24", "2024-01-02", "5")
