"""Swapping a rebuilt table into place, and what is found when that was killed half way."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest
from hudi_engine.errors import StorageError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.txn.owner import Owner
from hudi_engine.table.txn.swap import is_switched, recover_swap, side_folder, swap, table_storage


def table(folder, rows):
    (folder / ".hoodie").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text(rows)


def content(folder):
    return (folder / ".hoodie" / "hoodie.properties").read_text()


def old_and_new(folder):
    """The folder of a table and that of its successor beside it."""
    base = folder / "t"
    table(base, "old")
    side = side_folder(str(base))
    table(folder / side.rpartition("/")[2], "new")
    return base, side


def check_replaced(folder):
    """The new table has its place, and nothing else is there."""
    assert content(folder / "t") == "new"
    assert [entry.name for entry in folder.iterdir()] == ["t"]


def test_the_new_table_takes_the_place_and_the_old_one_goes(tmp_path):
    base, side = old_and_new(tmp_path)
    swap(str(base), side)
    check_replaced(tmp_path)


@pytest.fixture
def link(tmp_path):
    """A link to where a table will be."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "t").symlink_to(tmp_path / "disk" / "t")
    return tmp_path / "home" / "t"


def test_a_link_to_a_table_stays_and_leads_to_the_new_one(tmp_path, link):
    _, side = old_and_new(tmp_path / "disk")
    assert side_folder(str(link)).startswith(f"{tmp_path}/disk/.t.")
    swap(str(link), side)
    check_replaced(tmp_path / "disk")
    assert link.is_symlink() and content(link) == "new"
    assert os.listdir(link.parent) == ["t"]


def test_a_swap_through_a_link_that_was_cut_off_is_finished(tmp_path, link):
    table(tmp_path / "disk" / ".t.replaced-1", "old")
    table(tmp_path / "disk" / ".t.rebuild-1", "new")
    assert table_storage(str(link)).read(".hoodie/hoodie.properties") == b"new"
    assert link.is_symlink()
    check_replaced(tmp_path / "disk")


def test_a_link_that_an_earlier_release_put_aside_goes_and_not_what_it_leads_to(tmp_path, link):
    table(tmp_path / "disk" / "t", "old")
    link.rename(link.parent / ".t.replaced-1")
    table(link, "new")
    recover_swap(str(link))
    check_replaced(link.parent)
    assert content(tmp_path / "disk" / "t") == "old"


def test_killed_between_the_renames_the_new_table_takes_the_place(tmp_path):
    table(tmp_path / ".t.replaced-1", "old")
    table(tmp_path / ".t.rebuild-1", "new")
    recover_swap(str(tmp_path / "t"))
    check_replaced(tmp_path)


def test_without_a_complete_successor_the_old_table_comes_back(tmp_path):
    table(tmp_path / ".t.replaced-1", "old")
    (tmp_path / ".t.rebuild-1").mkdir()
    recover_swap(str(tmp_path / "t"))
    assert content(tmp_path / "t") == "old"


def test_a_table_that_is_removed_after_its_swap_does_not_come_back_as_the_old_one(tmp_path, monkeypatch):
    base, side = old_and_new(tmp_path)
    with monkeypatch.context() as killed:
        killed.setattr("hudi_engine.table.txn.swap.clear_after_swap", lambda *_: None)
        swap(str(base), side)
    assert content(base) == "new" and len(list(tmp_path.iterdir())) == 2
    shutil.rmtree(base)
    assert not table_storage(str(base)).exists(".hoodie/hoodie.properties")
    recover_swap(str(base))
    assert not base.exists()
    table(base, "built again")
    recover_swap(str(base))
    assert content(base) == "built again"
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("waits", [False, True], ids=["alone", "beside-a-writer"])
def test_a_swap_whose_renames_fail_both_ways_is_finished_by_the_next(tmp_path, monkeypatch, waits):
    base, side = old_and_new(tmp_path)
    real, calls = LocalStorage.rename, []

    def rename(storage, source, target):
        calls.append(source)
        if len(calls) > 1:
            if waits and not base.exists():
                LocalStorage(str(base)).create(".hoodie/lock", b"of a writer that waits")
            raise OSError("the disk is gone")
        real(storage, source, target)

    with monkeypatch.context() as failing:
        failing.setattr(LocalStorage, "rename", rename)
        with pytest.raises(OSError, match="the disk is gone"):
            swap(str(base), side)
        assert is_switched(str(base), side)
    assert table_storage(str(base)).exists(".hoodie/hoodie.properties")
    assert content(base) == "new"


def test_a_table_in_place_is_left_alone(tmp_path):
    table(tmp_path / "t", "current")
    table(tmp_path / ".t.rebuild-1", "being built")
    recover_swap(str(tmp_path / "t"))
    assert content(tmp_path / "t") == "current"
    assert (tmp_path / ".t.rebuild-1").exists()


def test_whoever_opens_a_table_between_the_renames_of_a_live_rebuild_finishes_it(tmp_path, monkeypatch):
    base, side = old_and_new(tmp_path)
    real, calls = LocalStorage.rename, []

    def rename(storage, source, target):
        calls.append(source)
        if len(calls) == 2:
            table_storage(str(base))
        real(storage, source, target)

    monkeypatch.setattr(LocalStorage, "rename", rename)
    swap(str(base), side)
    check_replaced(tmp_path)


def test_what_a_writer_of_the_old_table_makes_between_the_renames_keeps_nobody_out(tmp_path, monkeypatch):
    base, side = old_and_new(tmp_path)
    real, made = LocalStorage.rename, []

    def rename(storage, source, target):
        if target == "t" and not made:
            made.append(source)
            LocalStorage(str(base)).create(".hoodie/lock", b"of a writer that waits")
        real(storage, source, target)

    monkeypatch.setattr(LocalStorage, "rename", rename)
    swap(str(base), side)
    assert made
    check_replaced(tmp_path)
    assert not (base / ".hoodie" / "lock").exists()


def test_killed_between_the_renames_the_new_table_takes_the_place_of_what_a_writer_made_there(tmp_path):
    table(tmp_path / ".t.replaced-1", "old")
    table(tmp_path / ".t.rebuild-1", "new")
    LocalStorage(str(tmp_path / "t")).create(".hoodie/lock", b"of a writer that waits")
    recover_swap(str(tmp_path / "t"))
    check_replaced(tmp_path)


def test_an_old_table_that_a_killed_rebuild_left_is_removed(tmp_path):
    table(tmp_path / "t", "new")
    table(tmp_path / ".t.replaced-1", "old")
    recover_swap(str(tmp_path / "t"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


def builder(folder, **changes):
    """Say that a process builds in a folder."""
    owner = Owner.current()
    mark = replace(owner, process=replace(owner.process, **changes))
    (folder / ".hoodie" / ".rebuild-owner").write_bytes(mark.to_json())


def test_a_half_built_successor_goes_when_its_builder_is_gone_and_not_before(tmp_path):
    table(tmp_path / "t", "current")
    for name, changes in (("1", {}), ("2", {"started": "1"}), ("3", {"machine": "elsewhere"})):
        table(tmp_path / f".t.rebuild-{name}", "being built")
        builder(tmp_path / f".t.rebuild-{name}", **changes)
    recover_swap(str(tmp_path / "t"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".t.rebuild-1", ".t.rebuild-3", "t"]
    for file in (tmp_path / ".t.rebuild-3").rglob("*"):
        os.utime(file, (1, 1))
    recover_swap(str(tmp_path / "t"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".t.rebuild-1", "t"]


def test_a_table_directly_below_the_root_can_be_looked_at():
    base = "/no-such-table-of-hudi-engine"
    recover_swap(base)
    assert table_storage(base).base == base
    assert side_folder(base).startswith(f"/.{base[1:]}.rebuild-")


def test_a_table_that_fills_a_bucket_cannot_be_rebuilt_beside_itself():
    assert table_storage("s3://bucket?region=us-east-1").base == "s3://bucket"
    with pytest.raises(StorageError, match="it has no parent folder to build in"):
        side_folder("s3://bucket")
