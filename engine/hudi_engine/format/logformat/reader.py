"""Reading the blocks of a log file (table versions 4 to 6, 8 and 9).

Source: Hudi table format, log files: framing and the corruption rule. A block counts only when its trailing
length agrees with its size and the next block (or the end of the file) follows it; anything else is skipped
up to the next magic. So a block torn by a crash never fails a read, and a file of garbage is read once, from
front to back. The format has no checksum of a block; Parquet blocks have those of their pages, which
``blocks/data_parquet`` verifies.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator

import pyarrow as pa

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.logformat.blocks import data_avro, data_hfile, data_parquet
from hudi_engine.format.logformat.format import LOG_FORMAT_VERSION, MAGIC, BlockPlace, BlockType, LogBlock
from hudi_engine.format.logformat.source import BytesSource, LogSource

_LOGGER = logging.getLogger(__name__)
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_PAIR = struct.Struct(">ii")
_MIN_SIZE = 32  # version, type, empty header, content length, empty footer, trailing length
_FRAME = len(MAGIC) + _LONG.size


def read_blocks(data: bytes | memoryview) -> Iterator[LogBlock]:
    """Yield all blocks of a log file, in file order; bytes that are no block come as one ``CORRUPT`` block each."""
    whole = data if isinstance(data, bytes) else bytes(data)
    view = memoryview(whole)
    for place in scan_blocks(BytesSource(whole)):
        content = view[place.content_start : place.content_start + place.content_length]
        yield LogBlock(place.kind, place.header, place.offset, content)


def parquet_contents(blocks: Iterable[bytes]) -> list[pa.Buffer]:
    """Return the Parquet files inside of data blocks; what is no block of that kind has none."""
    found = [block for data in blocks for block in read_blocks(data)]
    return [pa.py_buffer(block.content) for block in found if block.kind is BlockType.PARQUET_DATA]


def scan_blocks(source: LogSource) -> Iterator[BlockPlace]:
    """Return where the blocks of a log file lie, without reading their contents."""
    position = 0
    while position < source.size:
        end = _block_end(source, position)
        if end is not None:
            yield _parse_block(source, position, end)
            position = end
            continue
        stop = _next_block(source, position + 1)
        if stop - position >= len(MAGIC):
            _LOGGER.warning("%d bytes at byte %d of a log file are no block", stop - position, position)
            yield BlockPlace(BlockType.CORRUPT, {}, position, position, stop - position)
        position = stop


def decode_data_block(block: LogBlock) -> pa.Table:
    """Return rows of a data block, with the columns and types its writer gave them."""
    if block.kind in (BlockType.AVRO_DATA, BlockType.HFILE_DATA):
        if block.schema is None:
            raise CorruptTableError(
                f"the {block.kind.name} log block at byte {block.offset} has no schema in its header"
            )
        module = data_avro if block.kind is BlockType.AVRO_DATA else data_hfile
        return module.decode(block.content, block.schema)
    if block.kind is BlockType.PARQUET_DATA:
        return data_parquet.decode(block.content, block.schema)
    raise UnsupportedTableError(
        f"a log block of type {block.kind.name} holds no rows; Avro, Parquet and HFile data blocks do"
    )


def _next_block(source: LogSource, position: int) -> int:
    """Start of the next whole block from ``position`` on; the end of the file when there is none."""
    found = source.find(MAGIC, position)
    while found >= 0 and _block_end(source, found) is None:
        found = source.find(MAGIC, found + 1)
    return source.size if found < 0 else found


def _block_end(source: LogSource, start: int) -> int | None:
    """End of the block that starts at ``start``; None when there is no whole block."""
    frame = source.read(start, _FRAME)
    if len(frame) < _FRAME or not frame.startswith(MAGIC):
        return None
    size = int(_LONG.unpack_from(frame, len(MAGIC))[0])
    end = start + _FRAME + size
    if size < _MIN_SIZE or end > source.size:
        return None
    tail = source.read(end - _LONG.size, _LONG.size + len(MAGIC))
    if _LONG.unpack_from(tail)[0] != size + len(MAGIC):
        return None
    following = tail[_LONG.size :]
    return end if len(following) < len(MAGIC) or following == MAGIC else None


def _parse_block(source: LogSource, start: int, end: int) -> BlockPlace:
    limit = end - _LONG.size
    head = _Head(source, start, start + _FRAME, limit)
    version, ordinal = head.pair()
    if version != LOG_FORMAT_VERSION:
        raise UnsupportedTableError(
            f"log block at byte {start} has log format version {version}; "
            f"only {LOG_FORMAT_VERSION} can be read"
        )
    try:
        kind = BlockType(ordinal)
    except ValueError as error:
        legal = ", ".join(f"{member.value} {member.name}" for member in BlockType)
        raise UnsupportedTableError(
            f"log block at byte {start} has the unknown type {ordinal}; known are {legal}"
        ) from error
    header = head.entries()
    length = head.long()
    if length < 0 or length > limit - head.position:
        raise head.corrupt(f"a content length of {length}, {limit - head.position} bytes are left")
    return BlockPlace(kind, header, start, head.position, length)


class _Head:
    """Reads the numbers and texts at the start of a block; nothing is read beyond the block."""

    def __init__(self, source: LogSource, start: int, position: int, limit: int) -> None:
        self._source, self._start, self._limit = source, start, limit
        self.position = position

    def pair(self) -> tuple[int, int]:
        first, second = _PAIR.unpack(self._take(_PAIR.size, "a header that ends early"))
        return int(first), int(second)

    def long(self) -> int:
        return int(_LONG.unpack(self._take(_LONG.size, "no content length"))[0])

    def entries(self) -> dict[int, str]:
        count = int(_INT.unpack(self._take(_INT.size, "no header"))[0])
        if count < 0 or count > (self._limit - self.position) // _PAIR.size:
            raise self.corrupt(f"{count} header entries")
        found: dict[int, str] = {}
        for _ in range(count):
            key, length = self.pair()
            try:
                found[key] = self._take(length, f"a header entry of {length} bytes").decode("utf-8")
            except UnicodeDecodeError as error:
                raise self.corrupt("a header entry that is no UTF-8 text") from error
        return found

    def _take(self, count: int, what: str) -> bytes:
        if count < 0 or count > self._limit - self.position:
            raise self.corrupt(f"{what}, {self._limit - self.position} bytes are left")
        data = self._source.read(self.position, count)
        self.position += count
        return data

    def corrupt(self, what: str) -> CorruptTableError:
        return CorruptTableError(
            f"log block at byte {self._start} is framed as a whole block but has {what}; the file "
            "was damaged later: restore it or roll back its commit"
        )
