"""`hudi_engine.spark.changes.source` in the words of PySpark's data source API; imported only where Spark has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.storage.given import StoreAccess
from hudi_engine.spark.changes.source import FORMAT, ChangeSource, batches_of
from hudi_engine.spark.schema.spark_types import arrow_to_spark, spark_to_arrow


class HudiChanges(DataSource):
    """``spark.read.format("hudi_changes")``, and ``spark.readStream`` from Spark 4.2 on."""

    _told: StoreAccess | None = None
    _chosen = True
    """Whether the columns are those of a schema that was given; Spark asks for them where none was."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the table's columns, then ``_change_type`` and ``_commit_time``."""
        self._chosen = False
        return arrow_to_spark(self._source().columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read once, from option ``start`` to option ``end``."""
        return _BatchReader(self._source(), spark_to_arrow(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Read on, batch by batch.

        Raises:
            UnsupportedTableError: Spark is older than 4.2, whose streams tell a source of Python nothing of where they are.
        """
        try:
            from hudi_engine.spark.changes.spark_stream import ChangeStream
        except ImportError as error:
            raise UnsupportedTableError(
                f"a stream of {FORMAT} needs Spark 4.2 or newer; use table.changes(start, end) in a loop with "
                "table.next_window(start)"
            ) from error
        return ChangeStream(self._source(), spark_to_arrow(schema))

    def _source(self) -> ChangeSource:
        return ChangeSource(self.options, self._told, chosen=self._chosen)


def source_that_knows(told: StoreAccess) -> type[HudiChanges]:
    """Return the source for processes that were told nothing, as those are in which Spark plans.

    Args:
        told: How to get to places of stores.
    """

    class KnowingChanges(HudiChanges):
        _told = told

    return KnowingChanges


class _BatchReader(DataSourceReader):
    def __init__(self, source: ChangeSource, columns: pa.Schema) -> None:
        self._source, self._columns = source, columns

    def partitions(self) -> Sequence[InputPartition]:
        start = self._source.first()
        end = self._source.after(start, self._source.limits)
        return [InputPartition(piece) for piece in self._source.pieces(start, end, self._columns)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches_of(partition.value)
