"""What every storage does, whatever is behind it."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path

import pytest
from hudi_engine.errors import PathEscapeError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import ArrowStorage, open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.objects import ObjectStorage
from pyarrow import fs

from tests.helpers.azure_server import AzureServer
from tests.helpers.fault import FaultInjectingStorage
from tests.helpers.gcs_server import GcsServer
from tests.helpers.like_hdfs import LikeHdfs
from tests.helpers.s3_server import S3Server

KINDS = {
    "local": LocalStorage,
    "arrow": lambda base: ArrowStorage(f"file:{base}", fs.LocalFileSystem(), base),
    "hdfs": lambda base: ArrowStorage(f"file:{base}", LikeHdfs(), base),
    "fault": lambda base: FaultInjectingStorage(LocalStorage(base)),
}


@pytest.fixture(
    params=[*KINDS, "s3", *(pytest.param(each, marks=pytest.mark.long) for each in ("azure", "gcs"))]
)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param not in KINDS:
        server: S3Server | AzureServer | GcsServer = request.getfixturevalue(f"{request.param}_server")
        return open_storage(f"{server.new_bucket()}/table")
    return KINDS[request.param](str(tmp_path / "table"))


def paths_below(storage: Storage, path: str = "") -> list[str]:
    return [status.path for status in storage.list(path, recursive=True)]


def test_a_created_file_is_read_back_whole(storage: Storage) -> None:
    storage.create("dt=1/a.bin", b"rows")

    assert storage.read("dt=1/a.bin") == b"rows"
    status = storage.stat("dt=1/a.bin")
    assert status is not None
    assert (status.size, status.is_dir, status.name) == (4, False, "a.bin")


def test_create_leaves_an_existing_file_alone(storage: Storage) -> None:
    storage.create("a", b"first")

    with pytest.raises(FileExistsError):
        storage.create("a", b"second")
    assert storage.read("a") == b"first"


def test_of_many_that_create_a_file_one_wins_and_its_content_stays(storage: Storage) -> None:
    won: list[bytes] = []

    def create(content: bytes) -> None:
        try:
            storage.create("f", content)
            won.append(content)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=create, args=(b"%d" % number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert storage.read("f") in won
    assert len(won) == 1 or not storage.exclusive_create


def test_a_file_that_is_missing_cannot_be_refreshed_and_one_that_is_there_keeps_its_content(
    storage: Storage,
) -> None:
    storage.create("beat", b"mine")

    storage.refresh("beat", b"mine")
    assert storage.read("beat") == b"mine"
    if not isinstance(storage, ObjectStorage):
        return
    with pytest.raises(FileNotFoundError):
        storage.refresh("beat", b"another")
    storage.delete("beat")
    with pytest.raises(FileNotFoundError):
        storage.refresh("beat", b"mine")
    assert not storage.exists("beat")


def test_a_file_of_several_parts_is_whole(storage: Storage) -> None:
    content = os.urandom(17 * 1024 * 1024)
    with storage.open_output("d/f") as sink:
        sink.write(content)

    with storage.open_input("d/f") as source:
        assert source.read() == content


def test_replace_overwrites_and_drops_the_stale_checksum(storage: Storage) -> None:
    storage.create("x/p", b"old")
    if not isinstance(storage, ObjectStorage):  # Hadoop keeps no checksum files there
        storage.create("x/.p.crc", b"checksum of old")

    storage.replace("x/p", b"new")

    assert storage.read("x/p") == b"new"
    assert not storage.exists("x/.p.crc")


def test_a_copy_takes_the_place_of_what_was_there(storage: Storage) -> None:
    storage.create("d/new", b"new")
    storage.create("d/old", b"old")

    storage.copy("d/new", "d/old")

    assert storage.read("d/old") == storage.read("d/new") == b"new"
    assert paths_below(storage, "d") == ["d/new", "d/old"]
    with pytest.raises(FileNotFoundError):
        storage.copy("nope", "d/old")


def test_delete_tells_whether_there_was_a_file_and_drops_its_checksum(storage: Storage) -> None:
    storage.create("x/p", b"1")
    if not isinstance(storage, ObjectStorage):
        storage.create("x/.p.crc", b"2")

    assert storage.delete("x/p") is True
    assert storage.delete("x/p") is False
    assert [path for path in paths_below(storage) if path != "x"] == []


def test_remove_drops_a_file_and_its_checksum_and_says_nothing_of_a_missing_one(storage: Storage) -> None:
    storage.create("x/p", b"1")
    if not isinstance(storage, ObjectStorage):
        storage.create("x/.p.crc", b"2")

    storage.remove("x/p")
    storage.remove("x/p")
    assert [path for path in paths_below(storage) if path != "x"] == []


def test_a_missing_file_has_no_status_and_cannot_be_read(storage: Storage) -> None:
    assert storage.stat("nope/x") is None
    with pytest.raises(FileNotFoundError):
        storage.read("nope/x")
    with pytest.raises(FileNotFoundError):
        storage.open_input("nope/x")


def test_listing_is_sorted_and_a_missing_folder_is_empty(storage: Storage) -> None:
    for path in ("b/2", "b/1", "a"):
        storage.create(path, b"")

    assert [(status.path, status.is_dir) for status in storage.list("")] == [("a", False), ("b", True)]
    assert paths_below(storage) == ["a", "b", "b/1", "b/2"]
    assert storage.list("nope") == []


def test_listing_never_enters_a_skipped_folder(storage: Storage) -> None:
    for path in (".hoodie/t", "dt=1/f", "dt=1/.hoodie/x"):
        storage.create(path, b"")

    found = [status.path for status in storage.list("", recursive=True, skip=frozenset({".hoodie"}))]

    assert found == ["dt=1", "dt=1/f"]


def test_an_output_file_appears_only_when_its_block_ends(storage: Storage) -> None:
    seen: list[bool] = []
    with storage.open_output(
        "d/f.parquet", before_publish=lambda: seen.append(storage.exists("d/f.parquet"))
    ) as sink:
        sink.write(b"PAR1")
        sink.write(memoryview(b"PAR1"))

    assert seen == [False]
    assert storage.read("d/f.parquet") == b"PAR1PAR1"
    with storage.open_input("d/f.parquet") as source:
        source.seek(4)
        assert source.read() == b"PAR1"


def test_an_error_in_the_block_leaves_no_file_at_all(storage: Storage) -> None:
    with pytest.raises(ZeroDivisionError), storage.open_output("d/f") as sink:
        sink.write(b"half")
        raise ZeroDivisionError

    assert [path for path in paths_below(storage) if path != "d"] == []


def test_an_error_before_publishing_cancels_the_file(storage: Storage) -> None:
    def refuse() -> None:
        raise RuntimeError("rolled back meanwhile")

    with (
        pytest.raises(RuntimeError, match="rolled back"),
        storage.open_output("f", before_publish=refuse) as sink,
    ):
        sink.write(b"rows")

    assert paths_below(storage) == []


def test_an_output_file_never_overwrites(storage: Storage) -> None:
    storage.create("f", b"there first")

    with pytest.raises(FileExistsError), storage.open_output("f") as sink:
        sink.write(b"late")
    assert storage.read("f") == b"there first"


def test_files_and_folders_are_renamed_but_never_onto_something(storage: Storage) -> None:
    storage.create("a/x", b"1")
    storage.create("taken", b"2")

    storage.rename("a/x", "b/y")
    storage.rename("b", "c")

    assert storage.read("c/y") == b"1"
    assert not storage.exists("b")
    with pytest.raises(FileExistsError):
        storage.rename("c/y", "taken")
    with pytest.raises(FileNotFoundError):
        storage.rename("nope", "free")


def test_delete_tree_takes_all_below_and_refuses_the_table_itself(storage: Storage) -> None:
    storage.create("keep", b"")
    storage.create("t/a/b", b"")

    storage.delete_tree("t")
    storage.delete_tree("t")

    assert paths_below(storage) == ["keep"]
    with pytest.raises(PathEscapeError):
        storage.delete_tree("")


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x"])
def test_no_call_leaves_the_table(storage: Storage, path: str) -> None:
    calls = [
        lambda: storage.read(path),
        lambda: storage.stat(path),
        lambda: storage.list(path),
        lambda: storage.create(path, b""),
        lambda: storage.replace(path, b""),
        lambda: storage.delete(path),
        lambda: storage.remove(path),
        lambda: storage.delete_tree(path),
        lambda: storage.rename(path, "b"),
        lambda: storage.make_dirs(path),
        lambda: storage.open_input(path),
        lambda: storage.open_output(path).__enter__(),
        lambda: storage.uri(path),
    ]
    for call in calls:
        with pytest.raises(PathEscapeError):
            call()


def test_a_storage_can_be_sent_to_another_process(storage: Storage) -> None:
    storage.create("a", b"1")

    copy = pickle.loads(pickle.dumps(storage))  # noqa: S301

    assert copy.read("a") == b"1"
    assert copy.base == storage.base
