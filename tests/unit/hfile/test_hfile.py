"""HFiles written and read again: all cells, some keys, keys that begin alike."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hudi_engine.errors import CorruptTableError, DataError
from hudi_engine.format.hfile.file import HFile
from hudi_engine.format.hfile.writer import BLOCK_BYTES, encode_hfile

# The first entry of an HFile that Apache Hudi 1.2.0 wrote, up to its value.
FIRST_CELL = bytes.fromhex("0000000e0000003d00026b31007fffffffffffffff04")


def hfile(cells: dict[str, bytes], **more: object) -> bytes:
    keys = sorted(key.encode() for key in cells)
    values = [cells[key.decode()] for key in keys]
    return encode_hfile(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), "{}", **more)  # type: ignore[arg-type]


MANY = {f"key{number:06}": bytes([number % 251]) * 30 for number in range(20_000)}


def test_cells_come_back_in_key_order() -> None:
    content = hfile({"b": b"2", "a": b"1", "é": b"", "": b"empty key"})

    assert list(HFile.of_bytes(content).cells()) == [
        (b"", b"empty key"),
        (b"a", b"1"),
        (b"b", b"2"),
        ("é".encode(), b""),
    ]


def test_some_keys_are_found_in_many_blocks() -> None:
    file = HFile.of_bytes(hfile(MANY))
    wanted = [b"key000000", b"key019999", b"key010007", b"key", b"zzz", b"key0100070"]

    assert file.get(wanted) == {key: MANY[key.decode()] for key in wanted[:3]}
    assert file.entries == 20_000


@pytest.mark.parametrize("absent", [0, 3, 20_000])
def test_many_keys_are_found_whether_or_not_others_are_there(absent: int) -> None:
    present = [f"key{number:06}" for number in range(0, 20_000, 3)]
    lacking = [f"key{number:06}x" for number in range(absent)]
    found = HFile.of_bytes(hfile(MANY)).get([key.encode() for key in [*lacking, *present]])

    assert found == {key.encode(): MANY[key] for key in present}


def test_few_keys_read_few_blocks() -> None:
    content = hfile(MANY)
    read = []

    def bytes_of(start: int, size: int) -> bytes:
        read.append(size)
        return content[start : start + size]

    file = HFile(bytes_of, len(content))
    assert file.get([b"key000003"])

    assert sum(read) < len(content) or len(read) == 1


def test_keys_that_begin_alike_are_found_across_blocks() -> None:
    file = HFile.of_bytes(hfile(MANY))

    found = dict(file.with_prefix(b"key01"))

    assert found == {key.encode(): value for key, value in MANY.items() if key.startswith("key01")}
    assert list(file.with_prefix(b"a")) == list(file.with_prefix(b"z")) == []


def test_blocks_stay_small_enough_for_hudis_reader() -> None:
    blocks = list(HFile.of_bytes(hfile(MANY)).blocks())

    assert len(blocks) > 5
    assert all(len(block.body) <= BLOCK_BYTES for block in blocks)


def test_a_cell_has_the_bytes_of_hudi() -> None:
    block = next(HFile.of_bytes(hfile({"k1": bytes(61)})).blocks())

    assert block.body == FIRST_CELL + bytes(61) + b"\x00"


def test_a_file_without_cells_can_be_read() -> None:
    file = HFile.of_bytes(hfile({}, is_base_file=True))

    assert list(file.cells()) == []
    assert file.get([b"a"]) == {}
    assert list(file.with_prefix(b"a")) == []
    assert file.info["minRecordKey"] == b""


def test_base_files_name_their_first_and_last_key() -> None:
    info = HFile.of_bytes(hfile({"a": b"1", "b": b"2"}, is_base_file=True)).info

    assert (info["minRecordKey"], info["maxRecordKey"]) == (b"a", b"b")
    assert info["hfile.LASTKEY"] == struct.pack(">H", 1) + b"b"


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"], [b"x" * 32768]])
def test_keys_that_no_reader_would_find_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(DataError):
        encode_hfile(pa.array(keys, pa.binary()), pa.array([b""] * len(keys), pa.binary()), "{}")


@pytest.mark.parametrize("cut", [1, 100, 4096, 5000])
def test_a_file_that_ends_early_is_refused(cut: int) -> None:
    content = hfile(MANY)

    with pytest.raises(CorruptTableError):
        list(HFile.of_bytes(content[: len(content) - cut]).cells())
