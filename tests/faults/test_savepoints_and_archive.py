"""A savepoint goes by no more of the archive than tells whether archiving has passed it, and no archived commit is lost by that."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.archive_files import list_archive_files
from hudi_engine.table.services import drop_savepoint, finish_archive
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState

import tests.faults.mini_table as mini
from tests.faults.test_archive_gaps import active, archive_entries, archive_to, made


def reads_of_archive(storage: Storage, monkeypatch: pytest.MonkeyPatch, saved: str) -> list[str]:
    """Drop a savepoint, and return the files of the archive that were read for it."""
    read, found = LocalStorage.read, list[str]()

    def counted(place: LocalStorage, path: str) -> bytes:
        found.extend([path] if "/archived/" in path else [])
        return read(place, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "read", counted)
        drop_savepoint(storage, mini.options(), saved)
    return found


def archived_often(path: Path, saved: int) -> tuple[Storage, list[str], list[str]]:
    """A table of twelve commits in whose archive are several files; returns the instants, and the files, oldest first."""
    storage, instants = made(path, 12, saved)
    for keep in (8, 6, 4):
        archive_to(storage, keep)
    files = [each.path for each in list_archive_files(storage, ".hoodie/archived")]
    assert len(files) == 3
    return storage, instants, files


def test_a_savepoint_that_archiving_has_not_come_to_goes_by_a_look_at_the_newest_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, instants, files = archived_often(tmp_path / "t", 10)
    storage.replace(files[0], storage.read(files[0]).replace(b'"name"', b'"nome"'))
    with pytest.raises(CorruptTableError):
        archive_entries(storage)
    assert reads_of_archive(storage, monkeypatch, instants[10]) == files[-1:]
    assert instants[10] in active(storage) and not TableState.load(storage).timeline.savepoints


@pytest.mark.parametrize("number", [1, 3])
def test_a_savepoint_goes_with_its_commit_where_an_archiving_that_was_killed_has_passed_it(
    tmp_path: Path, number: int
) -> None:
    storage, instants = made(tmp_path / "t", 7, number)
    bodies = {each.path: storage.read(each.path) for each in storage.list(".hoodie") if not each.is_dir}
    archive_to(storage, 3)
    for path, body in bodies.items():
        if not storage.exists(path):
            storage.create(path, body)
    assert active(storage) == instants
    drop_savepoint(storage, mini.options(), instants[number])
    finish_archive(storage, mini.options(), publication_of(storage))
    assert active(storage) == instants[5:] and len(mini.content(storage)) == 7
