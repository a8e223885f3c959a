"""All rows of a state as inserts: none is left out because a clean took its file while the files were listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.table.changes.gaps import CleanedFiles
from hudi_engine.table.changes.touched import slices_of_whole
from hudi_engine.table.changes.window import Window, state_at
from hudi_engine.table.services import clean
from hudi_engine.table.state import TableState

from tests.unit.services.tables import DAY_1, GROUP_1, batch, copy_on_write, options


def test_a_state_whose_files_a_clean_took_before_they_were_listed_is_refused(tmp_path: Path) -> None:
    table = copy_on_write(tmp_path / "t", 2)
    state = TableState.load(table.storage)
    point = state_at(state, None)
    for number in (3, 4):
        table.commit({DAY_1: {GROUP_1: batch({"a": number}, DAY_1)}})
    (listed,) = slices_of_whole(state, point)
    assert listed.base_instant == point.newest, "writes alone take nothing"

    clean(table.storage, options(), retain_commits=1)

    with pytest.raises(TimelineError, match="was cleaned, .* before its files were listed.*Read again"):
        slices_of_whole(state, point)
    now = TableState.load(table.storage)
    assert len(slices_of_whole(now, state_at(now, None))) == 1


def test_a_clean_that_is_archived_while_it_is_looked_at_asks_for_another_look(tmp_path: Path) -> None:
    table = copy_on_write(tmp_path / "t", 4)
    clean(table.storage, options(), retain_commits=1)
    state = TableState.load(table.storage)
    start = state.timeline.completed_writes[0].requested_time
    (done,) = Path(table.storage.base, ".hoodie").glob("*.clean")
    done.unlink()
    with pytest.raises(TimelineError, match="clean .* left the timeline .* after it was listed"):
        CleanedFiles(state, Window(start, None, ()), start)
