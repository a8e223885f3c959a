"""The window of a reader that has passed the end it is given, wherever that end lies by now."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.table.changes.checkpoint import NextWindow, next_window
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable, file_id
from tests.unit.services.tables import DAY_1, SCHEMA, batch, options


@pytest.mark.parametrize("archived", [0, 1, 2, 3])
def test_a_reader_that_has_passed_its_end_stays_where_it_is(tmp_path: Path, archived: int) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("day",))
    done = [table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}}) for name in "abcd"]
    state = TableState.load(table.storage)
    if archived:
        archive_instants(state, state.timeline.completed_writes[:archived], options())
        state = TableState.load(table.storage)
    for end in done[:2]:
        assert next_window(state, done[1], end=end) == NextWindow(done[1], 0), end
    assert next_window(state, done[0], end=done[1]).end == done[1], "there is one to take"
