"""Write an HFile of version 3 as Hudi 1.1 and later write it.

Source: Hudi table format, HFile. Blocks hold at most 64 KiB before compression: Hudi's reader takes the bytes of the
checksums off the end of a block, so that it would lose the last cells of a larger one.
"""

from __future__ import annotations

import base64
import gzip
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import DataError
from hudi_engine.format.hfile.file import (
    AFTER_KEY,
    DATA_MAGIC,
    GZ,
    HEADER,
    INDEX_MAGIC,
    INDEX_PLACE,
    INFO_MAGIC,
    INFO_PREFIX,
    KEY_LENGTH,
    META_MAGIC,
    NO_CHECKSUMS,
    ROW_LENGTH,
    TRAILER_BYTES,
    TRAILER_MAGIC,
    VALUE_LENGTH,
)

BLOCK_BYTES = 64 * 1024
MAX_KEY_BYTES = 32767
_CHECKSUM_BYTES = 16384
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_SHORTEST_GZIP = 1
_ROWS_AT_ONCE = 1 << 18


class DataBlock(NamedTuple):
    """A block of cells.

    Args:
        first: Its first key.
        plain: Bytes of its cells before compression.
        stored: All that is stored of it: header, compressed cells and room for checksums.
    """

    first: bytes
    plain: int
    stored: bytes


@dataclass(frozen=True)
class HFileContent:
    """What an HFile holds.

    Args:
        blocks: Its blocks of cells, in the order of keys.
        count: Number of its cells.
        last: Its last key, empty where there is none.
        lengths: Average bytes of a key and of a value.
    """

    blocks: Iterable[DataBlock]
    count: int
    last: bytes
    lengths: tuple[int, int]


@dataclass
class _Parts:
    """The bytes of a file so far."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, block: bytes) -> tuple[int, int]:
        """Append a block; gives where it starts and its bytes."""
        start = self.size
        self.pieces.append(block)
        self.size += len(block)
        return start, len(block)


def encode_hfile(
    keys: pa.Array,
    values: pa.Array,
    schema: str,
    *,
    bloom_filter: tuple[str, bytes] | None = None,
    is_base_file: bool = False,
) -> bytes:
    """Return an HFile.

    Args:
        keys: Keys as binary values, ascending by their bytes, each once.
        values: Avro datums, one for each key; or codes of a dictionary of datums.
        schema: Avro schema of the values.
        bloom_filter: Type code and serialized filter of the keys, which base files may have.
        is_base_file: Whether the smallest and the largest key are named, as in the base files of a table.

    Raises:
        DataError: for a key of more than 32,767 bytes, or keys that are not ascending.
    """
    _check_keys(keys)
    count = len(keys)
    lengths = [
        pc.sum(each).as_py() // count if count else 0 for each in (pc.binary_length(keys), _lengths(values))
    ]
    content = HFileContent(
        data_blocks(keys, values), count, keys[-1].as_py() if count else b"", (lengths[0], lengths[1])
    )
    return encode_content(content, schema, bloom_filter=bloom_filter, is_base_file=is_base_file)


def encode_content(
    content: HFileContent,
    schema: str,
    *,
    bloom_filter: tuple[str, bytes] | None = None,
    is_base_file: bool = False,
) -> bytes:
    """Return an HFile of blocks; arguments as `encode_hfile` has them."""
    parts = _Parts()
    index, plain = [], 0
    for block in content.blocks:
        index.append((*parts.add(block.stored), ROW_LENGTH.pack(len(block.first)) + block.first))
        plain += block.plain
    first = index[0][2][ROW_LENGTH.size :] if index else b""
    metas = []
    if bloom_filter is not None:
        metas.append((*parts.add(_block(META_MAGIC, base64.b64encode(bloom_filter[1]))), b"bloomFilter"))
    index_at, _ = parts.add(_block(INDEX_MAGIC, b"".join(_index_entry(*each) for each in index)))
    parts.add(_block(INDEX_MAGIC, b"".join(_index_entry(*each) for each in metas)))
    info = _file_info(content, schema)
    if is_base_file:
        info.update({"minRecordKey": first, "maxRecordKey": content.last})
    if bloom_filter is not None:
        info["bloomFilterTypeCode"] = bloom_filter[0].encode()
    info_at, _ = parts.add(_block(INFO_MAGIC, INFO_PREFIX + _delimited(_info_message(info))))
    trailer = (
        (1, info_at),
        (2, index_at),
        (3, plain),
        (5, len(index)),
        (6, len(metas)),
        (7, content.count),
        (8, 1),
        (9, index[0][0] if index else (1 << 64) - 1),
        (10, index[-1][0] if index else 0),
        (11, _COMPARATOR),
        (12, GZ),
    )
    message = _delimited(b"".join(_protobuf(number, value) for number, value in trailer))
    parts.pieces.append((TRAILER_MAGIC + message).ljust(TRAILER_BYTES - 4, b"\x00") + struct.pack(">i", 3))
    return b"".join(parts.pieces)


def _block(magic: bytes, body: bytes) -> bytes:
    packed = gzip.compress(body, compresslevel=_SHORTEST_GZIP, mtime=0)
    with_header = HEADER.size + len(packed)
    checksums = bytes(4 * -(-with_header // _CHECKSUM_BYTES))
    head = HEADER.pack(
        magic, len(packed) + len(checksums), len(body), -1, NO_CHECKSUMS, _CHECKSUM_BYTES, with_header
    )
    return head + packed + checksums


def _check_keys(keys: pa.Array) -> None:
    if len(keys) == 0:
        return
    longest = pc.max(pc.binary_length(keys)).as_py()
    if longest > MAX_KEY_BYTES:
        raise DataError(f"a key has {longest} bytes; a key of the metadata table has at most {MAX_KEY_BYTES}")
    if len(keys) > 1 and not pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py():
        raise DataError("the keys of an HFile are not ascending, or one is there twice")


def data_blocks(keys: pa.Array, values: pa.Array) -> Iterator[DataBlock]:
    """Yield the blocks of cells, as `encode_hfile` takes them."""
    for start in range(0, len(keys), _ROWS_AT_ONCE):
        some = keys.slice(start, _ROWS_AT_ONCE)
        cells = _cells(some, values.slice(start, _ROWS_AT_ONCE))
        ends = np.frombuffer(cells.buffers()[1], np.int32, len(cells) + 1, cells.offset * 4)
        data = memoryview(cells.buffers()[2])
        row = 0
        while row < len(cells):
            stop = max(row + 1, int(np.searchsorted(ends, ends[row] + BLOCK_BYTES, "right")) - 1)
            body = bytes(data[ends[row] : ends[stop]])
            yield DataBlock(some[row].as_py(), len(body), _block(DATA_MAGIC, body))
            row = stop


def _cells(keys: pa.Array, values: pa.Array) -> pa.BinaryArray:
    """Return each cell: lengths of its key's part and value, key with its own length, value, version 0."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    lengths = np.asarray(pc.binary_length(keys))
    head = np.empty((len(keys), 10), np.uint8)
    head[:, 0:4] = (lengths + 12).astype(">i4").view(np.uint8).reshape(-1, 4)
    head[:, 4:8] = np.asarray(pc.binary_length(values)).astype(">i4").view(np.uint8).reshape(-1, 4)
    head[:, 8:10] = lengths.astype(">i2").view(np.uint8).reshape(-1, 2)
    heads = pa.FixedSizeBinaryArray.from_buffers(pa.binary(10), len(keys), [None, pa.py_buffer(head)])
    constants = (pa.scalar(each, pa.binary()) for each in (AFTER_KEY, b"\x00", b""))
    after, version, separator = constants
    return pc.binary_join_element_wise(heads.cast(pa.binary()), keys, after, values, version, separator)


def _file_info(content: HFileContent, schema: str) -> dict[str, bytes]:
    key_length, value_length = content.lengths
    return {
        "KEY_VALUE_VERSION": struct.pack(">i", 1),
        "MAX_MEMSTORE_TS_KEY": bytes(8),
        KEY_LENGTH: struct.pack(">i", key_length),
        VALUE_LENGTH: struct.pack(">i", value_length),
        "hfile.CREATE_TIME_TS": struct.pack(">q", time.time_ns() // 1_000_000),
        # A last key without bytes ends HBase's reader, that of Hudi 0.x and 1.0; its writer names none in an empty file.
        **({"hfile.LASTKEY": ROW_LENGTH.pack(len(content.last)) + content.last} if content.count else {}),
        "schema": schema.encode(),
    }


def _lengths(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.DictionaryArray):
        return pc.binary_length(values.dictionary).take(values.indices)
    return pc.binary_length(values)


def _info_message(info: Mapping[str, bytes]) -> bytes:
    return b"".join(
        _protobuf(1, _protobuf(1, name.encode()) + _protobuf(2, value)) for name, value in info.items()
    )


def _index_entry(offset: int, size: int, key: bytes) -> bytes:
    return INDEX_PLACE.pack(offset, size) + _hadoop_int(len(key)) + key


def _hadoop_int(value: int) -> bytes:
    """Return a number of 0 or more in Hadoop's variable length form."""
    if value <= 127:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + value.to_bytes(size, "big")


def _protobuf(number: int, value: Any) -> bytes:
    """Return one field of a protocol buffer message: a number, or bytes with their length."""
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _delimited(value)
    return _varint(number << 3) + _varint(value)


def _delimited(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
