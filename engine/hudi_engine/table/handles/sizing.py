"""How many rows a base file takes."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.options import Options

SAMPLE_ROWS = 5000


def sampled_row_bytes(table: pa.Table, codec: str) -> float:
    """Return bytes a row takes in a Parquet file, at least 1, measured on the first 5,000 rows."""
    sample = table.slice(0, SAMPLE_ROWS)
    if sample.num_rows == 0:
        return 1.0
    sink = io.BytesIO()
    pq.write_table(sample, sink, compression=codec, store_schema=False)
    return max(1.0, float(sink.tell()) / int(sample.num_rows))


@dataclass(frozen=True)
class FileSize:
    """How many rows a base file takes.

    Args:
        max_bytes: Target size of a base file (``hoodie.parquet.max.file.size``).
        most_rows: Rows of a new file (``hoodie.copyonwrite.insert.split.size``); None lets the bytes alone decide
            (``hoodie.copyonwrite.insert.auto.split``).
        row_bytes: Bytes a row takes, learned from commits.
    """

    max_bytes: int
    most_rows: int | None
    row_bytes: int
    codec: str

    @classmethod
    def from_options(cls, options: Options, row_bytes: int, codec: str) -> FileSize:
        """Take the rule from the options of a write."""
        auto = options[FileOptions.INSERT_AUTO_SPLIT]
        most = None if auto else options[FileOptions.INSERT_SPLIT_SIZE]
        return cls(options[FileOptions.MAX_FILE_SIZE], most, row_bytes, codec)

    def rows_per_file(self, sample: pa.Table | None = None) -> int:
        """Return the rows of a new base file, by a sample of them or, without one, by what commits say."""
        row_bytes = float(self.row_bytes) if sample is None else sampled_row_bytes(sample, self.codec)
        rows = max(1, int(self.max_bytes / max(1.0, row_bytes)))
        return rows if self.most_rows is None else min(rows, self.most_rows)

    def room_in(self, size: int) -> int:
        """Return the rows that a file of ``size`` bytes still takes."""
        return max(0, (self.max_bytes - size) // max(1, self.row_bytes))
