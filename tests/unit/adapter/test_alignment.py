"""Which columns of a query an incremental run writes."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.write.rows.casts import dropped_columns_warning

from dbt.adapters.hudi.rows.alignment import (
    chosen_columns,
    refuse_absent,
)


def test_columns_are_found_whatever_their_case_and_those_that_are_absent_are_told() -> None:
    assert chosen_columns(["ID", "new"], ["id", "gone"]) == (["`ID`"], ["gone"])


def test_the_mark_of_deleted_rows_is_written_though_it_is_no_column_of_the_model() -> None:
    assert chosen_columns(["id", "_hoodie_is_deleted"], ["id"]) == (["`id`", "`_hoodie_is_deleted`"], [])


def test_a_column_left_out_for_its_name_is_told_with_a_name_that_stays() -> None:
    told = dropped_columns_warning(["_hoodie_commit_time"])
    assert told.startswith("_hoodie_commit_time not written")
    assert told.endswith("_hoodie_commit_time as commit_time")


def test_a_renamed_column_is_told_by_both_names_with_what_each_mode_does() -> None:
    given = ["ID", "a2"]
    wanted, absent = chosen_columns(given, ["id", "a"])
    with pytest.raises(DbtRuntimeError) as told:
        refuse_absent("shop.orders", absent, given, wanted)
    assert (
        "no longer selects a of shop.orders, and selects a2, which it lacks (a column that was"
        in told.value.msg
    )
    assert "append_new_columns (the column stays, null in new rows)" in told.value.msg
    with pytest.raises(
        DbtRuntimeError, match="no longer selects a of shop.orders; on_schema_change is 'ignore'"
    ):
        refuse_absent("shop.orders", absent, ["id"], wanted)


def test_no_choice_means_all() -> None:
    assert chosen_columns(["id", "a`b"], []) == (["`id`", "`a``b`"], [])
