"""A service that is killed at any mutating storage call changes no row, and the next run finishes the work.

Each test runs one service as often as it has mutating calls, times three: killed before the call, after it,
and in the middle of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services import (
    Workers,
    clean,
    run_after_commit,
    run_clustering,
    run_compaction,
    schedule_clustering,
    schedule_compaction,
    show_clusterings,
)
from hudi_engine.table.snapshot.manifest import live_manifest_files, publish
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.txn.recovery import rollback_write

from tests.faults.mini_table import leftovers
from tests.faults.scenarios import copy_of, killed, recover_now
from tests.helpers.fault import FaultInjectingStorage, FaultPlan
from tests.helpers.forms import forms, in_turn, named
from tests.unit.services import tables
from tests.unit.services.tables import MERGED, data_files, options, rows


def one_by_one(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run the tasks in order, so that calls have the same numbers in every run."""
    return [function(item) for item in items]


def compacted_and_changed(path: Path) -> LocalStorage:
    """A table whose first slices are obsolete: compacted, and changed again."""
    table = tables.merge_on_read(path)
    instant = str(run_compaction(table.storage, options()).instant)
    tables.update(table, {(tables.DAY_1, tables.GROUP_1): {"a": 10}}, instant, instant=str(int(instant) + 1))
    return LocalStorage(str(path))


def planned(path: Path) -> LocalStorage:
    """A table with a planned compaction."""
    table = tables.merge_on_read(path)
    schedule_compaction(table.storage, options())
    return LocalStorage(str(path))


def with_logs(path: Path) -> LocalStorage:
    """A table with logs."""
    return LocalStorage(str(tables.merge_on_read(path).path))


@dataclass(frozen=True)
class Case:
    """A service to kill.

    Args:
        prepare: Makes the table.
        act: The service.
        after: Number of data files once it is done.
    """

    name: str
    prepare: Callable[[Path], LocalStorage]
    act: Callable[[Storage], object]
    after: int


def with_planned_clustering(path: Path) -> LocalStorage:
    """A table with a planned clustering."""
    table = tables.merge_on_read(path)
    schedule_clustering(table.storage, CLUSTERED)
    return LocalStorage(str(table.path))


def roll_back_plans(storage: Storage) -> object:
    """Roll back the clusterings that are planned; the next writer finishes a rollback that was killed."""
    for each in show_clusterings(storage):
        if each.state != "COMPLETED":
            with suppress(TimelineError):
                rollback_write(storage, options(), publication_of(storage), each.instant)
    return None


def cluster_once(storage: Storage) -> object:
    """Cluster a table, unless that is done."""
    if any(each.state == "COMPLETED" for each in show_clusterings(storage)):
        return None
    return run_clustering(storage, CLUSTERED, workers=Workers(one_by_one))


CLUSTERED = options(clustering__plan__strategy__sort__columns="qty")
INLINE = options(
    compact__inline="true",
    compact__inline__max__delta__commits=1,
    clean__policy="KEEP_LATEST_FILE_VERSIONS",
    clean__fileversions__retained=1,
)
PLANS = ("compaction.requested", "replacecommit.requested")
CASES = [
    Case("schedule", with_logs, lambda storage: schedule_compaction(storage, options()), 6),
    Case(
        "compaction", with_logs, lambda storage: run_compaction(storage, options(), run_tasks=one_by_one), 8
    ),
    Case("planned", planned, lambda storage: run_compaction(storage, options(), run_tasks=one_by_one), 8),
    Case("plan clustering", with_logs, lambda storage: schedule_clustering(storage, CLUSTERED), 6),
    Case(
        "planned clustering",
        with_planned_clustering,
        cluster_once,
        8,
    ),
    Case("clustering taken back", with_planned_clustering, roll_back_plans, 6),
    Case("clean", compacted_and_changed, lambda storage: clean(storage, options(), retain_commits=1), 4),
    Case(
        "inline", with_logs, lambda storage: run_after_commit(storage, INLINE, workers=Workers(one_by_one)), 3
    ),
]


@pytest.mark.parametrize(("case", "when"), in_turn(CASES, ("before", "after", "torn")), ids=named)
def test_killed_anywhere_no_row_changes_and_the_next_run_ends_clean(
    case: Case, when: str, tmp_path: Path
) -> None:
    template = case.prepare(tmp_path / "template")
    counting = FaultInjectingStorage(copy_of(template, tmp_path))
    case.act(counting)
    assert len(data_files(counting)) == case.after
    for call, done in enumerate(counting.calls, 1):
        where = f"killed {when} call {call}: {done}"
        storage = copy_of(template, tmp_path)
        if not killed(storage, case.act, call, when):
            # The call was a create that found its file there: nothing happens in it, so nothing was killed.
            assert done[0] == "create", where
        assert rows(storage) == MERGED, where
        case.act(storage)
        assert rows(storage) == MERGED, where
        assert len(data_files(storage)) == case.after, where
        # Owner files of instants that are completed go with the next write.
        recover_now(storage)
        assert unexpected(storage) == [], where


def unexpected(storage: Storage) -> list[str]:
    """Return what is left beside plans; the owner file of one goes when it is run."""
    found = leftovers(storage)
    planned = {Path(each).name.partition(".")[0] for each in found if each.endswith(PLANS)}
    return [each for each in found if not each.endswith(PLANS) and Path(each).name not in planned]


def test_killed_in_the_second_run_too_the_third_ends_clean(tmp_path: Path) -> None:
    case = CASES[1]
    template = case.prepare(tmp_path / "template")
    counting = FaultInjectingStorage(copy_of(template, tmp_path))
    case.act(counting)
    for call in range(2, len(counting.calls), 3):
        storage = copy_of(template, tmp_path)
        killed(storage, case.act, call, "after")
        killed(storage, case.act, len(counting.calls) - call + 1, "torn")
        assert rows(storage) == MERGED
        case.act(storage)
        assert rows(storage, read_optimized=True) == MERGED, f"killed at {call}"
        assert len(data_files(storage)) == case.after


@pytest.mark.parametrize("case", forms(CASES[1:4], CASES[1:2]), ids=named)
def test_a_storage_that_fails_once_costs_no_row(case: Case, tmp_path: Path) -> None:
    template = case.prepare(tmp_path / "template")
    counting = FaultInjectingStorage(copy_of(template, tmp_path))
    case.act(counting)
    for call, done in enumerate(counting.calls, 1):
        storage = copy_of(template, tmp_path)
        try:
            case.act(FaultInjectingStorage(storage, FaultPlan(call, "error")))
        except Exception as error:  # noqa: BLE001
            assert "SimulatedCrash" not in type(error).__name__
        assert rows(storage) == MERGED, f"failed at {done}"
        case.act(storage)
        assert rows(storage) == MERGED, f"failed at {done}"
        assert len(data_files(storage)) == case.after, f"failed at {done}"


@pytest.mark.parametrize("when", forms(("after", "torn"), ("torn",)))
def test_a_clean_killed_anywhere_leaves_every_file_of_the_live_list(when: str, tmp_path: Path) -> None:
    clean_case = next(case for case in CASES if case.name == "clean")
    template = clean_case.prepare(tmp_path / "template")
    counting = FaultInjectingStorage(copy_of(template, tmp_path))
    publish(counting)
    before = len(counting.calls)
    clean_case.act(counting)
    for call, done in enumerate(counting.calls[before:], 1):
        storage = copy_of(template, tmp_path)
        publish(storage)
        killed(storage, clean_case.act, call, when)
        assert missing(storage) == [], f"killed {when} call {call}: {done}"
        clean_case.act(storage)
        assert missing(storage) == [], f"killed {when} call {call}: {done}"


def missing(storage: Storage) -> list[str]:
    """Return the files of the live list that are gone."""
    listed = live_manifest_files(storage)
    assert listed
    return [path for path in listed if not storage.exists(path)]
