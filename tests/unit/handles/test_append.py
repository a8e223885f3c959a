"""Log files of writers that append to one file group at the same time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_version import TABLE_VERSIONS
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.blocks.delete import decode
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.handles import append

from tests.unit.handles.test_merge import a_task, batch, changed

INSTANT = "20260101000000000"


def write(storage: Any, announced: list[str]) -> tuple[int, str, str]:
    task: Any = SimpleNamespace(
        context=SimpleNamespace(storage=storage, config=SimpleNamespace(table_version=TABLE_VERSIONS[6])),
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
    monkeypatch.setattr(append, "MAX_TAKEN_VERSIONS", 1)
    storage = open_storage(str(tmp_path))
    storage.create(f"dt=a/.f-0_{INSTANT}.log.1_0-0-0", b"theirs")
    with pytest.raises(WriteConflictError, match="'f-0'"):
        write(storage, [])


def logs_of(folder: Path, options: dict[str, object]) -> list[list[list[str]]]:
    """The keys of each block of each log file that an update of six rows writes."""
    task = a_task(folder)
    given = resolve_options({"hoodie.logfile.data.block.format": "avro", **options})
    task = replace(task, context=replace(task.context, options=given))
    rows = batch(*(changed(f"k{number}") for number in range(6)))
    target = append.LogTarget(FileSlice("", "f-0", INSTANT, None, ()), INSTANT)
    stats = append.append_log(task, target, rows, None)
    assert sum(stat.num_writes or 0 for stat in stats) == 6
    return [
        [
            decode_data_block(block).column("id").to_pylist()
            for block in read_blocks(task.context.storage.read(str(stat.path)))
        ]
        for stat in stats
    ]


def test_the_rows_of_an_update_are_one_block_unless_its_size_is_limited(tmp_path):
    keys = [f"k{number}" for number in range(6)]
    assert logs_of(tmp_path / "a", {}) == [[keys]]
    assert logs_of(tmp_path / "b", {"hoodie.logfile.data.block.max.size": 1}) == [[[key] for key in keys]]


def test_the_deletes_of_a_write_are_one_block_unless_its_size_is_limited(tmp_path):
    keys = pa.array([f"k{number}" for number in range(6)])
    for limit, expected in ((10**6, [6]), (1, [1] * 6)):
        task = a_task(tmp_path / str(limit))
        options = resolve_options({"hoodie.logfile.data.block.max.size": limit})
        task = replace(task, context=replace(task.context, options=options))
        target = append.LogTarget(FileSlice("", "f-0", INSTANT, None, ()), INSTANT)
        (stat,) = append.append_log(task, target, None, append.LogDeletes(keys, pa.array(range(6))))
        found = [decode(block.content) for block in read_blocks(task.context.storage.read(str(stat.path)))]
        deleted = [list(records) for records in found]
        assert [len(records) for records in deleted] == expected and stat.num_deletes == 6
        told = [(each.record_key, each.ordering_value) for records in deleted for each in records]
        assert told == list(zip(keys.to_pylist(), range(6)))


def test_blocks_that_exceed_the_size_of_a_log_file_go_to_further_files(tmp_path):
    keys = [f"k{number}" for number in range(6)]
    small = {"hoodie.logfile.data.block.max.size": 1, "hoodie.logfile.max.size": 1}
    assert logs_of(tmp_path, small) == [[[key]] for key in keys]
