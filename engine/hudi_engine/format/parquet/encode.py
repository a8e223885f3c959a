"""Rows as the column chunks of one row group, in memory."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.format.parquet.file import ChunkFile, RowGroup


def encoded(rows: pa.Table, writing: Callable[[pa.NativeFile], pq.ParquetWriter]) -> RowGroup:
    """Return rows as a row group.

    Args:
        writing: Makes the writer that encodes them, for a file in memory.
    """
    sink = pa.BufferOutputStream()
    with writing(sink) as writer:
        writer.write_table(rows, row_group_size=rows.num_rows)
    (group,) = ChunkFile(pa.BufferReader(sink.getvalue())).groups
    return group
