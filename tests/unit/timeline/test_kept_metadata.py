"""Bodies of completed writes, read once by all looks of one process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import FileStatus
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.read_only import ForwardingStorage
from hudi_engine.format.timeline.active import KeptMetadata, Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

TIME = "20240101000001000"


class Counting(ForwardingStorage):
    """Notes what is read."""

    def __init__(self, storage: LocalStorage) -> None:
        super().__init__(storage)
        self.reads: list[str] = []

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return super().read(path)


def looks(storage: Counting, config_of: Callable[..., TableConfig]) -> list[str]:
    """Ask three snapshots of the timeline, one after the other, what the write wrote."""
    found = []
    for _ in range(3):
        timeline = Timeline.load(storage, config_of())
        found.append(timeline.commit_metadata(timeline.completed_writes[0]).operation_type)
    return found


def write(folder: Path, operation: str, at: int) -> None:
    path = folder / ".hoodie" / f"{TIME}.commit"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(CommitMetadata(operation_type=operation).to_json())
    os.utime(path, ns=(at * 10**9, at * 10**9))


def test_a_commit_is_read_once_however_often_the_timeline_is_loaded(
    storage: LocalStorage, config_of: Callable[..., TableConfig], tmp_path: Path
) -> None:
    write(tmp_path, "UPSERT", at=1)
    counting = Counting(storage)

    assert looks(counting, config_of) == ["UPSERT"] * 3
    assert counting.reads == [f".hoodie/{TIME}.commit"]


@pytest.mark.parametrize(("operation", "at"), [("UPSERT", 2), ("INSERT", 2), ("BULK_INSERT", 1)])
def test_a_file_that_is_another_one_under_the_name_is_read_again(
    storage: LocalStorage,
    config_of: Callable[..., TableConfig],
    tmp_path: Path,
    operation: str,
    at: int,
) -> None:
    write(tmp_path, "DELETE", at=1)
    assert looks(Counting(storage), config_of) == ["DELETE"] * 3
    write(tmp_path, operation, at)

    assert looks(Counting(storage), config_of) == [operation] * 3


def test_tables_in_other_places_are_not_mixed_up(
    config_of: Callable[..., TableConfig], tmp_path: Path
) -> None:
    for name, operation in (("a", "INSERT"), ("b", "UPSERT")):
        (tmp_path / name).mkdir()
        write(tmp_path / name, operation, at=1)

    assert looks(Counting(LocalStorage(str(tmp_path / "a"))), config_of) == ["INSERT"] * 3
    assert looks(Counting(LocalStorage(str(tmp_path / "b"))), config_of) == ["UPSERT"] * 3


def test_what_was_asked_for_longest_ago_goes_when_there_is_no_room() -> None:
    kept = KeptMetadata(most=100)
    files = [FileStatus(f".hoodie/{number}.commit", 40, 1, False) for number in range(3)]
    for status in files[:2]:
        kept.keep("t", status, CommitMetadata())
    assert kept.find("t", files[0]) is not None
    kept.keep("t", files[2], CommitMetadata())

    assert [kept.find("t", status) is not None for status in files] == [True, False, True]


def test_a_file_larger_than_all_that_is_kept_takes_no_room_from_others() -> None:
    kept = KeptMetadata(most=100)
    small, large = FileStatus("1.commit", 40, 1, False), FileStatus("2.commit", 101, 1, False)
    for status in (small, large):
        kept.keep("t", status, CommitMetadata())

    assert kept.find("t", small) is not None
    assert kept.find("t", large) is None
