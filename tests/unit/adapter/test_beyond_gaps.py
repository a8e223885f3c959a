"""What a model takes of an input, and has kept of it, where the changes cannot be told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.table.changes.checkpoint import WindowLimits
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import list_consumers

from dbt.adapters.hudi.changes.asked import Asked
from dbt.adapters.hudi.changes.feed import OF_A_SAMPLE, Feed
from dbt.adapters.hudi.changes.noted import keep_changes
from dbt.adapters.hudi.changes.told import next_taken, taken_beyond_gap
from tests.unit.adapter.test_ends_of_two_inputs import made

ONE_COMMIT = Asked(limits=WindowLimits(max_commits=1))


def test_a_limited_window_does_not_go_back_before_what_the_model_had(tmp_path: Path) -> None:
    table, done = made(tmp_path / "t")
    state, feed = TableState.load(table.storage), Feed({"s.t": done[1]}, frozenset({"s.t"}))
    meant = next_taken(state, feed, "s.t", False, ONE_COMMIT)
    assert (meant.since, meant.end) == (done[1], done[2])
    bridged = taken_beyond_gap(state, feed, "s.t", meant, ONE_COMMIT)
    assert (bridged.since, bridged.end, bridged.is_early) == (None, done[2], False)


def test_of_a_table_that_says_nothing_a_first_run_begins(tmp_path: Path) -> None:
    table, done = made(tmp_path / "t")
    state, feed = TableState.load(table.storage), Feed({"s.t": OF_A_SAMPLE}, frozenset({"s.t"}))
    bridged = taken_beyond_gap(state, feed, "s.t", None, ONE_COMMIT)
    assert (bridged.since, bridged.end, bridged.is_early) == (None, done[0], False)


@pytest.mark.parametrize("noted", [OF_A_SAMPLE, None])
def test_nothing_is_kept_since_a_sample(tmp_path: Path, noted: str | None) -> None:
    table, done = made(tmp_path / "t")
    state = TableState.load(table.storage)
    taken = next_taken(state, Feed({"s.t": OF_A_SAMPLE}), "s.t", True, Asked())
    keep_changes(state, "s.m", taken, noted, 1.0)
    assert [each.instant for each in list_consumers(table.storage)] == [done[-1]]
