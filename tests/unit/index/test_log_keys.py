"""Which slices are read with their logs when keys are looked up."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.index.lookup.log_keys import with_log_keys
from hudi_engine.table_state import TableState

from tests.helpers.handmade import HandmadeTable

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int32())])


@pytest.mark.parametrize(
    ("group", "counts", "expected"),
    [
        ("g-0", {"num_writes": 1, "num_update_writes": 1}, False),
        ("g-0", {"num_deletes": 1}, False),
        ("g-0", {"num_writes": 2, "num_update_writes": 1, "num_inserts": 1}, True),
        ("g-0", {}, True),
        ("00000003-0", {"num_writes": 1, "num_update_writes": 1}, True),
    ],
    ids=["updates", "deletes", "inserts", "counts-nothing", "bucket-index"],
)
def test_a_log_that_may_hold_new_keys_is_read(
    tmp_path: Path, group: str, counts: dict[str, int], expected: bool
) -> None:
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    rows = pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)
    base = made.commit({"": {group: rows}})
    instant = made.next_instant()
    stat = made.append_log("", group, base, made.data_blocks("", group, rows, instant), instant)
    made.complete(instant, [dataclasses.replace(stat, **counts)])  # type: ignore[arg-type]
    state = TableState.load(made.storage)
    found = with_log_keys(state.timeline, state.view().latest_slices())
    assert found == (frozenset({("", group)}) if expected else frozenset())


def test_a_log_that_no_active_commit_names_is_read(tmp_path: Path) -> None:
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    rows = pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)
    base = made.commit({"": {"g-0": rows}})
    archived = made.next_instant()
    made.append_log("", "g-0", base, made.data_blocks("", "g-0", rows, archived), archived)
    made.commit({"": {"h-0": rows}})
    state = TableState.load(made.storage)
    assert with_log_keys(state.timeline, state.view().latest_slices()) == {("", "g-0")}
