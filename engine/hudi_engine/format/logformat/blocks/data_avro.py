"""Avro data block: version, record count, then every record as a length and an Avro datum.

Source: Hudi table format, Avro data block. Content version 3 is written; 1 and 2, of older Hudi releases,
have the same layout.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.logformat.datums.decode import DatumDecoder
from hudi_engine.format.logformat.datums.encode import encode_datums, frame_datums
from hudi_engine.format.logformat.datums.types import AvroType, compile_schema
from hudi_engine.format.logformat.format import CONTENT_VERSION
from hudi_engine.format.schema.casting import cast_table

_HEAD = struct.Struct(">ii")
_INT = struct.Struct(">i")
_LEGAL_VERSIONS = (1, 2, 3)
_ROWS_AT_ONCE = 65_536
_BYTES_AT_ONCE = 64 * 1024 * 1024


def decode(content: memoryview, schema: str) -> pa.Table:
    """Return rows of the block, typed by the schema they were written with."""
    starts, ends = datum_places(content)
    return decode_datums(pa.py_buffer(content), starts, ends, schema)


def decode_datums(
    data: pa.Buffer, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], schema: str
) -> pa.Table:
    """Return rows of Avro datums that lie in one buffer."""
    values, after = DatumDecoder(data).decode(_compiled(schema), starts)
    if not np.array_equal(after, ends):
        raise CorruptTableError("a record of a log block is longer or shorter than by its schema")
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(values)])


def encode(table: pa.Table, schema: Mapping[str, Any], max_block_bytes: int) -> Iterator[bytes]:
    """Yield contents of as many blocks as the rows need.

    Args:
        max_block_bytes: Most bytes of one content; a single larger row gets a block of its own.
    """
    record = compile_schema(schema)
    typed = cast_table(table, pa.schema(list(record.arrow)))
    limit = max(max_block_bytes - _HEAD.size, 1)
    parts: list[memoryview] = []
    rows = size = 0
    for framed in _framed(typed, record):
        for part, count in _split(framed, limit, size):
            if size and size + len(part) > limit:
                yield _content(parts, rows)
                parts, rows, size = [], 0, 0
            parts.append(part)
            rows += count
            size += len(part)
    if rows:
        yield _content(parts, rows)


@lru_cache(maxsize=64)
def _compiled(schema: str) -> AvroType:
    return compile_schema(schema)


def _content(parts: list[memoryview], rows: int) -> bytes:
    return b"".join([_HEAD.pack(CONTENT_VERSION, rows), *parts])


def datum_places(content: memoryview) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return start and end of every datum."""
    if len(content) < _HEAD.size:
        raise CorruptTableError(
            f"an Avro log block has {len(content)} bytes of content, at least {_HEAD.size} are needed"
        )
    version, count = _HEAD.unpack_from(content, 0)
    if version not in _LEGAL_VERSIONS:
        raise UnsupportedTableError(f"an Avro log block has content version {version}; known are 1, 2 and 3")
    if count < 0 or count > (len(content) - _HEAD.size) // _INT.size:
        raise CorruptTableError(f"an Avro log block of {len(content)} bytes cannot hold {count} records")
    starts = [0] * count
    position = _HEAD.size
    unpack, total = _INT.unpack_from, len(content)
    for row in range(count):
        if position + 4 > total:
            raise CorruptTableError(f"an Avro log block ends at record {row} of {count}")
        length = unpack(content, position)[0]
        starts[row] = position = position + 4
        position += length
        if length < 0 or position > total:
            raise CorruptTableError(
                f"record {row} of an Avro log block has an impossible length of {length} bytes"
            )
    if position != total:
        raise CorruptTableError(f"an Avro log block has {total - position} bytes after its last record")
    begin = np.array(starts, np.int64)
    end = np.append(begin[1:] - 4, total) if count else begin
    return begin, end


def _framed(table: pa.Table, record: AvroType) -> Iterator[pa.BinaryArray]:
    """Yield length-prefixed datums, in steps small enough that no column passes two gigabytes."""
    step = _ROWS_AT_ONCE
    if table.num_rows:
        step = max(1, min(step, _BYTES_AT_ONCE // max(1, table.nbytes // table.num_rows)))
    for batch in table.combine_chunks().to_batches(max_chunksize=step):
        yield frame_datums(encode_datums(batch.to_struct_array(), record))


def _split(framed: pa.BinaryArray, limit: int, used: int) -> Iterator[tuple[memoryview, int]]:
    """Cut ``framed`` into runs of rows; the first fits into what is left of a block with ``used`` bytes."""
    offsets = np.frombuffer(framed.buffers()[1], np.int32)[framed.offset : framed.offset + len(framed) + 1]
    data = memoryview(framed.buffers()[2])
    row, room = 0, limit - used
    while row < len(framed):
        last = int(np.searchsorted(offsets, offsets[row] + room, side="right")) - 1
        if last <= row:
            if room < limit:
                room = limit
                continue
            last = row + 1
        yield data[offsets[row] : offsets[last]], last - row
        row, room = last, limit
