"""Writing the blocks of a log file (the bytes are the same for table versions 6, 8 and 9).

Source: Hudi table format, log files. Every function returns whole blocks; a log file is their concatenation.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.enums import LogBlockFormat, ParquetCodec
from hudi_engine.format.logformat.blocks import data_avro, data_parquet, delete
from hudi_engine.format.logformat.format import (
    LOG_FORMAT_VERSION,
    MAGIC,
    ROLLBACK_COMMAND,
    BlockType,
    HeaderKey,
)
from hudi_engine.format.schema.nested import one_array

MAX_BLOCK_BYTES = 256 * 1024 * 1024


def encode_data_blocks(
    table: pa.Table,
    avro_schema_with_meta: Mapping[str, Any],
    instant: str,
    *,
    block_format: str = LogBlockFormat.AVRO,
    max_block_bytes: int = MAX_BLOCK_BYTES,
    codec: ParquetCodec = ParquetCodec.ZSTD,
    extra_header: Iterable[tuple[HeaderKey, str]] = (),
) -> list[bytes]:
    """Return data blocks that hold the rows of ``table`` in their order.

    Args:
        block_format: ``avro`` or ``parquet``.
        max_block_bytes: Most bytes of one block's content; larger tables give several blocks.
        extra_header: Further header entries, for example the instants that a log compaction packs together.
    """
    if max_block_bytes < 1:
        raise ConfigError(f"max_block_bytes is {max_block_bytes}; it must be at least 1")
    header = [
        (HeaderKey.INSTANT_TIME, instant),
        (HeaderKey.SCHEMA, json.dumps(avro_schema_with_meta, separators=(",", ":"))),
        *extra_header,
    ]
    if table.num_rows == 0:
        return []
    if block_format == LogBlockFormat.AVRO:
        contents: Iterable[bytes] = data_avro.encode(table, avro_schema_with_meta, max_block_bytes)
        return [encode_block(BlockType.AVRO_DATA, header, content) for content in contents]
    if block_format == LogBlockFormat.PARQUET:
        rows = _rows_of(table.num_rows, table.nbytes, max_block_bytes)
        pieces = (table.slice(start, rows) for start in range(0, table.num_rows, rows))
        contents = (data_parquet.encode(piece, codec) for piece in pieces)
        return [encode_block(BlockType.PARQUET_DATA, header, content) for content in contents]
    raise ConfigError(
        f"block format {block_format!r} is not known; legal values: {', '.join(LogBlockFormat)}"
    )


def encode_delete_blocks(
    record_keys: pa.Array | pa.ChunkedArray,
    partition_paths: pa.Array | pa.ChunkedArray,
    ordering_values: pa.Array | pa.ChunkedArray | Sequence[pa.Array | pa.ChunkedArray] | None,
    instant: str,
    avro_schema: Mapping[str, Any] | None = None,
    *,
    max_block_bytes: int = MAX_BLOCK_BYTES,
) -> list[bytes]:
    """Return delete blocks that hold the keys in their order; no keys give no block.

    Args:
        ordering_values: Ordering value of each delete; None, or a null, means that the delete wins over
            everything before it. A struct array or a sequence of arrays represents several ordering fields.
        max_block_bytes: About the most bytes of one block's content; more keys give several blocks.
    """
    if ordering_values is None:
        several: list[pa.Array] = []
    elif isinstance(ordering_values, (pa.Array, pa.ChunkedArray)):
        values = one_array(ordering_values)
        several = values.flatten() if pa.types.is_struct(values.type) else [values]
    else:
        several = [one_array(values) for values in ordering_values]
    header = [(HeaderKey.INSTANT_TIME, instant)]
    if avro_schema is not None:
        header.append((HeaderKey.SCHEMA, json.dumps(avro_schema, separators=(",", ":"))))
    columns = [one_array(record_keys), one_array(partition_paths), *several]
    step = _rows_of(len(record_keys), sum(column.nbytes for column in columns), max_block_bytes)
    blocks = []
    for start in range(0, len(record_keys), step):
        keys, partitions, *ordering = (column.slice(start, step) for column in columns)
        blocks.append(encode_block(BlockType.DELETE, header, delete.encode(keys, partitions, ordering)))
    return blocks


def _rows_of(rows: int, size: int, max_block_bytes: int) -> int:
    """Return how many rows a block takes when all of them have ``size`` bytes."""
    return max(1, int(rows * min(1.0, max_block_bytes / max(size, 1))))


def encode_rollback_block(instant: str, target_instant: str) -> bytes:
    """Return a command block that makes readers ignore the blocks of ``target_instant`` in the same file slice."""
    header = [
        (HeaderKey.INSTANT_TIME, instant),
        (HeaderKey.COMMAND_BLOCK_TYPE, ROLLBACK_COMMAND),
        (HeaderKey.TARGET_INSTANT_TIME, target_instant),
    ]
    return encode_block(BlockType.COMMAND, header, b"")


def encode_block(kind: BlockType, header: Iterable[tuple[HeaderKey, str]], content: bytes) -> bytes:
    """Frame one block."""
    entries = [(int(key), value.encode("utf-8")) for key, value in header]
    parts = [struct.pack(">iii", LOG_FORMAT_VERSION, kind, len(entries))]
    parts.extend(struct.pack(">ii", key, len(value)) + value for key, value in entries)
    parts.append(struct.pack(">q", len(content)))
    size = sum(map(len, parts)) + len(content) + 4 + 8
    footer_and_trailer = struct.pack(">iq", 0, size + len(MAGIC))
    return b"".join([MAGIC, struct.pack(">q", size), *parts, content, footer_and_trailer])
