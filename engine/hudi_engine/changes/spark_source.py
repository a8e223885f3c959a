"""`hudi_engine.changes.source` in the words of PySpark's data source API; imported only where Spark has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from hudi_engine.changes.source import FORMAT, ChangeSource, Piece
from hudi_engine.schema.spark_types import arrow_to_spark, spark_to_arrow

_BATCH_ROWS = 65_536


class HudiChanges(DataSource):
    """``spark.read.format("hudi_changes")``; a stream of it is refused by Spark, which names the format."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the table's columns, then ``_change_type`` and ``_commit_time``."""
        return arrow_to_spark(ChangeSource(self.options).columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read once, from option ``start`` to option ``end``."""
        return _BatchReader(ChangeSource(self.options), spark_to_arrow(schema))


def _partitions(source: ChangeSource, start: str, end: str, columns: pa.Schema) -> list[InputPartition]:
    return [InputPartition(piece) for piece in source.pieces(start, end, columns)]


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    piece: Piece = partition.value
    yield from piece.rows().combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)


class _BatchReader(DataSourceReader):
    def __init__(self, source: ChangeSource, columns: pa.Schema) -> None:
        self._source, self._columns = source, columns

    def partitions(self) -> Sequence[InputPartition]:
        start = self._source.first()
        return _partitions(self._source, start, self._source.after(start), self._columns)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)
