"""Combining the rows of one batch, and the rows that delete."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.merge.delete_marker import delete_mask, ordering_values
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import AWS_DMS, DATA, DEFAULT, LATEST, NON_DEFAULTS, PARTIAL, config, row

OF_HUDI = {"hoodie.partition.metafile.use.base.format": "false"}
ROWS = st.builds(
    row,
    st.sampled_from("abc"),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(0, 9),
    st.none() | st.just("x"),
)


def _batch(rows: list[dict[str, Any]], **extra: list[Any]) -> pa.Table:
    table = pa.Table.from_pylist(rows, schema=DATA)
    table = table.add_column(0, "_hoodie_record_key", table.column("id"))
    for name, values in extra.items():
        table = table.append_column(name, pa.array(values))
    return table


@pytest.mark.parametrize("payload", [DEFAULT, LATEST, AWS_DMS], ids=["default", "latest", "dms"])
@settings(max_examples=100, deadline=None)
@given(st.lists(ROWS, max_size=10))
def test_the_greatest_ordering_value_wins_and_the_later_row_on_a_tie(
    payload: str, rows: list[dict[str, Any]]
) -> None:
    expected: dict[str, dict[str, Any]] = {}
    for each in rows:
        best = expected.get(each["id"])
        if best is None or (each["ts"] is not None and each["ts"] >= (best["ts"] or 0)) or best["ts"] is None:
            expected[each["id"]] = each

    combined = combine_batch(_batch(rows), config(payload))

    assert {found["id"]: found for found in combined.select(DATA.names).to_pylist()} == expected
    assert combined.num_rows == len(expected)


def test_rows_keep_their_order_and_other_columns_travel_along() -> None:
    batch = _batch(
        [row("b", 1, 1), row("a", 1, 1), row("b", 2, 2), row("c", 1)],
        __hudi_delete=[True, False, True, False],
    )

    combined = combine_batch(batch, config())

    assert combined.column("id").to_pylist() == ["a", "b", "c"]
    assert combined.column("__hudi_delete").to_pylist() == [False, True, False]
    assert combined.schema.equals(batch.schema)


def test_a_batch_without_duplicates_is_handed_back() -> None:
    batch = _batch([row("b"), row("a")])

    assert combine_batch(batch, config()) is batch


def test_without_the_ordering_column_the_later_row_wins() -> None:
    batch = _batch([row("a", 9, 1), row("a", 1, 2)]).drop_columns(["ts"])

    assert combine_batch(batch, config()).column("a").to_pylist() == [2]


def test_partial_modes_fill_the_winner_from_the_others() -> None:
    rows = [row("a", 1, 1, "x"), row("a", 3, None, "y"), row("a", 2, 7, None)]

    assert combine_batch(_batch(rows), config(PARTIAL)).select(DATA.names).to_pylist() == [
        row("a", 3, 1, "y")
    ]
    assert combine_batch(_batch(rows), config(NON_DEFAULTS)).select(DATA.names).to_pylist() == [
        row("a", 3, 7, "y")
    ]


def test_deletes_are_marked_by_flag_by_marker_and_by_operation() -> None:
    batch = _batch(
        [row("a"), row("b"), row("c"), row("d")],
        _hoodie_is_deleted=[True, None, False, False],
        kind=[None, "DEL", "x", None],
        _hoodie_operation=["I", None, "U", "D"],
    )
    marker = {"hoodie.payload.delete.field": "Kind", "hoodie.payload.delete.marker": "DEL"}

    assert delete_mask(batch, config(**marker)).to_pylist() == [True, True, False, True]
    assert delete_mask(batch.drop_columns(["_hoodie_is_deleted", "_hoodie_operation"]), config()) is None


@pytest.mark.parametrize(
    ("made_by", "deletes"),
    [({}, True), (OF_HUDI, False), ({**OF_HUDI, "hoodie.timeline.path": "timeline"}, True)],
)
def test_the_row_before_an_update_is_a_delete_but_for_release_0(
    made_by: dict[str, str], deletes: bool
) -> None:
    batch = _batch([row("a"), row("b")], _hoodie_operation=["-U", "U"])

    assert delete_mask(batch, config(**made_by)).to_pylist() == [deletes, False]


def test_a_marker_is_compared_as_text() -> None:
    marker = {"hoodie.payload.delete.field": "a", "hoodie.payload.delete.marker": "1"}

    assert delete_mask(_batch([row("a", a=1), row("b", a=2), row("c")]), config(**marker)).to_pylist() == [
        True,
        False,
        False,
    ]


def test_op_d_deletes_with_the_dms_payload_in_capital_and_small_letters() -> None:
    batch = _batch([row("a"), row("b"), row("c")], Op=["D", "I", "d"])

    assert delete_mask(batch, config(AWS_DMS)).to_pylist() == [True, False, True]
    assert delete_mask(batch, config()) is None


def test_a_marker_that_a_property_names_is_compared_exactly() -> None:
    batch = _batch([row("a"), row("b")], Op=["D", "d"])
    said = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
    kept = {f"hoodie.record.merge.property.{key}": value for key, value in said.items()}

    for properties in (said, kept):
        assert delete_mask(batch, config(**properties)).to_pylist() == [True, False]


def test_ordering_values_are_one_column_several_or_none() -> None:
    batch = _batch([row("a", 5, 6)])

    assert ordering_values(batch, config()).to_pylist() == [5]
    assert ordering_values(batch, config(hoodie__table__ordering__fields="ts,a")).to_pylist() == [
        {"ts": 5, "a": 6}
    ]
    assert ordering_values(batch, config(hoodie__table__ordering__fields="missing")) is None
