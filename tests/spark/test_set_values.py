"""Structs that an update or the clauses of a merge set: fields go by their names."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError, HudiTable
from hudi_engine.write.rows.clauses import MergeClauses

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
