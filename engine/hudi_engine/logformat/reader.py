"""Reading the blocks of a log file (table versions 6, 8 and 9).

Source: Hudi table format, log files: framing and the corruption rule. A block counts only when its trailing
length agrees with its size and the next block (or the end of the file) follows it; anything else is skipped
up to the next magic. So a block torn by a crash never fails a read, and a file of garbage is read once, from
front to back.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator, Mapping

import pyarrow as pa

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.logformat.blocks import data_avro, data_parquet
from hudi_engine.logformat.format import LOG_FORMAT_VERSION, MAGIC, BlockType, LogBlock

_LOGGER = logging.getLogger(__name__)
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_PAIR = struct.Struct(">ii")
_MIN_SIZE = 32  # version, type, empty header, content length, empty footer, trailing length
_FRAME = len(MAGIC) + _LONG.size


def read_blocks(data: bytes | memoryview) -> Iterator[LogBlock]:
    """All blocks of a log file, in file order; bytes that are no block come as one ``CORRUPT`` block each.

    Args:
        data: The whole file. Contents are views into it, nothing is copied.

    Raises:
        CorruptTableError: A block is framed rightly, but its header does not fit into it.
        UnsupportedTableError: A block has a log format version or a type that this engine does not know.
    """
    whole = data if isinstance(data, bytes) else bytes(data)
    view = memoryview(whole)
    position = 0
    while position < len(whole):
        end = _block_end(whole, position)
        if end is not None:
            yield _parse_block(whole, view, position, end)
            position = end
            continue
        following = whole.find(MAGIC, position + 1)
        stop = len(whole) if following < 0 else following
        if stop - position >= len(MAGIC):
            _LOGGER.warning("%d bytes at byte %d of a log file are no block", stop - position, position)
            yield LogBlock(BlockType.CORRUPT, {}, view[position:stop], position)
        position = stop


def decode_data_block(block: LogBlock) -> pa.Table:
    """Rows of a data block, with the columns and types its writer gave them.

    Args:
        block: A block of type AVRO_DATA or PARQUET_DATA.

    Raises:
        CorruptTableError: The content is truncated or inconsistent.
        UnsupportedTableError: The block is of another type, HFile for example.
    """
    if block.kind is BlockType.AVRO_DATA:
        if block.schema is None:
            raise CorruptTableError(f"the Avro log block at byte {block.offset} has no schema in its header")
        return data_avro.decode(block.content, block.schema)
    if block.kind is BlockType.PARQUET_DATA:
        return data_parquet.decode(block.content)
    raise UnsupportedTableError(
        f"a log block of type {block.kind.name} cannot be read as rows; Avro and Parquet data blocks can. "
        "Compact the table with the writer that made it, then read it again"
    )


def _block_end(data: bytes, start: int) -> int | None:
    """End of the block that starts at ``start``; None when there is no whole block."""
    if start + _FRAME > len(data) or data[start : start + len(MAGIC)] != MAGIC:
        return None
    size = _LONG.unpack_from(data, start + len(MAGIC))[0]
    end = start + _FRAME + int(size)
    if size < _MIN_SIZE or end > len(data):
        return None
    if _LONG.unpack_from(data, end - _LONG.size)[0] != size + len(MAGIC):
        return None
    if len(data) - end >= len(MAGIC) and data[end : end + len(MAGIC)] != MAGIC:
        return None
    return end


def _parse_block(data: bytes, view: memoryview, start: int, end: int) -> LogBlock:
    version, ordinal = _PAIR.unpack_from(data, start + _FRAME)
    if version != LOG_FORMAT_VERSION:
        raise UnsupportedTableError(
            f"log block at byte {start} has log format version {version}; only {LOG_FORMAT_VERSION} can be read"
        )
    try:
        kind = BlockType(ordinal)
    except ValueError as error:
        legal = ", ".join(f"{member.value} {member.name}" for member in BlockType)
        raise UnsupportedTableError(
            f"log block at byte {start} has the unknown type {ordinal}; known are {legal}"
        ) from error
    limit = end - _LONG.size
    header, position = _parse_entries(data, start + _FRAME + _PAIR.size, limit, start)
    if position + _LONG.size > limit:
        raise _corrupt(start, "no content length")
    length = _LONG.unpack_from(data, position)[0]
    content_start = position + _LONG.size
    if length < 0 or length > limit - content_start:
        raise _corrupt(start, f"a content length of {length}, {limit - content_start} bytes are left")
    return LogBlock(kind, header, view[content_start : content_start + length], start)


def _parse_entries(data: bytes, position: int, limit: int, start: int) -> tuple[Mapping[int, str], int]:
    if position + _INT.size > limit:
        raise _corrupt(start, "no header")
    count = _INT.unpack_from(data, position)[0]
    position += _INT.size
    if count < 0 or count > (limit - position) // _PAIR.size:
        raise _corrupt(start, f"{count} header entries")
    entries: dict[int, str] = {}
    for _ in range(count):
        if position + _PAIR.size > limit:
            raise _corrupt(start, f"fewer than {count} header entries")
        key, length = _PAIR.unpack_from(data, position)
        position += _PAIR.size
        if length < 0 or length > limit - position:
            raise _corrupt(start, f"a header entry of {length} bytes, {limit - position} are left")
        try:
            entries[key] = data[position : position + length].decode("utf-8")
        except UnicodeDecodeError as error:
            raise _corrupt(start, "a header entry that is no UTF-8 text") from error
        position += length
    return entries, position


def _corrupt(start: int, what: str) -> CorruptTableError:
    return CorruptTableError(
        f"log block at byte {start} is framed as a whole block but has {what}; the file was damaged later: "
        "restore it or roll back its commit"
    )
