"""Which side the clauses of a merge see: that of the rows they are about."""

from __future__ import annotations

import pytest
from hudi_engine import ConfigError
from hudi_engine.spark.write.rows.clauses import MergeClauses

from tests.helpers.forms import in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.spark.merges import BATCH, STORED, frame, make

pytestmark = pytest.mark.sampled

# Clauses that name the side that their rows do not have, and what of it is said.
WRONG_SIDES = {
    "value by source": (
        MergeClauses(
            by_source={"n": "DBT_INTERNAL_SOURCE.n"}, called={"by_source": "not_matched_by_source_action"}
        ),
        r"not_matched_by_source_action sets n to 'DBT_INTERNAL_SOURCE.n', which refers to DBT_INTERNAL_SOURCE.n, a column of the "
        r"source. .* use columns of the table only, as DBT_INTERNAL_DEST.column",
    ),
    "condition by source": (
        MergeClauses(by_source="delete", by_source_condition="s.n is null", source="s", target="t"),
        "by_source_condition 's.n is null' refers to s.n, a column of the source. .* use columns of the table only, as t.column",
    ),
    "condition of new rows": (
        MergeClauses(not_matched_condition="t.n is not null", source="s", target="t"),
        "not_matched_condition 't.n is not null' refers to t.n, a column of the table. .* of the source only, as s.column",
    ),
}


@pytest.mark.parametrize(("name", "kind"), in_turn(tuple(WRONG_SIDES), ("cow", "mor")))
def test_a_clause_that_names_the_side_its_rows_do_not_have_is_refused_and_nothing_is_written(
    spark, tmp_path, name, kind
):
    clauses, message = WRONG_SIDES[name]
    table = make(spark, tmp_path / "t", "cow" if kind == "cow" else "mor-bucket")
    table.upsert(frame(spark, STORED))
    with pytest.raises(ConfigError, match=message):
        table.merge(frame(spark, BATCH), clauses)
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == STORED


def test_new_rows_of_an_empty_table_have_no_columns_of_the_table_either(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    clauses = MergeClauses(
        matched_condition="DBT_INTERNAL_DEST.n > 1", not_matched_condition="DBT_INTERNAL_DEST.n is null"
    )
    with pytest.raises(
        ConfigError, match="^not_matched_condition .* refers to DBT_INTERNAL_DEST.n, a column of the table"
    ):
        table.merge(frame(spark, BATCH), clauses)


@pytest.mark.parametrize("shape", ["cow", "mor-bucket"])
def test_names_without_a_qualifier_are_those_of_the_side_that_a_row_has(spark, tmp_path, shape):
    table = make(spark, tmp_path / "t", shape)
    table.upsert(frame(spark, STORED))
    clauses = MergeClauses(
        not_matched_condition="n > 500",
        by_source={"n": "n + 1", "dt": "upper(dt)"},
        by_source_condition="n > 10 and DBT_INTERNAL_DEST.dt = 'b'",
    )
    table.merge(frame(spark, BATCH), clauses)
    expected = [STORED[0], *BATCH[:2], (4, 41, "B"), BATCH[3]]
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == expected


def test_a_name_that_both_sides_have_stays_ambiguous_in_matched_rows(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    table.upsert(frame(spark, STORED))
    with pytest.raises(ConfigError, match="matched_condition 'n > 5' cannot be resolved: .*AMBIGUOUS"):
        table.merge(frame(spark, BATCH), MergeClauses(matched_condition="n > 5"))


def test_a_clause_is_only_evaluated_on_the_rows_that_it_is_about(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    table.upsert(frame(spark, [(1, 10, "a"), (2, 0, "a"), (3, 0, "a")]))
    clauses = MergeClauses(
        matched_condition="false",
        not_matched_condition="assert_true(n <> 0) is null and 10 / n = 1",
        by_source={"n": "100 / n"},
        by_source_condition="n <> 0",
    )
    table.merge(frame(spark, [(2, 0, "a"), (3, 0, "a"), (5, 10, "b")]), clauses)
    assert rows_by_hudi_rs(table.path, ["id", "n", "dt"]) == [
        (1, 10, "a"),
        (2, 0, "a"),
        (3, 0, "a"),
        (5, 10, "b"),
    ]


@pytest.mark.parametrize("predicate", [False, True])
def test_no_name_of_the_engines_own_is_suggested(spark, tmp_path, predicate):
    table = make(spark, tmp_path / "t")
    table.upsert(frame(spark, STORED))
    with pytest.raises(ConfigError, match="'nope = 1' cannot be resolved: .*UNRESOLVED_COLUMN") as raised:
        if predicate:
            table.upsert(frame(spark, BATCH), match_condition="nope = 1")
        else:
            table.merge(frame(spark, BATCH), MergeClauses(matched_condition="nope = 1"))
    assert "__hudi" not in str(raised.value)


def test_a_clause_that_sets_an_unknown_column_or_the_key_is_named(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    called = {"update_set": "merge_update_set_expressions", "by_source": "not_matched_by_source_action"}
    clauses = MergeClauses(update_set={"nope": "1"}, by_source={"id": "2"}, called=called)
    with pytest.raises(ConfigError) as raised:
        table.merge(frame(spark, BATCH), clauses)
    assert "merge_update_set_expressions names 'nope': column 'nope' is not in the table" in str(raised.value)
    assert "not_matched_by_source_action names 'id': column 'id' is part of the record key" in str(
        raised.value
    )
