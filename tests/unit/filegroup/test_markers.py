"""Markers of both kinds lead to the files a write has begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import PathEscapeError, TimelineError
from hudi_engine.filegroup.markers import (
    delete_markers,
    list_markers,
    marker_path,
    write_marker,
)
from hudi_engine.storage.local import LocalStorage

T = "20240418173213674"
BASE = f"f-0_0-1-2_{T}.parquet"
LOG = f".f-0_{T}.log.1_0-1-2"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def test_direct_markers_mirror_the_partitions(storage: LocalStorage) -> None:
    write_marker(storage, T, "dt=1/hr=2", BASE, "CREATE")
    write_marker(storage, T, "dt=1/hr=2", BASE, "CREATE")
    write_marker(storage, T, "", LOG, "APPEND")

    assert storage.exists(f".hoodie/.temp/{T}/dt=1/hr=2/{BASE}.marker.CREATE")
    assert list_markers(storage, T) == [(LOG, "APPEND"), (f"dt=1/hr=2/{BASE}", "CREATE")]
    assert list_markers(storage, "20990101000000000") == []


def test_markers_collected_by_a_timeline_server_are_read(storage: LocalStorage) -> None:
    folder = f".hoodie/.temp/{T}"
    storage.create(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.create(f"{folder}/MARKERS0", f"dt=1/{BASE}.marker.MERGE\ndt=1/{LOG}.marker.APPEND\n".encode())
    storage.create(f"{folder}/MARKERS11", f"{BASE}.marker.CREATE\n{BASE}.mark".encode())

    assert list_markers(storage, T) == [
        (f"dt=1/{LOG}", "APPEND"),
        (f"dt=1/{BASE}", "MERGE"),
        (BASE, "CREATE"),
    ]


@pytest.mark.parametrize("partition", [" ", " x", "x ", "\u3000x", "\u2028", "\u00a0/y", "a\u0085b", "\x0b"])
def test_a_partition_value_keeps_its_blanks(storage: LocalStorage, partition: str) -> None:
    write_marker(storage, T, partition, BASE, "CREATE")
    storage.create(f".hoodie/.temp/{T}/MARKERS0", f"{partition}/{LOG}.marker.APPEND\n".encode())

    assert list_markers(storage, T) == sorted(
        [(f"{partition}/{BASE}", "CREATE"), (f"{partition}/{LOG}", "APPEND")]
    )


def test_other_files_beside_the_markers_are_ignored(storage: LocalStorage) -> None:
    for name in (".MARKERS0.crc", f".{BASE}.marker.CREATE.crc", ".tmp-1", f"{BASE}.marker.DROP"):
        storage.create(f".hoodie/.temp/{T}/{name}", b"")

    assert list_markers(storage, T) == []


def test_a_marker_cannot_lead_out_of_the_table(storage: LocalStorage) -> None:
    storage.create(f".hoodie/.temp/{T}/MARKERS0", b"../../precious.marker.CREATE\n")

    with pytest.raises(PathEscapeError):
        list_markers(storage, T)
    with pytest.raises(PathEscapeError):
        write_marker(storage, T, "../..", BASE, "CREATE")


def test_deleting_markers_takes_one_instant_only(storage: LocalStorage) -> None:
    write_marker(storage, T, "p", BASE, "CREATE")
    write_marker(storage, "20240418173213675", "p", BASE, "CREATE")
    delete_markers(storage, T)
    delete_markers(storage, T)

    assert list_markers(storage, T) == []
    assert len(list_markers(storage, "20240418173213675")) == 1


@pytest.mark.parametrize(("instant", "io_type"), [("..", "CREATE"), ("", "CREATE"), (T, "WRITE")])
def test_a_marker_that_no_reader_knows_is_not_made(instant: str, io_type: str) -> None:
    with pytest.raises(TimelineError):
        marker_path(instant, "p", BASE, io_type)
