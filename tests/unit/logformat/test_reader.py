"""Framing of log files: whole blocks are found, everything else is skipped."""

from __future__ import annotations

import struct
import time

import pyarrow as pa
import pytest
from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.logformat.format import BlockType, HeaderKey, LogBlock
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks, scan_blocks
from hudi_engine.format.logformat.source import BytesSource, FileSource
from hudi_engine.format.logformat.writer import encode_block, encode_rollback_block

EMPTY_DELETE = bytes.fromhex(
    "2348554449230000000000000042000000010000000100000001000000000000001130303030303030303030303030303030300000"
    "000000000009000000030000000100000000000000000000000048"
)
ROLLBACK = bytes.fromhex(
    "23485544492300000000000000"
    "5b000000010000000000000003"
    "00000000000000113230323530313236303430393336353738"
    "000000030000000130"
    "00000001000000113230323530313236303430383236383738"
    "000000000000000000000000"
    "0000000000000061"
)


def _block(text: str) -> bytes:
    return encode_block(BlockType.AVRO_DATA, [(HeaderKey.INSTANT_TIME, text)], text.encode())


def _texts(data: bytes) -> list[str]:
    return [
        "?" if block.kind is BlockType.CORRUPT else bytes(block.content).decode()
        for block in read_blocks(data)
    ]


def test_a_whole_delete_block_of_hudi() -> None:
    (block,) = read_blocks(EMPTY_DELETE)

    assert (block.kind, block.instant_time, bytes(block.content).hex()) == (
        BlockType.DELETE,
        "00000000000000000",
        "000000030000000100",
    )


def test_a_rollback_block_of_hudi_is_read_and_written() -> None:
    (block,) = read_blocks(ROLLBACK)

    assert (block.is_rollback, block.instant_time, block.target_instant_time) == (
        True,
        "20250126040936578",
        "20250126040826878",
    )
    assert encode_rollback_block("20250126040936578", "20250126040826878") == ROLLBACK


def test_blocks_follow_each_other_and_contents_are_views() -> None:
    data = _block("one") + _block("two")

    blocks = list(read_blocks(data))

    assert [bytes(block.content) for block in blocks] == [b"one", b"two"]
    assert [block.offset for block in blocks] == [0, len(_block("one"))]
    assert blocks[0].content.obj is data


@pytest.mark.parametrize("cut", range(1, len(_block("two"))))
def test_a_block_torn_by_a_crash_is_skipped(cut: int) -> None:
    assert [text for text in _texts(_block("one") + _block("two")[:cut]) if text != "?"] == ["one"]


def test_blocks_after_a_torn_one_are_found() -> None:
    assert _texts(_block("one") + _block("torn")[:-3] + _block("three")) == ["one", "?", "three"]


def test_a_wrong_trailing_length_or_garbage_behind_discards_the_block() -> None:
    wrong = bytearray(_block("wrong"))
    wrong[-1] ^= 1

    assert _texts(bytes(wrong) + _block("two")) == ["?", "two"]
    assert _texts(_block("one") + b"garbage" + _block("two")) == ["?", "two"]
    assert _texts(_block("one") + b"short") == ["one"]


def test_the_magic_inside_a_content_is_no_block() -> None:
    assert _texts(_block("a#HUDI#b") + _block("two")) == ["a#HUDI#b", "two"]


def test_a_negative_or_huge_size_is_no_block() -> None:
    for size in (-1, 0, 2**62):
        assert _texts(b"#HUDI#" + struct.pack(">q", size) + _block("two")) == ["?", "two"]


def test_garbage_is_read_in_linear_time() -> None:
    seconds = []
    for count in (20_000, 200_000):
        started = time.process_time()
        assert _texts(b"#HUDI#" * count + _block("end")) == ["?", "end"]
        seconds.append(time.process_time() - started)

    assert seconds[1] < 40 * seconds[0] + 1


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (struct.pack(">i", 2**31 - 1), "header entries"),
        (struct.pack(">i", -1), "header entries"),
        (struct.pack(">iii", 1, 0, 2**31 - 1), "header entry of 2147483647"),
        (struct.pack(">iii", 1, 0, 1) + b"\xff", "UTF-8"),
        (struct.pack(">iq", 0, 2**62), "content length"),
        (struct.pack(">iq", 0, -1), "content length"),
    ],
)
def test_lengths_inside_a_whole_block_are_checked(header: bytes, words: str) -> None:
    body = struct.pack(">ii", 1, 3) + header.ljust(40, b"\x00")
    size = len(body) + 8
    data = b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)

    with pytest.raises(CorruptTableError, match=f"byte 0.*{words}"):
        list(read_blocks(data))


def test_unknown_versions_and_types_are_refused_by_number() -> None:
    data = bytearray(_block("x"))
    data[17] = 9
    with pytest.raises(UnsupportedTableError, match="format version 9"):
        list(read_blocks(bytes(data)))
    data = bytearray(_block("x"))
    data[21] = 42
    with pytest.raises(UnsupportedTableError, match="unknown type 42.*3 AVRO_DATA"):
        list(read_blocks(bytes(data)))


def test_blocks_without_rows_are_refused_by_name() -> None:
    block = LogBlock(BlockType.CDC_DATA, {}, 0, memoryview(b""))

    with pytest.raises(UnsupportedTableError, match="CDC_DATA.*Avro, Parquet and HFile"):
        decode_data_block(block)


def test_a_block_without_an_instant_says_where_it_is() -> None:
    (block,) = read_blocks(encode_block(BlockType.AVRO_DATA, [], b""))

    with pytest.raises(CorruptTableError, match="AVRO_DATA log block at byte 0 names no instant"):
        _ = block.instant_time


def test_a_file_read_piece_by_piece_gives_the_same_places() -> None:
    data = _block("one") + b"#HUDI# torn" + _block("two") + _block("three")[:-1]

    in_memory = list(scan_blocks(BytesSource(data)))

    assert list(scan_blocks(FileSource(pa.PythonFile(pa.BufferReader(data), "r")))) == in_memory
    assert [place.kind.name for place in in_memory] == ["AVRO_DATA", "CORRUPT", "AVRO_DATA", "CORRUPT"]


def test_a_magic_across_two_windows_is_found() -> None:
    data = b"x" * (4 * 1024 * 1024 - 3) + b"#HUDI#"

    assert FileSource(pa.BufferReader(data)).find(b"#HUDI#", 0) == 4 * 1024 * 1024 - 3
    assert FileSource(pa.BufferReader(data)).find(b"#none#", 0) == -1
