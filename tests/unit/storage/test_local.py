"""What only a POSIX file system promises: one winner, no torn files, no way out through links."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hudi_engine.errors import PathEscapeError, StorageError
from hudi_engine.format.storage.local import LocalStorage


def test_one_of_many_racing_creates_wins(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))

    def attempt(number: int) -> bool:
        try:
            storage.create("commit", str(number).encode() * 100)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(attempt, range(32)))

    assert won.count(True) == 1
    assert storage.read("commit") == str(won.index(True)).encode() * 100
    assert os.listdir(tmp_path) == ["commit"]


def test_a_failing_disk_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        storage.create("commit", b"rows")
    assert os.listdir(tmp_path) == []


def test_a_file_system_without_hard_links_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StorageError, match="no hard links"):
        LocalStorage(str(tmp_path)).create("commit", b"")
    assert os.listdir(tmp_path) == []


@pytest.fixture
def escape(tmp_path: Path) -> Path:
    """A table with a link ``out`` to a folder beside it that holds one file."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep me")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "out").symlink_to(outside)
    return outside


def test_nothing_is_changed_through_a_link_that_leads_out(tmp_path: Path, escape: Path) -> None:
    storage = LocalStorage(str(tmp_path / "table"))

    for call in (
        lambda: storage.delete("out/precious"),
        lambda: storage.create("out/new", b""),
        lambda: storage.replace("out/precious", b""),
        lambda: storage.rename("out/precious", "mine"),
        lambda: storage.delete_tree("out/precious"),
    ):
        with pytest.raises(PathEscapeError):
            call()
    assert (escape / "precious").read_text() == "keep me"
    assert os.listdir(escape) == ["precious"]


def test_deleting_a_linked_folder_removes_the_link_only(tmp_path: Path, escape: Path) -> None:
    LocalStorage(str(tmp_path / "table")).delete_tree("out")

    assert not (tmp_path / "table" / "out").is_symlink()
    assert (escape / "precious").exists()


def test_a_folder_goes_whole_while_others_delete_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(tmp_path))
    for number in range(8):
        storage.create(f"t/{number}/a", b"")
        storage.create(f"t/{number}/b", b"")
    gone: list[object] = []
    unlink, rmdir = os.unlink, os.rmdir

    def first_by_another(path: str, **more: int) -> None:
        if len(gone) < 3:
            gone.append(path)
            unlink(path, **more)
        unlink(path, **more)

    def folder_first_by_another(path: str, **more: int) -> None:
        if path == "3":
            rmdir(path, **more)
        rmdir(path, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", first_by_another)
        patched.setattr(os, "rmdir", folder_first_by_another)
        storage.delete_tree("t")

    assert len(gone) == 3
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_deleted_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create("t/a", b"")

    def refused(path: str, **_: int) -> None:
        raise PermissionError(errno.EACCES, "not permitted", path)

    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(PermissionError):
        storage.delete_tree("t")


def test_listing_does_not_walk_through_links(tmp_path: Path, escape: Path) -> None:
    listed = LocalStorage(str(tmp_path / "table")).list("", recursive=True)

    assert [status.path for status in listed] == ["out"]


def test_a_table_reached_through_a_link_is_a_table_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    storage = LocalStorage(str(tmp_path / "alias"))

    storage.create("dt=1/f", b"rows")

    assert (tmp_path / "real" / "dt=1" / "f").read_bytes() == b"rows"


def test_modification_times_are_epoch_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    os.utime(tmp_path / "f", ns=(0, 1_700_000_000_123_456_789))
    storage = LocalStorage(str(tmp_path))

    assert [status.modified_ms for status in storage.list("")] == [1_700_000_000_123]
    status = storage.stat("f")
    assert status is not None and status.modified_ms == 1_700_000_000_123


def test_a_new_folder_is_made_durable_in_the_folder_that_holds_it_and_no_folder_above_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    storage = LocalStorage(str(table))
    synced: list[str] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    storage.create("a/b/one", b"1")
    assert synced[:3] == [str(table / "a"), str(table), str(tmp_path)]
    assert synced[-1] == str(table / "a" / "b") and len(synced) == 5
    synced.clear()
    storage.create("a/c/marker", b"")
    assert synced == [str(table / "a"), str(table / "a" / "c")]
    synced.clear()
    storage.create("a/c/two", b"2")
    assert len(synced) == 2 and synced[-1] == str(table / "a" / "c")
