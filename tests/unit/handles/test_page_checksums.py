"""Pages carry checksums: a flipped bit is an error for readers, and stays one through merges that carry the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import ParquetCodec
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.blocks import data_parquet
from hudi_engine.format.merge.base_reader import (
    check_base_file,
    opened_base_file,
    read_base_file,
    scan_base_file,
)
from hudi_engine.table.handles.merge import merge_file
from hudi_engine.table.handles.write_task import WriteTask

from tests.unit.handles.test_carried import ROWS, SCHEMA, a_row, changes_of
from tests.unit.handles.test_carried import whatever_size as whatever_size
from tests.unit.handles.test_merge import OLD, a_file, a_task

KEYS = [row["id"] for row in ROWS]
COLUMNS = ("id", "price", "note")


def _merged(task: WriteTask, old: FileSlice, number: int) -> FileSlice:
    """Upsert one row into a base file."""
    changes = changes_of(KEYS, {KEYS[number]: a_row(number, ts=20, note="another")}, set(), [])
    stat = merge_file(task, old, changes)
    assert stat is not None and stat.path is not None
    base = BaseFile("", "f-0", "0-0-0", task.context.instant, size=stat.file_size_in_bytes or 0)
    name = stat.path.removesuffix(".parquet").split("_")
    return FileSlice("", "f-0", base.instant, replace(base, write_token=name[1]), ())


@pytest.fixture
def task(tmp_path: Path) -> WriteTask:
    return a_task(tmp_path)


@pytest.fixture
def own_file(task: WriteTask, tmp_path: Path) -> FileSlice:
    """A base file of this engine, none of whose pages come from another writer's."""
    old = a_file(tmp_path, ROWS, SCHEMA, len(ROWS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_engine.table.handles.carried._are_as_wanted", lambda groups, options: False)
        return _merged(task, old, 0)


def _places(path: Path) -> list[int]:
    """Bytes within pages of some columns."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    found: list[int] = []
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema in COLUMNS:
            start = column.dictionary_page_offset or column.data_page_offset
            found += range(start, start + column.total_compressed_size, 17)
    return found


def _flip(path: Path, at: int) -> bytes:
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
    return data


def test_flipped_bits_are_errors_for_every_reader(
    task: WriteTask, own_file: FileSlice, tmp_path: Path
) -> None:
    read, base = task.context.read, own_file.base_file
    assert base is not None
    path = tmp_path / base.path
    columns = list(COLUMNS)
    rows = read_base_file(read, base, columns)

    def by_blocks() -> pa.Table:
        with opened_base_file(read, base) as file:
            return pa.concat_tables(file.blocks(columns)).cast(rows.schema)

    readers = (
        lambda: read_base_file(read, base, columns),
        lambda: scan_base_file(read, base, columns, pc.field("price") >= 0),
        by_blocks,
    )
    places = _places(path)
    assert len(places) > 50
    for at in places:
        data = _flip(path, at)
        for reader in readers:
            try:
                assert reader().equals(rows), f"another value at byte {at}"
            except CorruptTableError:
                continue
        path.write_bytes(data)
    _flip(path, places[len(places) // 2])
    with pytest.raises(CorruptTableError, match="cannot be read"):
        check_base_file(read, base)


def test_merges_do_not_launder_damage(task: WriteTask, own_file: FileSlice, tmp_path: Path) -> None:
    base = own_file.base_file
    assert base is not None
    path = tmp_path / base.path
    for number, at in enumerate(_places(path)[5::20]):
        data = _flip(path, at)
        later = WriteTask(replace(task.context, instant=f"202601{number + 3:02}000000000"))
        (tmp_path / ".hoodie" / f"{later.context.instant}.inflight").touch()
        try:
            new = _merged(later, own_file, len(ROWS) - 1).base_file
            assert new is not None
            rows = read_base_file(task.context.read, new, list(COLUMNS)).to_pylist()
        except CorruptTableError:
            continue
        finally:
            path.write_bytes(data)
        wanted = [{name: row[name] for name in COLUMNS} for row in ROWS]
        wanted[0]["note"] = wanted[-1]["note"] = "another"
        assert rows == wanted


def test_parquet_blocks_of_logs_are_verified() -> None:
    rows = pa.table({"id": [f"k{number}" for number in range(99)], "n": range(99)})
    content = data_parquet.encode(rows, ParquetCodec.UNCOMPRESSED)
    for at in range(4, len(content) // 2, 7):
        damaged = bytearray(content)
        damaged[at] ^= 4
        try:
            assert data_parquet.decode(memoryview(bytes(damaged))).equals(rows)
        except CorruptTableError:
            continue


def test_files_without_checksums_are_read_as_before(task: WriteTask, tmp_path: Path) -> None:
    old = a_file(tmp_path, ROWS, SCHEMA, len(ROWS)).base_file
    assert old is not None and old.instant == OLD
    assert read_base_file(task.context.read, old, ["id"]).column(0).to_pylist() == KEYS
