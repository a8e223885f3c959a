"""Storages of pyarrow: what is cut off leaves a file whole, or not there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.config.properties import format_properties
from hudi_engine.format.config.properties_file import BACKUP_PATH, PROPERTIES_PATH, read_properties
from hudi_engine.format.storage.factory import ArrowStorage

from tests.helpers.fault import SimulatedCrash
from tests.helpers.like_hdfs import LikeHdfs

TABLE = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}


class _Watched(LikeHdfs):
    """Calls back before each rename."""

    def __init__(self, before_move: Callable[[str, str], None]) -> None:
        super().__init__()
        self._before_move = before_move

    def move(self, source: str, target: str) -> None:
        self._before_move(source, target)
        super().move(source, target)


class _Full(LikeHdfs):
    """Takes the beginning of a file and no more."""

    def open_output_stream(self, path: str, **more: Any) -> Any:
        sink = self._disk.open_output_stream(path, **more)

        class Sink:
            def __enter__(self) -> Sink:
                return self

            def __exit__(self, *_: object) -> None:
                sink.close()

            def write(self, data: bytes) -> None:
                sink.write(data[:1])
                raise OSError("no space is left")

        return Sink()


def opened(base: Path, filesystem: Any) -> ArrowStorage:
    return ArrowStorage(f"file:{base}", filesystem, str(base))


def properties(**more: str) -> bytes:
    return format_properties({**TABLE, **more}, "x")


@pytest.mark.parametrize("change", ["create", "replace", "copy", "open_output"])
def test_what_cannot_be_written_to_its_end_is_not_there(tmp_path: Path, change: str) -> None:
    (tmp_path / "source").write_bytes(b"rows")
    storage = opened(tmp_path, _Full())
    calls: dict[str, Callable[[], object]] = {
        "create": lambda: storage.create("d/f", b"rows"),
        "replace": lambda: storage.replace("d/f", b"rows"),
        "copy": lambda: storage.copy("source", "d/f"),
        "open_output": lambda: _written(storage, "d/f"),
    }
    with pytest.raises(OSError, match="no space"):
        calls[change]()
    assert storage.list("d") == []


def _written(storage: ArrowStorage, path: str) -> None:
    with storage.open_output(path) as sink:
        sink.write(b"rows")


def test_a_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    seen: list[tuple[bytes, list[str]]] = []

    def look(source: str, target: str) -> None:
        seen.append((Path(source).read_bytes(), [each.name for each in tmp_path.iterdir()]))

    opened(tmp_path, _Watched(look)).create("f", b"rows")

    ((content, names),) = seen
    assert content == b"rows"
    assert len(names) == 1 and names[0].startswith(".tmp-")


def test_whoever_is_late_finds_the_file_of_the_first_though_both_saw_none(tmp_path: Path) -> None:
    def another_is_faster(source: str, target: str) -> None:
        Path(target).write_bytes(b"first")

    storage = opened(tmp_path, _Watched(another_is_faster))
    with pytest.raises(FileExistsError):
        storage.create("f", b"second")
    assert storage.read("f") == b"first"
    assert [status.name for status in storage.list("")] == ["f"]


def test_the_properties_of_a_table_survive_a_change_that_is_cut_off_between_its_renames(
    tmp_path: Path,
) -> None:
    opened(tmp_path, LikeHdfs()).create(PROPERTIES_PATH, properties(before="1"))

    def die(source: str, target: str) -> None:
        if not Path(target).exists() and target.endswith(PROPERTIES_PATH):
            raise SimulatedCrash

    with pytest.raises(SimulatedCrash):
        opened(tmp_path, _Watched(die)).replace(PROPERTIES_PATH, properties(after="1"))
    storage = opened(tmp_path, LikeHdfs())
    assert not storage.exists(PROPERTIES_PATH)
    assert read_properties(storage)["before"] == "1"

    storage.replace(PROPERTIES_PATH, properties(after="1"))
    storage.delete(BACKUP_PATH)
    assert read_properties(storage)["after"] == "1"


def test_a_change_that_fails_between_its_renames_is_undone(tmp_path: Path) -> None:
    opened(tmp_path, LikeHdfs()).create("f", b"before")
    failed: list[str] = []

    def fail_once(source: str, target: str) -> None:
        if not Path(target).exists() and target.endswith("/f") and not failed:
            failed.append(target)
            raise OSError("the connection is gone")

    storage = opened(tmp_path, _Watched(fail_once))
    with pytest.raises(OSError, match="connection is gone"):
        storage.replace("f", b"after")
    assert storage.read("f") == b"before"
    assert [status.name for status in storage.list("")] == ["f"]


def test_a_beat_never_lets_its_file_be_missing(tmp_path: Path) -> None:
    storage = opened(tmp_path, LikeHdfs())
    storage.create("beat", b"mine")
    stopped, missed = threading.Event(), []

    def look() -> None:
        while not stopped.is_set():
            missed.extend([1] if storage.stat("beat") is None else [])

    watching = threading.Thread(target=look)
    watching.start()
    for _ in range(200):
        storage.refresh("beat", b"mine")
    stopped.set()
    watching.join()
    assert not missed
