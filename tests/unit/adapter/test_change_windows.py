"""The windows that models take of their inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.config.own_keys import CHECKPOINT
from hudi_engine.table.changes.checkpoint import WindowLimits
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import list_consumers

from dbt.adapters.hudi.changes.methods import _lost_state, keep_changes
from dbt.adapters.hudi.changes.window import ChangesArgs, next_input_window, window_after_gap
from dbt.adapters.hudi.model.plan import Places, resolve_plan
from dbt.adapters.hudi.run import OF_A_SAMPLE, Feed
from tests.helpers.handmade import HandmadeTable
from tests.unit.services.tables import DAY_1, GROUP_1, SCHEMA, batch, options

ONE_COMMIT = ChangesArgs(limits=WindowLimits(max_commits=1))


def made(path: Path) -> tuple[HandmadeTable, list[str]]:
    table = HandmadeTable(path, SCHEMA, ("day",))
    return table, [table.commit({DAY_1: {GROUP_1: batch({"a": number}, DAY_1)}}) for number in range(4)]


def test_a_limited_window_does_not_go_back_before_what_the_model_had(tmp_path: Path) -> None:
    table, done = made(tmp_path / "t")
    state, feed = TableState.load(table.storage), Feed({"s.t": done[1]}, frozenset({"s.t"}))
    meant = next_input_window(state, feed, "s.t", False, ONE_COMMIT)
    assert (meant.since, meant.end) == (done[1], done[2])
    bridged = window_after_gap(state, feed, "s.t", meant, ONE_COMMIT)
    assert (bridged.since, bridged.end, bridged.is_early) == (None, done[2], False)


def test_of_a_table_that_says_nothing_a_first_run_begins(tmp_path: Path) -> None:
    table, done = made(tmp_path / "t")
    state, feed = TableState.load(table.storage), Feed({"s.t": OF_A_SAMPLE}, frozenset({"s.t"}))
    bridged = window_after_gap(state, feed, "s.t", None, ONE_COMMIT)
    assert (bridged.since, bridged.end, bridged.is_early) == (None, done[0], False)


@pytest.mark.parametrize("noted", [OF_A_SAMPLE, None])
def test_nothing_is_kept_since_a_sample(tmp_path: Path, noted: str | None) -> None:
    table, done = made(tmp_path / "t")
    state = TableState.load(table.storage)
    taken = next_input_window(state, Feed({"s.t": OF_A_SAMPLE}), "s.t", True, ChangesArgs())
    keep_changes(state, "s.m", taken, noted, 1.0)
    assert [each.instant for each in list_consumers(table.storage)] == [done[-1]]


def test_an_input_that_was_taken_to_its_end_and_archived_does_not_stop_another(tmp_path: Path) -> None:
    (fixed, done), (other, new) = made(tmp_path / "fixed"), made(tmp_path / "other")
    state = TableState.load(fixed.storage)
    archive_instants(state, state.timeline.completed_writes[:2], options())
    feed = Feed({"s.fixed": done[1], "s.other": new[0]}, frozenset({"s.fixed", "s.other"}))
    for name, table, args in (
        ("s.fixed", fixed, ChangesArgs(end=done[1])),
        ("s.other", other, ChangesArgs()),
    ):
        feed.inputs[name] = next_input_window(TableState.load(table.storage), feed, name, False, args)
    assert not feed.brings_nothing and not feed.inputs["s.fixed"].is_early
    node = {"config": {"materialized": "incremental", "unique_key": "id"}}
    plan = feed.noted_in(
        resolve_plan(node, "s", "m", Places(str(tmp_path), str(tmp_path)), ()), rebuilds=False
    )
    assert json.loads(plan.given_options[CHECKPOINT]) == {"s.fixed": done[1], "s.other": new[-1]}


def test_lost_latest_state_asks_for_another_run() -> None:
    error = _lost_state("/t", TimelineError("files were removed"))
    assert "cannot be read any more" in str(error) and "Start the run again. (files were removed)" in str(
        error
    )
