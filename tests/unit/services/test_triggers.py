"""When inline compaction is due."""

from __future__ import annotations

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table.services.compaction.plan import compaction_due, since_last_compaction

from tests.unit.services.tables import options

CONFIG = TableConfig.from_properties(
    {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "6"}
)


def timeline(*events: str) -> Timeline:
    """Build a timeline of ``<second> <action>``; an action with ``?`` is only requested."""
    instants = []
    for event in events:
        second, action = event.split()
        state = State.REQUESTED if action.endswith("?") else State.COMPLETED
        instants.append(Instant(f"202601010000{second}000", action.rstrip("?"), state))
    return Timeline(LocalStorage("/nowhere"), CONFIG, instants)


def due(
    found: Timeline, trigger: str, now: str = "20260101000059000", commits: int = 3, seconds: int = 30
) -> bool:
    chosen = options(
        compact__inline__trigger__strategy=trigger,
        compact__inline__max__delta__commits=commits,
        compact__inline__max__delta__seconds=seconds,
    )
    return compaction_due(found, chosen, now)


def test_delta_commits_count_from_the_last_completed_compaction() -> None:
    found = timeline("01 deltacommit", "02 deltacommit", "03 commit", "04 deltacommit", "05 deltacommit?")
    assert since_last_compaction(found).count == 1
    assert since_last_compaction(found).since == "20260101000003000"


def test_num_commits_fires_at_the_number() -> None:
    events = ["01 deltacommit", "02 deltacommit"]
    assert not due(timeline(*events), "NUM_COMMITS")
    assert due(timeline(*events, "03 deltacommit"), "NUM_COMMITS")


def test_after_a_request_only_one_of_the_two_counts_goes_on() -> None:
    events = ["01 deltacommit", "02 deltacommit", "03 deltacommit", "04 compaction?", "05 deltacommit"]
    assert due(timeline(*events), "NUM_COMMITS")
    assert not due(timeline(*events), "NUM_COMMITS_AFTER_LAST_REQUEST")


@pytest.mark.parametrize(("now", "fires"), [("20260101000030000", False), ("20260101000031000", True)])
def test_time_elapsed_measures_from_the_first_delta_commit(now: str, fires: bool) -> None:
    assert due(timeline("01 deltacommit"), "TIME_ELAPSED", now) is fires


def test_time_without_a_delta_commit_never_fires() -> None:
    assert not due(timeline("01 deltacommit", "02 commit"), "TIME_ELAPSED")
    assert not due(timeline(), "NUM_OR_TIME")


@pytest.mark.parametrize(
    ("commits", "seconds", "both", "either"),
    [(1, 30, True, True), (9, 30, False, True), (1, 3600, False, True), (9, 3600, False, False)],
)
def test_and_needs_both_or_needs_one(commits: int, seconds: int, both: bool, either: bool) -> None:
    found = timeline("01 deltacommit")
    assert due(found, "NUM_AND_TIME", commits=commits, seconds=seconds) is both
    assert due(found, "NUM_OR_TIME", commits=commits, seconds=seconds) is either
