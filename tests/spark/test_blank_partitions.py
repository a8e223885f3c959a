"""Partition values that begin, end or are blank: written, read, changed and rolled back as any other."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable

from tests.helpers.forms import in_turn

BLANKS = (" ", " x", "x ", "\u3000", "\u2028x", "\u00a0")
LEVELS = {"one": ["part"], "the first of two": ["part", "id"]}


@pytest.mark.parametrize(("value", "levels", "table_type"), in_turn(BLANKS, tuple(LEVELS), ("cow", "mor")))
def test_a_table_with_a_blank_partition_goes_on(spark, tmp_path, value, levels, table_type):
    def rows(*values):
        return spark.createDataFrame(list(values), "id string, part string, n int")

    def content():
        return sorted(tuple(row) for row in table.snapshot().select("id", "part", "n").collect())

    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        partition_by=LEVELS[levels],
        table_type=table_type,
        schema=rows().schema,
    )
    table.insert(rows(("1", "a", 1)))
    table.insert(rows(("2", value, 2)))
    table.upsert(rows(("2", value, 3), ("3", "a", 3)))
    assert content() == [("1", "a", 1), ("2", value, 3), ("3", "a", 3)]
    table.rollback(table.commits(limit=1)[0].instant)
    assert content() == [("1", "a", 1), ("2", value, 2)]
    table.delete_where("n = 2")
    assert content() == [("1", "a", 1)]
    assert table.validate() == []
