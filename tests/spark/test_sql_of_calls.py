"""SQL that a call is given is taken whole: half a condition, which Spark would take for a shorter one with a name, changes nothing."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError
from hudi_engine.spark.write.rows.clauses import MergeClauses

from tests.spark.orders import FIRST, create, frame, rows_of

pytestmark = pytest.mark.sampled

CALLS = {
    "delete": lambda table, sql, _: table.delete_where(sql),
    "update": lambda table, sql, _: table.update_where(sql, {"name": "'x'"}),
    "value": lambda table, sql, _: table.update_where("id = 1", {"ts": sql}),
    "soft delete": lambda table, sql, _: table.soft_delete_where(sql),
    "replace": lambda table, sql, rows: table.replace(rows, where=sql),
    "replace by keys": lambda table, sql, rows: table.replace(rows, keys=["id"], where=sql),
    "match": lambda table, sql, rows: table.upsert(rows, match_condition=sql),
    "merge": lambda table, sql, rows: table.merge(rows, MergeClauses(matched_condition=sql)),
    "cluster": lambda table, sql, _: table.cluster(where=sql),
}


@pytest.mark.core
@pytest.mark.parametrize("call", [each for each in CALLS if each != "value"])
@pytest.mark.parametrize("behind", ["and", "or", "oops", "as much"])
def test_words_behind_a_condition_are_no_name_for_it(spark, tmp_path, call, behind):
    table = create(spark, tmp_path, partition_by=["dt"])
    table.upsert(frame(spark, *FIRST))
    commits = len(table.commits())
    with pytest.raises(ConfigError, match=f"dt = 'a' {behind}"):
        CALLS[call](table, f"dt = 'a' {behind}", frame(spark, (1, 20, "a", "new")))
    assert rows_of(table) == FIRST
    assert len(table.commits()) == commits


@pytest.mark.parametrize("condition", [True, None, 1])
def test_what_is_no_text_is_no_condition(spark, tmp_path, condition):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    with pytest.raises(ConfigError, match="SQL is given as text"):
        table.delete_where(condition)
    assert rows_of(table) == FIRST


def test_words_behind_a_value_are_no_name_for_it(spark, tmp_path):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    with pytest.raises(ConfigError, match="ts \\+ 1 oops"):
        CALLS["value"](table, "ts + 1 oops", None)
    assert rows_of(table) == FIRST


@pytest.mark.core
@pytest.mark.parametrize("call", list(CALLS))
def test_a_comment_may_end_what_is_said(spark, tmp_path, call):
    table = create(spark, tmp_path, partition_by=["dt"])
    table.upsert(frame(spark, *FIRST))
    said = "DBT_INTERNAL_DEST.dt = 'a'" if call in ("match", "merge") else "dt = 'a'"
    CALLS[call](
        table,
        "ts + 1 -- later" if call == "value" else f"{said} -- only these",
        frame(spark, (1, 20, "a", "new")),
    )
    assert (3, 10, "b", "three") in rows_of(table)
