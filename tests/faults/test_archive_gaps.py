"""Archived commits count by a younger one on the active timeline; nothing takes that away."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.services import archive, drop_savepoint
from hudi_engine.storage.base import Storage
from hudi_engine.table_state import TableState

import tests.faults.mini_table as mini


def made(path: Path, count: int, *saved: int) -> tuple[Storage, list[str]]:
    """A table of as many commits, each with a partition of its own, some of them saved; returns their instants."""
    storage = mini.create_table(str(path))
    instants = []
    for number in range(count):
        instants.append(mini.write(storage, {f"part={number}": {"k": number}}))
        if number in saved:
            mini.savepoint(storage)
    return storage, instants


def archive_to(storage: Storage, keep: int) -> None:
    """Archive all but so many commits, and those that are saved."""
    limits = {"hoodie__keep__min__commits": keep, "hoodie__keep__max__commits": keep + 1}
    policy = {"hoodie__clean__policy": "KEEP_LATEST_FILE_VERSIONS"}
    archive(storage, mini.options(**limits, **policy, hoodie__archive__beyond__savepoint="true"))


def active(storage: Storage) -> list[str]:
    return [each.requested_time for each in TableState.load(storage).timeline.completed_writes]


def test_the_last_active_commit_before_archived_ones_is_not_rolled_back(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 4)
    archive_to(storage, 1)
    assert active(storage) == instants[3:]
    rows = mini.content(storage)
    with pytest.raises(TimelineError, match=f"{instants[2]} the newest of them.*with a write instead"):
        mini.rollback(storage)
    assert mini.content(storage) == rows and len(rows) == 4
    mini.write(storage, {"part=4": {"k": 4}})
    mini.rollback(storage)
    assert mini.content(storage) == rows


def test_a_commit_above_a_savepoint_that_archiving_left_behind_is_not_rolled_back(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 6, 1)
    archive_to(storage, 2)
    assert active(storage) == [instants[1], instants[5]]
    with pytest.raises(TimelineError, match=f"{instants[4]} the newest of them.*with a write instead"):
        mini.rollback(storage)
    assert len(mini.content(storage)) == 6


def test_a_restore_that_would_leave_saved_commits_around_archived_ones_is_refused(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 7, 1, 5)
    archive_to(storage, 3)
    assert active(storage) == [instants[1], instants[5], instants[6]]
    with pytest.raises(
        TimelineError, match=f"Delete the savepoints of commits before it first: {instants[1]}"
    ):
        mini.restore(storage, instants[5])
    with pytest.raises(TimelineError, match="Delete the savepoints"):
        mini.rollback(storage)
    assert len(mini.content(storage)) == 7
    drop_savepoint(storage, mini.options(), instants[1])
    mini.restore(storage, instants[5])
    assert len(mini.content(storage)) == 6
