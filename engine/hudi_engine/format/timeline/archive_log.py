"""Records of the layout 1 archive, ``.commits_.archive.N``.

The files have the framing of log files (magic, block length, header, content, trailing length) with Avro
data blocks whose header carries the schema; content version 3 is written, 1 and 2, of older Hudi releases, have the same
layout. A block that was cut short while it was appended is skipped (Hudi log format).
"""

from __future__ import annotations

import io
import json
import logging
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fastavro

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.schema.avro_limits import decodable
from hudi_engine.format.timeline.archive_schema import ARCHIVED_META_ENTRY

logger = logging.getLogger(__name__)

_MAGIC = b"#HUDI#"
_AVRO_BLOCK = 3
_SCHEMA_HEADER = 2
_FORMAT_VERSION = 1
_CONTENT_VERSION = 3
_LEGAL_VERSIONS = (1, 2, 3)


def read_archive_log(data: bytes, source: str) -> Iterator[dict[str, Any]]:
    """Yield the records of one archive file, oldest first."""
    position = data.find(_MAGIC)
    while position != -1:
        end = _block_end(data, position)
        if end is None:
            logger.warning("%s: skipping an incomplete block at byte %d", source, position)
            position = data.find(_MAGIC, position + len(_MAGIC))
            continue
        try:
            yield from _block_records(data, position, source)
        except (
            struct.error,
            ValueError,
            EOFError,
            LookupError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise CorruptTableError(
                f"{source}: the block at byte {position} cannot be decoded: {error}"
            ) from error
        position = data.find(_MAGIC, end)


def encode_archive(entries: Sequence[Mapping[str, Any]], batch: int = 10) -> bytes:
    """Return the content of an archive file."""
    return b"".join(encode_archive_block(entries[at : at + batch]) for at in range(0, len(entries), batch))


def encode_archive_block(entries: Sequence[Mapping[str, Any]]) -> bytes:
    """Return one block to append to an archive file."""
    parsed = fastavro.parse_schema(ARCHIVED_META_ENTRY)
    records = []
    for entry in entries:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, dict(entry))
        records.append(struct.pack(">i", sink.tell()) + sink.getvalue())
    schema = json.dumps(ARCHIVED_META_ENTRY, separators=(",", ":")).encode()
    content = struct.pack(">ii", _CONTENT_VERSION, len(records)) + b"".join(records)
    body = (
        struct.pack(">iiiii", _FORMAT_VERSION, _AVRO_BLOCK, 1, _SCHEMA_HEADER, len(schema))
        + schema
        + struct.pack(">q", len(content))
        + content
        + struct.pack(">i", 0)
    )
    return _MAGIC + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 14)


def _block_end(data: bytes, start: int) -> int | None:
    """Return where a block ends, None when its length and its trailing length disagree."""
    if start + 14 > len(data):
        return None
    (size,) = struct.unpack_from(">q", data, start + 6)
    end: int = start + 14 + size
    if size < 24 or end > len(data) or struct.unpack_from(">q", data, end - 8)[0] != size + 6:
        return None
    return end


def _block_records(data: bytes, start: int, source: str) -> Iterator[dict[str, Any]]:
    _, kind = struct.unpack_from(">ii", data, start + 14)
    if kind != _AVRO_BLOCK:
        return
    headers, position = _headers(data, start + 22)
    schema = decodable(json.loads(headers[_SCHEMA_HEADER]))
    version, count = struct.unpack_from(">ii", data, position + 8)
    if version not in _LEGAL_VERSIONS:
        raise UnsupportedTableError(
            f"{source}: the data block at byte {start} has content version {version}; known are 1, 2 and 3. Read the "
            "table's history with the Hudi release that wrote it"
        )
    position += 16
    for _ in range(count):
        (length,) = struct.unpack_from(">i", data, position)
        if not 0 < length <= len(data) - position - 4:
            raise ValueError(f"an entry has an impossible length of {length} bytes")
        record = fastavro.schemaless_reader(
            io.BytesIO(data[position + 4 : position + 4 + length]), schema, None
        )
        if not isinstance(record, dict):
            raise ValueError("an entry is no record")
        yield record
        position += 4 + length


def _headers(data: bytes, position: int) -> tuple[dict[int, str], int]:
    (count,) = struct.unpack_from(">i", data, position)
    position += 4
    found = {}
    for _ in range(count):
        key, length = struct.unpack_from(">ii", data, position)
        if not 0 <= length <= len(data) - position - 8:
            raise ValueError(f"a header entry has an impossible length of {length} bytes")
        found[key] = data[position + 8 : position + 8 + length].decode()
        position += 8 + length
    return found, position
