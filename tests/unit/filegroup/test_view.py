"""Which folders are partitions, and how often they are listed."""

from __future__ import annotations

import os
import pickle

import pytest
from hudi_engine.format.filegroup.view import FileSystemView, list_partition_files, list_partitions
from hudi_engine.format.storage.base import Listing
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline


@pytest.fixture
def table(partitioned):
    partitioned.instants("1.commit")
    partitioned.files("f@1", partition="dt=1/hr=2")
    partitioned.files("f@1", "g@1", partition="dt=1/hr=3")
    partitioned.storage.create("dt=9/h_0-1-2_00000000000000001.parquet", b"no partition metadata here")
    partitioned.storage.create(".hoodie/metadata/files/.hoodie_partition_metadata", b"")
    return partitioned


def test_partitions_are_the_folders_with_partition_metadata(table) -> None:
    assert list_partitions(table.storage, table.config) == ["dt=1/hr=2", "dt=1/hr=3"]
    assert table.view().partitions == ("dt=1/hr=2", "dt=1/hr=3")
    assert [(each.partition, each.file_id) for each in table.view().latest_slices()] == [
        ("dt=1/hr=2", "f"),
        ("dt=1/hr=3", "f"),
        ("dt=1/hr=3", "g"),
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".orc"])
def test_partition_metadata_in_the_format_of_base_files_counts_too(table, suffix: str) -> None:
    table.storage.create(f"dt=9/.hoodie_partition_metadata{suffix}", b"")

    assert "dt=9" in table.view().partitions


def test_a_view_of_some_partitions_lists_only_those(table) -> None:
    view = table.view(partitions=["dt=1/hr=3", "dt=7"])

    assert view.partitions == ("dt=1/hr=3", "dt=7")
    assert [each.file_id for each in view.latest_slices()] == ["f", "g"]
    assert view.latest_slices("dt=7") == []
    assert [each.file_id for each in view.latest_slices("dt=1/hr=3")] == ["f", "g"]
    assert view.all_slices("dt=8") == {}


def test_a_non_partitioned_table_is_its_base_folder(v6) -> None:
    v6.instants("1.commit")
    v6.files("f@1")
    v6.storage.create("stray/g_0-1-2_00000000000000001.parquet", b"")

    assert list_partitions(v6.storage, v6.config) == [""]
    assert v6.latest() == {"f": ["f@1"]}


def test_files_of_others_are_ignored_but_listed(table) -> None:
    for name in (".DS_Store", "._f_0-1-2_00000000000000001.parquet", "_SUCCESS", ".x.crc", "part-0.parquet"):
        table.storage.create(f"dt=1/hr=2/{name}", b"")

    assert [each.file_id for each in table.view().latest_slices("dt=1/hr=2")] == ["f"]
    assert {status.name for status in table.view().files("dt=1/hr=2")} >= {".DS_Store", "part-0.parquet"}
    assert len(list_partition_files(table.storage, "dt=1/hr=2")) == 7


def test_no_folder_is_listed_twice_and_hoodie_never(table, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    scan = os.scandir
    timeline = Timeline.load(table.storage, table.config)
    monkeypatch.setattr(os, "scandir", lambda folder: listed.append(str(folder)) or scan(folder))

    view = FileSystemView.build(table.storage, table.config, timeline)
    view.latest_slices()
    view.latest_base_files()
    view.all_slices("dt=1/hr=2")

    assert len(listed) == len(set(listed)) == 5
    assert not any(".hoodie" in folder for folder in listed)


def test_slices_can_be_sent_to_another_process(table) -> None:
    slices = table.view().latest_slices()

    assert pickle.loads(pickle.dumps(slices)) == slices  # noqa: S301


def test_a_view_needs_no_listing_of_empty_partitions(v6) -> None:
    class NoListing(LocalStorage):
        def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
            raise AssertionError(f"listed {path!r}")

    v6.instants("1.commit")
    timeline = Timeline.load(v6.storage, v6.config)

    view = FileSystemView.build(NoListing(v6.storage.base), v6.config, timeline, partitions=[])

    assert view.latest_slices() == []
