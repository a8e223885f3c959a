"""Followers of a table that was built anew with columns of other types."""

from __future__ import annotations

import pytest
from hudi_engine import HistoryGapError, HudiTable
from hudi_engine.spark.front.rebuild import rebuild_table

pytestmark = pytest.mark.sampled

KEEP = {"hoodie.clean.automatic": "false"}


def rebuilt(spark, path, then, now, column="a"):
    """A table whose column has another type since its third commit; the commits."""

    def frame(rows, kind):
        return spark.sql(
            f"select id, cast({column} as {kind}) as {column} from values {rows} as t(id, {column})"
        )

    definition = {"name": "t", "record_key": ["id"], "options": KEEP}
    HudiTable.create(spark, path, **definition)
    rebuild_table(spark, path, frame(f"(1, {then[1]}), (2, {then[1]})", then[0]), **definition)
    HudiTable.open(spark, path).upsert(frame(f"(2, {then[2]})", then[0]))
    rebuild_table(spark, path, frame(f"(1, {now[1]}), (3, {now[1]})", now[0]), **definition)
    HudiTable.open(spark, path).upsert(frame(f"(4, {now[1]})", now[0]))
    table = HudiTable.open(spark, path)
    return table, sorted(each.instant for each in table.commits())


TYPES = {
    "texts and numbers": (("string", "'one'", "'two'"), ("int", "1")),
    "fractions and whole numbers": (("double", "1.5", "2.5"), ("bigint", "1")),
    "structs": (("struct<x: string>", "struct('one')", "struct('two')"), ("struct<x: int>", "struct(1)")),
    "structs with fewer fields": (
        ("struct<x: string, y: int>", "struct('one', 1)", "struct('two', 1)"),
        ("struct<x: int>", "struct(1)"),
    ),
    "narrower numbers": (("bigint", "1", "2"), ("int", "1")),
    "decimals of fewer digits": (("decimal(20,2)", "1.25", "2.25"), ("decimal(10,2)", "1.25")),
    "structs without a field": (
        ("struct<x: int, y: string, z: int>", "struct(1, 'a', 3)", "struct(2, 'b', 3)"),
        ("struct<z: int, x: int>", "struct(3, 1)"),
    ),
    "maps of narrower structs": (
        ("map<string, struct<x: bigint>>", "map('k', struct(1))", "map('k', struct(2))"),
        ("map<string, struct<x: int>>", "map('k', struct(1))"),
    ),
    "lists and structs": (("array<int>", "array(1)", "array(2)"), ("struct<x: int>", "struct(1)")),
}


@pytest.mark.parametrize("kind", TYPES)
def test_rows_of_before_that_cannot_be_read_as_they_are_now_are_a_gap(spark, tmp_path, kind):
    table, commits = rebuilt(spark, str(tmp_path / "t"), *TYPES[kind])
    for ask in (table.changes, table.cdc):
        with pytest.raises(HistoryGapError, match=f"column 'a' was .* since commit {commits[2]}") as gap:
            ask(commits[0])
        assert gap.value.oldest == commits[2]
    with pytest.raises(HistoryGapError):
        table.changes(commits[0], mode="all")
    rows = table.changes(commits[0], on_gap="snapshot").select("id", "_change_type").collect()
    assert sorted(map(tuple, rows)) == [(1, "insert"), (3, "insert"), (4, "insert")]
    (row,) = table.changes(commits[2]).collect()
    assert (row["id"], row["_change_type"]) == (4, "insert")
    (row,) = table.changes(commits[0], commits[1]).collect()
    assert (row["id"], row["_change_type"]) == (2, "update_after"), "in the columns of then"
    assert table.changes(commits[0], mode="latest").count() == 3, "nothing of before is opened"


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (("int", "1", "2"), ("string", "'1'")),
        (("int", "1", "2"), ("bigint", "1")),
        (("struct<x: int>", "struct(1)", "struct(2)"), ("struct<x: bigint, y: int>", "struct(1, null)")),
    ],
)
def test_rows_of_before_are_told_in_wider_types(spark, tmp_path, then, now):
    table, commits = rebuilt(spark, str(tmp_path / "t"), then, now)
    rows = table.changes(commits[1]).select("id", "_change_type").collect()
    assert sorted(map(tuple, rows)) == [(2, "delete"), (3, "insert"), (4, "insert")]
