"""Archived commits count by a younger one on the active timeline; nothing takes that away, and no clone goes without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.archive_files import (
    EntryKey,
    archive_file_path,
    entry_key,
    list_archive_files,
    read_archive_log,
)
from hudi_engine.table.clone import clone_table
from hudi_engine.table.services import archive, drop_savepoint, finish_archive
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState

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


def test_the_last_commit_by_which_archived_ones_count_is_not_saved(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 6, 1)
    archive_to(storage, 2)
    with pytest.raises(
        TimelineError, match=f"{instants[5]} cannot be saved.*{instants[4]} the newest.*Write once"
    ):
        mini.savepoint(storage)
    assert len(mini.content(storage)) == 6
    mini.write(storage, {"part=6": {"k": 6}})
    mini.savepoint(storage)
    assert len(mini.content(storage)) == 7


def test_archiving_leaves_the_newest_commit_without_a_savepoint(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 6, 1)
    archive_to(storage, 1)
    assert active(storage) == [instants[1], instants[5]]
    assert len(mini.content(storage)) == 6


def cloned(storage: Storage, at: str | None = None) -> Storage:
    return open_storage(clone_table(storage, f"{storage.base}_clone_{at}", at=at).path)


def test_a_clone_of_a_saved_commit_has_the_rows_of_the_archived_ones_before_it(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 9, 1, 4)
    archive_to(storage, 3)
    assert active(storage) == [instants[1], instants[4], instants[8]]
    clone = cloned(storage, instants[4])
    rows = {(f"part={number}", "k"): number for number in range(5)}
    assert mini.content(clone) == rows == mini.content(storage, as_of=instants[4])
    timeline = TableState.load(clone).timeline
    assert [each.requested_time for each in timeline.savepoints] == active(clone) == [instants[4]]
    assert [each.requested_time for each in timeline.archived.instants] == [instants[n] for n in (0, 2, 3)]
    drop_savepoint(clone, mini.options(), instants[4])
    assert mini.content(clone) == rows
    mini.write(clone, {"part=9": {"k": 9}})
    assert mini.content(clone) == {**rows, ("part=9", "k"): 9} and mini.leftovers(clone) == []
    whole = cloned(storage)
    assert active(whole) == active(storage) and mini.content(whole) == mini.content(storage)


def test_what_a_saved_commit_replaced_stays_out_of_a_clone_that_it_stays_out_of(tmp_path: Path) -> None:
    storage, _ = made(tmp_path / "t", 1, 0)
    mini.write(storage, {"part=0": {"k": 10}}, "INSERT_OVERWRITE")
    mini.savepoint(storage)
    mini.write(storage, {"part=1": {"k": 1}})
    last = mini.write(storage, {"part=2": {"k": 2}})
    mini.savepoint(storage)
    for number in range(3, 6):
        mini.write(storage, {f"part={number}": {"k": number}})
    archive_to(storage, 4)
    assert len(active(storage)) == 4
    clone = cloned(storage, last)
    assert active(clone) == [last]
    assert mini.content(clone) == {("part=0", "k"): 10, ("part=1", "k"): 1, ("part=2", "k"): 2}


def test_a_commit_that_is_archived_between_saved_ones_is_not_cloned(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 9, 1, 4)
    archive_to(storage, 3)
    with pytest.raises(TimelineError, match=f"{instants[3]}, which is archived"):
        cloned(storage, instants[3])
    assert [each.name for each in tmp_path.iterdir()] == ["t"]


def test_the_only_commit_stays_when_its_savepoint_goes_whatever_the_archive_says(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 6, 1)
    archive_to(storage, 2)
    clone = cloned(storage, instants[1])
    rows = {("part=0", "k"): 0, ("part=1", "k"): 1}
    assert mini.content(clone) == rows
    (archived,) = storage.list(".hoodie/archived")
    clone.replace(archived.path, storage.read(archived.path))
    drop_savepoint(clone, mini.options(), instants[1])
    assert mini.content(clone) == rows and active(clone) == [instants[1]]


@pytest.mark.parametrize("order", [(3, 5), (5, 3)])
def test_savepoints_that_archiving_has_passed_go_in_any_order_and_archived_commits_stay(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    storage, instants = made(tmp_path / "t", 10, *order)
    archive_to(storage, 4)
    assert active(storage) == [*(instants[number] for number in sorted(order)), *instants[8:]]
    rows = mini.content(storage)
    for number in order:
        drop_savepoint(storage, mini.options(), instants[number])
        assert mini.content(storage) == rows
    assert active(storage) == instants[8:] and mini.leftovers(storage) == []


def test_a_file_of_the_archive_without_entries_hides_none_of_the_older_ones(tmp_path: Path) -> None:
    storage, instants = made(tmp_path / "t", 6, 1)
    archive_to(storage, 3)
    rows = mini.content(storage)
    storage.create(archive_file_path(".hoodie/archived", 9), b"")
    drop_savepoint(storage, mini.options(), instants[1])
    assert mini.content(storage) == rows and active(storage) == instants[4:]


@pytest.mark.parametrize("newest", ["of a dropped savepoint", "without entries"])
def test_an_archiving_that_was_killed_is_finished_whatever_file_of_the_archive_is_the_newest(
    tmp_path: Path, newest: str
) -> None:
    storage, instants = made(tmp_path / "t", 6, 1)
    names = {each.path for each in storage.list(".hoodie") if not each.is_dir}
    bodies = {path: storage.read(path) for path in names}
    archive_to(storage, 3)
    for path, body in bodies.items():
        if any(each in path for each in instants[2:4]):
            storage.replace(path, body)
    assert active(storage) == instants[1:]
    if newest == "without entries":
        storage.create(archive_file_path(".hoodie/archived", 9), b"")
    else:
        drop_savepoint(storage, mini.options(), instants[1])
    finish_archive(storage, mini.options(), publication_of(storage))
    assert not {*active(storage)} & {*instants[2:4]} and len(mini.content(storage)) == 6
    entries = archive_entries(storage)
    assert len(entries) == len(set(entries))


def archive_entries(storage: Storage) -> list[EntryKey]:
    """What the files of the archive hold, each as often as it is there."""
    files = list_archive_files(storage, ".hoodie/archived")
    return [
        entry_key(entry) for file in files for entry in read_archive_log(storage.read(file.path), file.path)
    ]
