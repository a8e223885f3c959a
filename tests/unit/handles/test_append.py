"""Log files of writers that append to one file group at the same time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.handles import append
from hudi_engine.storage.factory import open_storage

INSTANT = "20260101000000000"


def write(storage: Any, announced: list[str]) -> tuple[int, str, str]:
    task: Any = SimpleNamespace(
        context=SimpleNamespace(storage=storage),
        write_token="0-0-0",
        announce=lambda partition, name, kind: announced.append(name),
        publish_guard=lambda: None,
    )
    target = append.LogTarget(FileSlice("dt=a", "f-0", INSTANT, None, ()), INSTANT)
    return append._write_file(task, target, target.next_version, [b"block"])


def test_a_name_that_another_writer_took_meanwhile_is_left_to_it(tmp_path):
    storage, announced = open_storage(str(tmp_path)), []
    storage.create(f"dt=a/.f-0_{INSTANT}.log.1_0-0-0", b"theirs")
    version, name, path = write(storage, announced)
    assert (version, name) == (2, f".f-0_{INSTANT}.log.2_0-0-0")
    assert storage.read(path) == b"block"
    assert storage.read(f"dt=a/.f-0_{INSTANT}.log.1_0-0-0") == b"theirs"
    assert name in announced


def test_a_writer_that_never_finds_a_free_name_gives_up_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(append, "MOST_TAKEN_VERSIONS", 1)
    storage = open_storage(str(tmp_path))
    storage.create(f"dt=a/.f-0_{INSTANT}.log.1_0-0-0", b"theirs")
    with pytest.raises(WriteConflictError, match="'f-0'"):
        write(storage, [])
