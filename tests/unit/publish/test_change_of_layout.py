"""A table that is listed flat from some commit on: its lists of folder names are ended."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest
from hudi_engine.format.storage import open_storage
from hudi_engine.table.snapshot.manifest import live_manifest_files, newest_manifest, publish
from hudi_engine.table.snapshot.manifest_file import Layout, ManifestFolder

from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash
from tests.unit.publish.conftest import rows

HIVE = ".hoodie/spark_catalog/hive/_spark_metadata"
ODD = {"odd": {"h-0": rows(3, dt="odd")}}


@pytest.fixture
def left(cow):
    """A table with two lists of folder names, and a commit whose folder does not say its value."""
    for value in "ab":
        cow.commit({"dt=x": {"f-0": rows(1, v=value)}})
        publish(cow.storage)
    cow.commit(ODD)
    return cow


def folder(storage, layout):
    return ManifestFolder(storage, layout)


def is_ended(storage):
    newest = folder(storage, Layout.HIVE).numbers()[-1]
    return storage.read(f"{HIVE}/{newest}.compact").startswith(b"nothing: the files of this table are listed")


def test_the_lists_that_a_table_leaves_are_ended_once(left):
    assert publish(left.storage).layout is Layout.FLAT
    assert folder(left.storage, Layout.HIVE).numbers() == [19, 29]
    assert is_ended(left.storage)
    for value in "cd":
        left.commit({"dt=x": {"f-0": rows(1, v=value)}})
        assert publish(left.storage).layout is Layout.FLAT
    assert folder(left.storage, Layout.HIVE).numbers() == [19, 29]


def test_a_table_that_was_always_listed_flat_has_nothing_to_end(cow):
    cow.commit(ODD)
    assert publish(cow.storage).layout is Layout.FLAT
    assert folder(cow.storage, Layout.HIVE).numbers() == []


def test_a_list_of_folder_names_that_comes_beside_the_first_flat_one_hides_no_commit(left):
    """Its publisher has looked at a newer commit than the other one, and neither sees the other's number."""

    class Slow(FaultInjectingStorage):
        def create(self, path, data):
            if not self.calls:
                newest.append(left.commit({"dt=x": {"f-0": rows(1, v="c")}}))
                body = left.storage.read(f"{HIVE}/19.compact")
                left.storage.create(f"{HIVE}/29.compact", body)
            super().create(path, data)

    newest: list[str] = []
    published = publish(Slow(left.storage))
    assert (published.layout, published.instant) == (Layout.FLAT, newest[0])
    assert folder(left.storage, Layout.HIVE).numbers() == [29, 39]
    assert is_ended(left.storage)


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_killed_at_any_mutating_call_the_next_publishers_end_what_was_left(left, when, tmp_path):
    whole = FaultInjectingStorage(open_storage(str(shutil.copytree(left.path, tmp_path / "whole"))))
    publish(whole, served_at=left.storage.uri())
    before, after = set(live_manifest_files(left.storage)), set(live_manifest_files(whole))
    for number in range(1, len(whole.calls) + 1):
        storage = open_storage(str(shutil.copytree(left.path, tmp_path / f"{when}-{number}")))
        with suppress(SimulatedCrash):
            plan = FaultPlan(number, when, crash=raise_crash)
            publish(FaultInjectingStorage(storage, plan), served_at=left.storage.uri())
        assert set(live_manifest_files(storage)) in (before, after)
        for _ in range(2):
            publish(storage, served_at=left.storage.uri(), renew=True)
        assert is_ended(storage)
        assert newest_manifest(storage).stamp is not None and set(live_manifest_files(storage)) == after
