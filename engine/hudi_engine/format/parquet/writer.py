"""Writing a Parquet file of column chunks that are there already, in other files or in memory.

Source: Apache Parquet, file format; ``parquet.thrift`` (FileMetaData, RowGroup, ColumnChunk).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.format.parquet.chunk import COMPRESSED, UNCOMPRESSED, Chunk
from hudi_engine.format.parquet.file import (
    BYTES,
    COLUMNS,
    FILE_ROWS,
    KEY_VALUES,
    MAGIC,
    META,
    ROW_GROUPS,
    ROWS,
    ChunkFile,
    RowGroup,
)
from hudi_engine.format.parquet.thrift import BINARY, I16, I64, LIST, STRUCT, Struct, write_struct

_GROUP_OFFSET, _GROUP_COMPRESSED, _ORDINAL = 5, 6, 7
_CHUNK_OFFSET = 2
_MAX_ORDINALS = 32_767


class ChunkWriter:
    """A Parquet file under way."""

    def __init__(self, sink: BinaryIO, schema: pa.Schema) -> None:
        self._sink = sink
        self._empty = columns_as_stored(schema)
        self._groups: list[Struct] = []
        self._rows = 0
        self._at = len(MAGIC)
        sink.write(MAGIC)

    @property
    def file(self) -> ChunkFile:
        """The file as far as its schema goes."""
        return self._empty

    def add(self, rows: int, chunks: Sequence[Chunk]) -> None:
        """Write a row group."""
        start = self._at
        places: list[Struct] = []
        for chunk in chunks:
            places.append({_CHUNK_OFFSET: (I64, 0), META: (STRUCT, chunk.placed(self._at))})
            for part in chunk.read():
                self._sink.write(part)
                self._at += len(part)
        group: Struct = {
            COLUMNS: (LIST, (STRUCT, places)),
            BYTES: (I64, sum(each.meta[UNCOMPRESSED][1] for each in chunks)),
            ROWS: (I64, rows),
            _GROUP_OFFSET: (I64, start),
            _GROUP_COMPRESSED: (I64, sum(each.meta[COMPRESSED][1] for each in chunks)),
        }
        if len(self._groups) <= _MAX_ORDINALS:
            group[_ORDINAL] = I16, len(self._groups)
        self._groups.append(group)
        self._rows += rows

    def close(self, key_values: Mapping[str, str]) -> None:
        """Write the footer; the file is whole with it."""
        pairs: list[Struct] = [
            {1: (BINARY, key.encode()), 2: (BINARY, value.encode())} for key, value in key_values.items()
        ]
        meta = {
            **self._empty.meta,
            FILE_ROWS: (I64, self._rows),
            ROW_GROUPS: (LIST, (STRUCT, self._groups)),
            KEY_VALUES: (LIST, (STRUCT, pairs)),
        }
        footer = write_struct(meta)
        self._sink.write(footer + len(footer).to_bytes(4, "little") + MAGIC)


@lru_cache(maxsize=64)
def columns_as_stored(schema: pa.Schema) -> ChunkFile:
    """Return a file without row groups, which shows how pyarrow describes some columns."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    return ChunkFile(pa.BufferReader(sink.getvalue()))


def encoded(rows: pa.Table, writing: Callable[[pa.NativeFile], pq.ParquetWriter]) -> RowGroup:
    """Return rows as a row group."""
    sink = pa.BufferOutputStream()
    with writing(sink) as writer:
        writer.write_table(rows, row_group_size=rows.num_rows)
    (group,) = ChunkFile(pa.BufferReader(sink.getvalue())).groups
    return group
