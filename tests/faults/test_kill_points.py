"""A writer that is killed at any mutating storage call leaves the old or the new state, and the next one
cleans up.

Each test runs one scenario as often as it has mutating calls, times three: killed before the call, after it,
and in the middle of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.txn.recovery import recover

import tests.faults.mini_table as mini
from tests.faults.scenarios import MOR, SCENARIOS, Bench, Scenario, dead_writer, killed, recover_now
from tests.helpers.fault import FaultInjectingStorage
from tests.helpers.forms import forms, in_turn, named

MOMENTS = ("before", "after", "torn")
VERSIONS = (9, 6)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.mark.parametrize(("scenario", "when", "version"), in_turn(SCENARIOS, MOMENTS, VERSIONS), ids=named)
def test_killed_anywhere_the_table_is_old_or_new_and_the_next_writer_cleans_up(
    scenario: Scenario, when: str, version: int, tmp_path: Path
) -> None:
    bench = Bench(scenario, tmp_path, version)
    for call in range(1, len(bench.calls) + 1):
        where = f"killed {when} call {call}: {bench.calls[call - 1]}"
        storage = bench.copy()
        if not killed(storage, scenario.act, call, when):
            # The call was a create that found the file there: nothing comes after it, the next call is looked
            # at.
            assert when == "after" and bench.calls[call - 1][0] == "create", where
            continue
        seen = mini.content(storage)
        assert seen in (bench.old, bench.new), where
        settled = bench.next_write(storage)
        allowed = [seen, bench.new] if scenario.goes_on else [seen]
        assert settled in allowed, where
        assert mini.leftovers(storage) == [], where
        bench.drop(storage)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name", forms(("cow_upsert", "mor_upsert", "cow_overwrite_partition", "mor_abort"), ("mor_upsert",))
)
def test_after_a_kill_the_same_write_gives_what_it_would_have_given(
    name: str, version: int, tmp_path: Path
) -> None:
    scenario = BY_NAME[name]
    bench = Bench(scenario, tmp_path, version)
    for call in range(1, len(bench.calls) + 1, 2):
        storage = bench.copy()
        killed(storage, scenario.act, call, "before")
        scenario.act(storage)
        assert mini.content(storage) == bench.new, f"killed before call {call}: {bench.calls[call - 1]}"
        assert mini.leftovers(storage) == []
        bench.drop(storage)


@pytest.mark.parametrize("version", forms(VERSIONS, (9,)))
@pytest.mark.parametrize(
    "name", forms(("cow_upsert", "mor_upsert", "mor_rollback_of_commit"), ("mor_rollback_of_commit",))
)
def test_killed_again_in_the_recovery_the_table_is_old_or_new(
    name: str, version: int, tmp_path: Path
) -> None:
    scenario = BY_NAME[name]
    bench = Bench(scenario, tmp_path, version)
    for call in range(2, len(bench.calls) + 1, 3):
        again = 0
        while True:
            again += 1
            storage = bench.copy()
            killed(storage, scenario.act, call, "before")
            seen = mini.content(storage)
            went_on = killed(storage, recover_now, again, ("before", "after", "torn")[again % 3])
            where = f"killed before {bench.calls[call - 1]}, and in the recovery at call {again}"
            between = mini.content(storage)
            assert between == seen or (scenario.goes_on and between == bench.new), where
            settled = bench.next_write(storage)
            assert settled == between or (scenario.goes_on and settled == bench.new), where
            assert mini.leftovers(storage) == [], where
            bench.drop(storage)
            if not went_on:
                break


def recover_without_lock(storage: Storage) -> None:
    """Recover as if the lock were held, so that the calls of a run are those of the recovery alone."""
    recover(storage, TableConfig.load(storage), mini.options(), publication_of(storage))


def test_a_rollback_killed_three_times_at_the_same_call_still_ends_and_does_nothing_twice(
    tmp_path: Path,
) -> None:
    bench = Bench(Scenario("", MOR, dead_writer, recover_without_lock), tmp_path)
    reached = 0
    for call in range(1, len(bench.calls) + 1):
        storage = bench.copy()
        for _ in range(3):
            reached += killed(storage, recover_without_lock, call, "after")
            assert mini.content(storage) == bench.old
        recover_now(storage)
        where = f"killed after call {call}: {bench.calls[call - 1]}"
        assert mini.content(storage) == bench.old, where
        assert mini.leftovers(storage) == [], where
        command_blocks = [status.name for status in storage.list("a") if status.name.endswith("_1-0-1")]
        assert len(command_blocks) == 1, where
        bench.drop(storage)
    assert reached > len(bench.calls)


def test_a_recovery_of_a_clean_table_changes_nothing_but_the_lock(tmp_path: Path) -> None:
    storage = FaultInjectingStorage(mini.create_table(str(tmp_path)))
    mini.write(storage, {"a": {"k": 1}})
    storage.calls.clear()
    recover_now(storage)
    assert storage.calls == [("create", ".hoodie/lock"), ("delete", ".hoodie/lock")]
