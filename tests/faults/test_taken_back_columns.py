"""The column ids of an ALTER TABLE that was taken back do not come back, whoever took it back and however long ago."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.schema_commits import load_schema_history, pass_history_on
from hudi_engine.table.clone import clone_table
from hudi_engine.table.state import TableState

import tests.faults.mini_table as mini
from tests.faults.test_archive_gaps import archive_to

FOLDER = ".hoodie/.schema"
_STEPS = (".requested", ".inflight", "")


def version(number: int | str, name: str) -> dict[str, object]:
    """One version of a table of one column."""
    column = {"id": 0, "name": name, "optional": True, "type": "string"}
    return {"max_column_id": 0, "version_id": int(number), "type": "record", "fields": [column]}


def tell(storage: Storage, instant: str, *versions: dict[str, object]) -> None:
    """Store the history of a commit as Hudi does."""
    for step in _STEPS:
        body = b"" if step else json.dumps({"schemas": versions}).encode()
        storage.replace(f"{FOLDER}/{instant}.schemacommit{step}", body)


def alter(storage: Storage, name: str) -> str:
    """Give the column another name with a commit; returns its instant."""
    instant = mini.write(storage, {"a": {"k": len(name)}})
    tell(storage, instant, version(instant, name), version(0, "born"))
    return instant


def told_of(storage: Storage) -> set[str]:
    """Return the instants of the stored histories."""
    return {each.name.partition(".")[0] for each in storage.list(FOLDER)}


def column(storage: Storage) -> str | None:
    """Return the name of the column by its newest version, None without ids."""
    history = load_schema_history(storage, TableState.load(storage).timeline)
    return None if history is None else history.newest().children[0].name


def archive_after(storage: Storage, count: int) -> None:
    """Archive all but the newest of so many more commits."""
    for number in range(count):
        mini.write(storage, {"a": {"k": number}})
    archive_to(storage, 1)


def by_rollback(storage: Storage, _: str) -> None:
    mini.rollback(storage)


def by_restore(storage: Storage, target: str) -> None:
    mini.write(storage, {"b": {"k": 1}})
    mini.restore(storage, target)


takes_back = pytest.mark.parametrize("take_back", [by_rollback, by_restore])


@takes_back
def test_the_history_of_a_commit_goes_with_it(
    tmp_path: Path, take_back: Callable[[Storage, str], None]
) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    kept = alter(storage, "kept")
    undone = alter(storage, "undone")
    assert column(storage) == "undone" and told_of(storage) == {kept, undone}
    take_back(storage, kept)
    assert column(storage) == "kept" and told_of(storage) == {kept}


@takes_back
def test_one_that_hudi_left_does_not_count_once_archiving_has_passed_it(
    tmp_path: Path, take_back: Callable[[Storage, str], None]
) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    first = mini.write(storage, {"a": {"k": 0}})
    undone = alter(storage, "undone")
    take_back(storage, first)
    tell(storage, undone, version(undone, "undone"), version(0, "born"))
    archive_after(storage, 2)
    timeline = TableState.load(storage).timeline
    assert undone < str(timeline.first_write_time)
    assert column(storage) is None


def test_one_whose_rollback_is_archived_too_does_not_count(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    mini.write(storage, {"a": {"k": 0}})
    undone = alter(storage, "undone")
    mini.rollback(storage)
    tell(storage, undone, version(undone, "undone"), version(0, "born"))
    for _ in range(2):
        mini.write(storage, {"b": {"k": 1}})
        mini.rollback(storage)
    archive_after(storage, 2)
    timeline = TableState.load(storage).timeline
    assert undone in timeline.archived.undone and undone not in timeline.undone_since()
    assert column(storage) is None


def test_an_archived_history_counts_whose_commit_stands(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    alter(storage, "kept")
    archive_after(storage, 3)
    assert column(storage) == "kept"


def test_a_version_that_was_taken_back_is_left_out_of_a_later_history_and_not_passed_on(
    tmp_path: Path,
) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    kept = alter(storage, "kept")
    undone = alter(storage, "undone")
    mini.rollback(storage)
    archive_after(storage, 3)
    timeline = TableState.load(storage).timeline
    later = str(timeline.first_write_time)
    tell(storage, later, version(undone, "undone"), version(kept, "kept"), version(0, "born"))
    assert undone < later and column(storage) == "kept"
    following = str(int(later) + 1)
    pass_history_on(storage, timeline, following)
    stored = json.loads(storage.read(f"{FOLDER}/{following}.schemacommit"))
    assert stored == {"schemas": [version(kept, "kept"), version(0, "born")]}


def test_a_clone_has_the_histories_of_its_own_commits_alone(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path / "t"))
    kept = alter(storage, "kept")
    later = alter(storage, "later")
    undone = alter(storage, "undone")
    mini.rollback(storage)
    tell(storage, undone, version(undone, "undone"), version(0, "born"))
    for at, expected in ((kept, {kept}), (None, {kept, later})):
        clone = open_storage(clone_table(storage, f"{storage.base}_{at}", at=at).path)
        assert told_of(clone) == expected
        archive_after(clone, 3)
        assert column(clone) == ("kept" if at else "later")
