"""Logs that lack bytes of a completed commit are refused by every reader and service, and never merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.filegroup.log_file import Written
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import BytesSource
from hudi_engine.format.logformat.writer import encode_rollback_block
from hudi_engine.format.storage import open_storage
from hudi_engine.table.inspect import damaged_files
from hudi_engine.table.services import run_compaction
from hudi_engine.table.state import TableState

from tests.golden.golden import NAMES, unpack
from tests.helpers.handmade import HandmadeTable
from tests.helpers.read_table import read_table
from tests.unit.services.tables import DAY_1, GROUP_1, MERGED, batch, merge_on_read, options, rows, writes

Cut = Callable[[bytes], bytes]
CUTS: dict[str, Cut] = {
    "by a byte": lambda data: data[:-1],
    "in half": lambda data: data[: len(data) // 2],
    "to nothing": lambda _: b"",
    "to whole blocks": lambda data: data[: _starts(data)[-1]],
}
FLIPS: dict[str, Callable[[bytes, int], bytes]] = {
    "magic": lambda data, at: _flipped(data, at),
    "length": lambda data, at: _flipped(data, at + 13),
    "version": lambda data, at: _flipped(data, at + 17),
    "type": lambda data, at: _flipped(data, at + 21),
    "instant": lambda data, at: _flipped(data, data.index(b"20260101", at) + 16),
}


def _starts(data: bytes) -> list[int]:
    return [each.offset for each in scan_blocks(BytesSource(data))]


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _logs(path: Path) -> list[Path]:
    return sorted(path.glob("**/.*.log.*"))


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    return merge_on_read(tmp_path / "t")


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("number", range(3))
def test_readers_and_compaction_refuse_cut_logs(table: HandmadeTable, cut: str, number: int) -> None:
    log = _logs(table.path)[number]
    log.write_bytes(CUTS[cut](log.read_bytes()))
    for call in (
        lambda: rows(table.storage),
        lambda: rows(table.storage, as_of=writes(table.storage)[-1]),
        lambda: run_compaction(table.storage, options()),
    ):
        with pytest.raises(CorruptTableError, match=r"has \d+ bytes, and commit \d+ wrote it up to byte"):
            call()


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("number", range(3))
def test_damaged_blocks_are_refused(table: HandmadeTable, flip: str, number: int) -> None:
    log = _logs(table.path)[number]
    data = log.read_bytes()
    log.write_bytes(FLIPS[flip](data, _starts(data)[-1]))
    # what looks like a block of a later format is refused as one
    with pytest.raises(UnsupportedTableError if flip == "version" else CorruptTableError):
        rows(table.storage)


def test_earlier_states_need_no_later_log(table: HandmadeTable) -> None:
    _logs(table.path)[1].write_bytes(b"")
    second = writes(table.storage)[1]
    assert rows(table.storage, as_of=second) == {"a": 9, "b": 2, "c": 3, "d": 40, "e": 5}


def test_torn_blocks_of_other_writes_stay_ignored(table: HandmadeTable) -> None:
    log = _logs(table.path)[0]
    torn = log.read_bytes()[:-3]
    log.write_bytes(log.read_bytes() + torn)
    assert rows(table.storage) == MERGED


def test_torn_blocks_before_an_append_stay_ignored(table: HandmadeTable) -> None:
    """As on HDFS: a writer died in a log, the next one appended to it."""
    instant = table.next_instant()
    log = _logs(table.path)[1]
    name = log.relative_to(table.path)
    torn = log.read_bytes()[:-3]
    block = b"".join(table.data_blocks(DAY_1, GROUP_1, batch({"a": 11}, DAY_1), instant))
    start = log.stat().st_size + len(torn)
    log.write_bytes(log.read_bytes() + torn + block)
    stat = table.append_log(DAY_1, GROUP_1, writes(table.storage)[0], [], instant)
    (table.path / str(stat.path)).unlink()
    stat.path, stat.log_offset, stat.file_size_in_bytes = str(name), start, start + len(block)
    table.complete(instant, [stat])
    assert rows(table.storage)["a"] == 11

    log.write_bytes(_flipped(log.read_bytes(), start))
    with pytest.raises(CorruptTableError, match=f"is damaged at byte .* commit {instant}"):
        rows(table.storage)


def test_rollback_blocks_behind_a_commit_are_no_damage(table: HandmadeTable) -> None:
    log = _logs(table.path)[0]
    log.write_bytes(log.read_bytes() + encode_rollback_block(table.next_instant(), "20200101000000000"))
    assert rows(table.storage) == MERGED


@pytest.mark.parametrize("name", [name for name in NAMES if "mor" in name])
def test_cut_logs_of_apache_hudi_are_refused(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    storage = open_storage(str(path))
    state = TableState.load(storage)
    logs = [log for each in state.view().latest_slices() for log in each.log_files]
    whole = read_table(storage)
    for log in logs:
        if not log.written:
            continue
        file = path / log.path
        data = file.read_bytes()
        file.write_bytes(data[: max(part.end for part in log.written) - 1])
        with pytest.raises(CorruptTableError, match="it was cut short"):
            read_table(storage)
        file.write_bytes(data)
    assert read_table(storage).equals(whole)


def test_logs_carry_what_their_commit_wrote(table: HandmadeTable) -> None:
    slices = TableState.load(table.storage).view().latest_slices()
    found = {log.path: log.written for each in slices for log in each.log_files}
    _, second, third = writes(table.storage)
    sizes = {str(each.relative_to(table.path)): each.stat().st_size for each in _logs(table.path)}
    assert {path: parts[0].end for path, parts in found.items()} == sizes
    assert sorted(part for parts in found.values() for part in parts) == sorted(
        Written(0, sizes[path], third if path.endswith(".log.2_0-1-1") else second) for path in sizes
    )


def test_deep_validation_names_each_damaged_file(table: HandmadeTable) -> None:
    state = TableState.load(table.storage)
    assert damaged_files(state, resolve_options(None)) == []
    log = _logs(table.path)[0]
    log.write_bytes(log.read_bytes()[:-1])
    base = next((table.path / DAY_1).glob(f"{GROUP_1}*.parquet"))
    column = pq.ParquetFile(base).metadata.row_group(0).column(0)
    data = bytearray(base.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    base.write_bytes(bytes(data))
    found = damaged_files(TableState.load(table.storage), resolve_options(None))
    assert {(each.problem, each.path, each.harms) for each in found} == {
        ("damaged_file", str(each.relative_to(table.path)), True) for each in (log, base)
    }
