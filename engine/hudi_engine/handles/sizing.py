"""How many rows a base file takes."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLE_ROWS = 5000


def sampled_row_bytes(table: pa.Table, codec: str) -> float:
    """Return bytes a row takes in a Parquet file, measured on the first rows of ``table``.

    Args:
        table: Rows as they will be written; only the first 5,000 are looked at.
        codec: Parquet codec.

    Returns:
        Bytes a row, at least 1.
    """
    sample = table.slice(0, SAMPLE_ROWS)
    if sample.num_rows == 0:
        return 1.0
    sink = io.BytesIO()
    pq.write_table(sample, sink, compression=codec, store_schema=False)
    return max(1.0, float(sink.tell()) / int(sample.num_rows))


def rows_per_file(table: pa.Table, codec: str, max_file_bytes: int) -> int:
    """Return rows that fill a base file of ``max_file_bytes`` (inventory: size of a new file by the bytes of its rows)."""
    return max(1, int(max_file_bytes / sampled_row_bytes(table, codec)))
