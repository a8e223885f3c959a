"""Markers of both kinds lead to the files a write has begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import PathEscapeError, TimelineError
from hudi_engine.format.filegroup.markers import (
    MarkerBook,
    delete_markers,
    list_markers,
    marker_folder,
    marker_name,
    marker_path,
    write_marker,
)
from hudi_engine.format.storage.local import LocalStorage

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


def test_markers_that_are_foreseen_are_one_file_of_lines(storage: LocalStorage) -> None:
    seen = [marker_name("dt=1", BASE, "MERGE"), marker_name("dt=2", LOG, "APPEND")]
    book = MarkerBook(storage, T, seen)
    book.open()

    assert list_markers(storage, T) == [(f"dt=1/{BASE}", "MERGE"), (f"dt=2/{LOG}", "APPEND")]
    for marker in (*seen, marker_name("", BASE, "CREATE")):
        book.announce(marker)
    book.close()

    assert list_markers(storage, T) == [
        (f"dt=1/{BASE}", "MERGE"),
        (f"dt=2/{LOG}", "APPEND"),
        (BASE, "CREATE"),
    ]
    files = {each.name: storage.read(each.path) for each in storage.list(marker_folder(T))}
    assert files == {
        "MARKERS.type": b"TIMELINE_SERVER_BASED",
        "MARKERS0": "".join(f"{marker}\n" for marker in seen).encode(),
        "MARKERS1": f"{BASE}.marker.CREATE\n".encode(),
    }


def test_nobody_waits_for_files_that_were_foreseen_and_not_begun(storage: LocalStorage) -> None:
    book = MarkerBook(storage, T, [marker_name("a", BASE, "MERGE"), marker_name("b", BASE, "MERGE")])
    book.open()
    book.announce(marker_name("b", BASE, "MERGE"))
    book.close()

    assert list_markers(storage, T) == [(f"b/{BASE}", "MERGE")]


@pytest.mark.parametrize("opened", [True, False])
def test_markers_of_which_nothing_was_begun_leave_nothing(storage: LocalStorage, opened: bool) -> None:
    book = MarkerBook(storage, T, [marker_name("a", BASE, "MERGE")])
    if opened:
        book.open()
    book.close()

    assert not storage.exists(marker_folder(T))
