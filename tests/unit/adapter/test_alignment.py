"""Which columns of a query an incremental run writes."""

from __future__ import annotations

from dbt.adapters.hudi.rows.alignment import chosen_columns, legal_names, told_of_dropped


def test_columns_are_found_whatever_their_case_and_those_that_are_absent_are_told() -> None:
    assert chosen_columns(["ID", "new"], ["id", "gone"]) == (["`id`"], ["gone"])


def test_the_mark_of_deleted_rows_is_written_though_it_is_no_column_of_the_model() -> None:
    assert chosen_columns(["id", "_hoodie_is_deleted"], ["id"]) == (["`id`", "`_hoodie_is_deleted`"], [])


def test_a_column_left_out_for_its_name_is_told_with_a_name_that_stays() -> None:
    told = told_of_dropped(["_hoodie_commit_time"])
    assert told.startswith("_hoodie_commit_time not written")
    assert told.endswith("_hoodie_commit_time as commit_time")


def test_no_choice_means_all() -> None:
    assert chosen_columns(["id", "a`b"], []) == (["`id`", "`a``b`"], [])


def test_names_that_a_table_cannot_have_are_made_legal_and_the_others_stay() -> None:
    given = ["id", "count(1)", "1st", "ID", "a b", "a_b", "id_2"]
    assert legal_names(given) == ["id", "count_1_", "_1st", "ID_3", "a_b_2", "a_b", "id_2"]
    assert legal_names(["sum(x)", "sum[x]", "é"]) == ["sum_x_", "sum_x_2", "_"]
