"""HFile data block: a complete HFile, sorted by record key, whose values are bare Avro datums.

Source: Hudi table format, HFile data block, and the HFile format of version 3: data blocks one after the
other from the start, each framed by a header, at the end a trailer that names the compression. Only what a
full scan needs is read; indexes, filters and checksums are not.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.logformat.blocks.data_avro import decode_datums

_TRAILER_SIZE = 4096
_TRAILER_MAGIC = b'TRABLK"$'
_DATA_MAGIC = b"DATABLK*"
_SKIPPED_MAGICS = (b"IDXLEAF2", b"BLMFBLK2")
# On-disk and uncompressed size without header, previous block, checksum type, bytes a checksum, on-disk size
# without checksums.
_HEADER = struct.Struct(">8siiqbii")
_LENGTHS = struct.Struct(">ii")
_ROW_LENGTH = struct.Struct(">H")
_KEY_COLUMN = "key"
"""A text column of this name has no values in the datums: Hudi's writer empties it, the cell's key represents them."""
_ANY_TEXT = pc.CastOptions(pa.string(), allow_invalid_utf8=True)
_CODECS = {0: "LZO", 1: "GZ", 2: "NONE", 3: "SNAPPY", 4: "LZ4", 5: "BZIP2", 6: "ZSTD"}
_FILE_INFO_FIELD, _CODEC_FIELD = 1, 12
_WITH_VERSIONS = b"KEY_VALUE_VERSION\x12\x04\x00\x00\x00\x01"
_MAX_BLOCK_BYTES = 1 << 30


@dataclass(frozen=True)
class _Block:
    magic: bytes
    body: bytes
    end: int


def decode(content: memoryview, schema: str) -> pa.Table:
    """Return rows of the block, in the order of their keys."""
    trailer = _trailer(content)
    codec = _CODECS.get(trailer.get(_CODEC_FIELD, 2), str(trailer.get(_CODEC_FIELD)))
    if codec not in ("GZ", "NONE"):
        raise UnsupportedTableError(
            f"an HFile log block is compressed with {codec}; GZ and NONE can be read. Compact the table with the "
            "writer that made it, then read it again"
        )
    info = _block(content, trailer.get(_FILE_INFO_FIELD, 0), codec).body
    versioned = _WITH_VERSIONS in info
    parts: list[bytes] = []
    keys: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    total = 0
    for body in _data_blocks(content, codec):
        for key, start, end in _cells(body, versioned):
            keys.append(total + key)
            starts.append(total + start)
            ends.append(total + end)
        parts.append(body)
        total += len(body)
    data = b"".join(parts)
    rows = decode_datums(pa.py_buffer(data), np.array(starts, np.int64), np.array(ends, np.int64), schema)
    return _with_keys(rows, data, keys, starts)


def _with_keys(rows: pa.Table, data: bytes, keys: Sequence[int], ends: Sequence[int]) -> pa.Table:
    """Fill the column that Hudi's writer empties from the keys of the cells, as Hudi's reader does."""
    place = rows.schema.get_field_index(_KEY_COLUMN)
    if place < 0 or not pa.types.is_string(rows.schema.field(place).type):
        return rows
    emptied = pc.fill_null(pc.equal(rows.column(place), ""), False)
    if not pc.any(emptied).as_py():
        return rows
    texts = [_row_of(data, start, end) for start, end in zip(keys, ends, strict=True)]
    keyed = pa.array(texts, pa.binary()).cast(options=_ANY_TEXT)
    column = pc.if_else(emptied, keyed, rows.column(place))
    return rows.set_column(place, rows.schema.field(place), column)


def _row_of(data: bytes, start: int, end: int) -> bytes:
    """Return the row of a cell's key, which is the record key: its length comes first."""
    first = start + _ROW_LENGTH.size
    if first > end or first + _ROW_LENGTH.unpack_from(data, start)[0] > end:
        raise CorruptTableError("the key of a cell of an HFile log block has an impossible length")
    return data[first : first + _ROW_LENGTH.unpack_from(data, start)[0]]


def _trailer(content: memoryview) -> dict[int, int]:
    """Return numbers of the trailer, by field of its protocol buffer."""
    tail = bytes(content[-_TRAILER_SIZE:])
    if len(tail) < _TRAILER_SIZE or not tail.startswith(_TRAILER_MAGIC):
        raise CorruptTableError(f"an HFile log block of {len(content)} bytes has no trailer")
    size, position = _varint(tail, len(_TRAILER_MAGIC))
    end = position + size
    found: dict[int, int] = {}
    while position < min(end, _TRAILER_SIZE):
        tag, position = _varint(tail, position)
        value, position = _varint(tail, position)
        if tag & 7 == 0:
            found[tag >> 3] = value
        elif tag & 7 == 2:
            position += value
        else:
            raise CorruptTableError(f"the trailer of an HFile log block holds a field of wire type {tag & 7}")
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(position, min(position + 10, len(data))):
        value |= (data[place] & 0x7F) << shift
        shift += 7
        if data[place] < 0x80:
            return value, place + 1
    raise CorruptTableError("the trailer of an HFile log block ends inside a number")


def _data_blocks(content: memoryview, codec: str) -> Iterator[bytes]:
    position = 0
    while position + _HEADER.size <= len(content):
        magic = bytes(content[position : position + len(_DATA_MAGIC)])
        if magic != _DATA_MAGIC and magic not in _SKIPPED_MAGICS:
            return
        block = _block(content, position, codec)
        if block.magic == _DATA_MAGIC:
            yield block.body
        position = block.end


def _block(content: memoryview, position: int, codec: str) -> _Block:
    """Cut a block out by its header; every length is checked first, since it may come from anywhere."""
    if not 0 <= position <= len(content) - _HEADER.size:
        raise CorruptTableError(f"an HFile log block names byte {position} of {len(content)}")
    magic, stored, size, _, _, _, with_header = _HEADER.unpack_from(content, position)
    end = position + _HEADER.size + stored
    stop = position + with_header
    if stored < 0 or not 0 <= size <= _MAX_BLOCK_BYTES or end > len(content):
        raise CorruptTableError(f"the part at byte {position} of an HFile log block has an impossible length")
    if not position + _HEADER.size <= stop <= end:
        raise CorruptTableError(f"the part at byte {position} of an HFile log block has an impossible length")
    body = bytes(content[position + _HEADER.size : stop])
    if codec == "GZ":
        try:
            body = zlib.decompressobj(wbits=31).decompress(body, size + 1)
        except zlib.error as error:
            raise CorruptTableError(
                f"the part at byte {position} of an HFile log block cannot be decompressed: {error}"
            ) from error
    if len(body) != size:
        raise CorruptTableError(f"the part at byte {position} of an HFile log block is not {size} bytes long")
    return _Block(magic, body, end)


def _cells(body: bytes, versioned: bool) -> Iterator[tuple[int, int, int]]:
    """Start of the key, start and end of the value of every cell of a data block."""
    position, total = 0, len(body)
    while position < total:
        if position + _LENGTHS.size > total:
            raise CorruptTableError("an HFile log block ends inside a cell")
        key, value = _LENGTHS.unpack_from(body, position)
        start = position + _LENGTHS.size + key
        position = start + value
        if key < 0 or value < 0 or position > total - versioned:
            raise CorruptTableError("a cell of an HFile log block has an impossible length")
        yield start - key, start, position
        if versioned:
            position += _version_size(body[position])


def _version_size(first: int) -> int:
    """Return bytes of a number in Hadoop's variable length form, from its first byte."""
    if first < 0x80 or first >= 0x90:
        return 1
    return 0x91 - first if first >= 0x88 else 0x89 - first
