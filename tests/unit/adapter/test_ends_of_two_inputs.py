"""Models of several inputs that fix the end of one."""

from __future__ import annotations

import json
from pathlib import Path

from hudi_engine.format.config.other_keys import CHECKPOINT
from hudi_engine.table.services.archive.execute import archive_instants
from hudi_engine.table.state import TableState

from dbt.adapters.hudi.changes.asked import Asked
from dbt.adapters.hudi.changes.feed import Feed
from dbt.adapters.hudi.changes.told import next_taken
from dbt.adapters.hudi.model.plan import Places, resolve_plan
from tests.helpers.handmade import HandmadeTable
from tests.unit.services.tables import DAY_1, GROUP_1, SCHEMA, batch, options


def made(path: Path) -> tuple[HandmadeTable, list[str]]:
    table = HandmadeTable(path, SCHEMA, ("day",))
    return table, [table.commit({DAY_1: {GROUP_1: batch({"a": number}, DAY_1)}}) for number in range(4)]


def test_an_input_that_was_taken_to_its_end_and_archived_does_not_stop_another(tmp_path: Path) -> None:
    (fixed, done), (other, new) = made(tmp_path / "fixed"), made(tmp_path / "other")
    state = TableState.load(fixed.storage)
    archive_instants(state, state.timeline.completed_writes[:2], options())
    feed = Feed({"s.fixed": done[1], "s.other": new[0]}, frozenset({"s.fixed", "s.other"}))
    for name, table, wish in (("s.fixed", fixed, Asked(end=done[1])), ("s.other", other, Asked())):
        feed.inputs[name] = next_taken(TableState.load(table.storage), feed, name, False, wish)
    assert not feed.brings_nothing and not feed.inputs["s.fixed"].is_early
    node = {"config": {"materialized": "incremental", "unique_key": "id"}}
    plan = feed.noted_in(
        resolve_plan(node, "s", "m", Places(str(tmp_path), str(tmp_path)), ()), rebuilds=False
    )
    assert json.loads(plan.given_options[CHECKPOINT]) == {"s.fixed": done[1], "s.other": new[-1]}
