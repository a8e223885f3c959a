"""Net changes without what overwrites did: the parts of a window between them make one change a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.table.changes.plan import plan_changes, steps_since
from hudi_engine.table.changes.window import ALL, NET
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable
from tests.unit.services.tables import DAY_1, DAY_2, GROUP_1, GROUP_2, GROUP_3, SCHEMA, batch

Told = list[tuple[str, str, int, str]]


def told(table: HandmadeTable, start: str, mode: str) -> Told:
    state = TableState.load(table.storage)
    schema = state.data_schema()
    assert schema is not None
    read = state.read_context(schema, resolve_options({}))
    steps, cleaned = steps_since(state, start, None, mode=mode, skip_insert_overwrite=True)
    rows = plan_changes(state, read, steps, cleaned, mode).rows().to_pylist()
    return sorted((row["id"], row["_change_type"], row["qty"], row["_commit_time"]) for row in rows)


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    return HandmadeTable(tmp_path / "t", SCHEMA, ("day",))


def test_a_key_that_changed_before_and_after_an_overwrite_is_told_once(table: HandmadeTable) -> None:
    start = table.commit(
        {
            DAY_1: {GROUP_1: batch({"gone": 1, "later": 1, "back": 1, "same": 1}, DAY_1)},
            DAY_2: {GROUP_2: batch({"other": 1}, DAY_2)},
        }
    )
    table.commit({DAY_1: {GROUP_1: batch({"gone": 2, "later": 1, "new": 2, "passing": 2, "same": 1}, DAY_1)}})
    table.commit(
        {DAY_2: {GROUP_3: batch({"other": 2}, DAY_2)}}, {DAY_2: [GROUP_2]}, operation="INSERT_OVERWRITE"
    )
    last = table.commit({DAY_1: {GROUP_1: batch({"later": 3, "new": 3, "back": 3, "same": 1}, DAY_1)}})
    assert told(table, start, NET) == [
        ("back", "update_after", 3, last),
        ("gone", "delete", 2, last),
        ("later", "update_after", 3, last),
        ("new", "insert", 3, last),
    ]
    assert [row[:2] for row in told(table, start, ALL) if row[0] in ("gone", "passing")] == [
        ("gone", "delete"),
        ("gone", "update_after"),
        ("gone", "update_before"),
        ("passing", "delete"),
        ("passing", "insert"),
    ]


def test_a_key_that_goes_to_another_file_group_meanwhile_is_told_once(table: HandmadeTable) -> None:
    start = table.commit({DAY_1: {GROUP_1: batch({"a": 1, "b": 1}, DAY_1)}})
    table.commit({DAY_1: {GROUP_1: batch({"b": 1}, DAY_1)}})
    table.commit({DAY_2: {GROUP_2: batch({"c": 2}, DAY_2)}}, {}, operation="INSERT_OVERWRITE")
    last = table.commit({DAY_1: {GROUP_3: batch({"a": 3}, DAY_1)}})
    assert told(table, start, NET) == [("a", "update_after", 3, last)]
