"""Everything a file-writing task needs to know, as one frozen value that can be shipped to an executor."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.handles.base_file_options import BaseFileOptions, FileSize


@dataclass(frozen=True)
class WriteContext:
    """The fixed facts of one write.

    Args:
        action: Timeline action: ``commit``, ``deltacommit`` or ``replacecommit``.
        operation: Hudi's operation name, e.g. ``UPSERT``.
        schema: The table's schema after this write, the five meta columns first.
        avro_schema: The same as an Avro record, meta fields included.
        read: How slices of the table are read while merging.
        average_row_bytes: Bytes a row takes in a base file, learned from commits.
        layout: Order of rows in new files of a bulk load.
        examples: How many rows of each kind of change a planned write shows of a file.
        receipts: Whether tasks hash the rows that come and go.
    """

    storage: Storage
    config: TableConfig
    options: Options
    instant: str
    action: str
    operation: str
    schema: pa.Schema
    avro_schema: dict[str, object]
    read: ReadContext
    base_files: BaseFileOptions
    average_row_bytes: int
    layout: RowLayout = RowLayout()
    examples: int = 0
    receipts: bool = False

    @property
    def file_size(self) -> FileSize:
        """How many rows a base file takes."""
        return FileSize.from_options(self.options, self.average_row_bytes, self.base_files.parquet_codec)
