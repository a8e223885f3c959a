"""``spark.readStream.format("hudi_changes")``; imported only where Spark's sources of Python have offsets and limits (4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from hudi_engine.errors import HistoryGapError, TimelineError
from hudi_engine.spark.changes.source import INSTANT, ChangeSource, batches_of
from hudi_engine.table.changes.checkpoint import WindowLimits
from hudi_engine.table.changes.gaps import KEEPING

_OWN_LIMITS = ReadMaxRows(1)
"""What asks for the limits of the source: Spark knows none of commits, and hands back what it was given."""


class ChangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream whose offsets are instants; Spark's checkpoint holds them."""

    def __init__(self, source: ChangeSource, columns: pa.Schema) -> None:
        self._source, self._columns = source, columns
        self._target: str | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Return where a new stream begins."""
        return {INSTANT: self._source.first()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the newest instant, at which a stream of the trigger ``availableNow`` ends.

        A write under way that lies behind the stream holds nothing up, and one before it ends each batch by itself.
        """
        self._target = self._source.newest()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return what stands for the source's own limits."""
        return _OWN_LIMITS

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """Return where the next batch ends; the start when nothing is new."""
        limits = WindowLimits() if isinstance(limit, ReadAllAvailable) else self._source.limits
        return {INSTANT: self._source.after(start[INSTANT], limits, self._target or None)}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Return the parts of a batch.

        Raises:
            HistoryGapError: What the batch needs is gone, and Spark's checkpoint would ask for it again.
        """
        begin, last = start[INSTANT], end[INSTANT]
        try:
            return [InputPartition(piece) for piece in self._source.pieces(begin, last, self._columns)]
        except TimelineError as error:
            cleaned_end = HistoryGapError(str(error), begin, advice=KEEPING)
            gap = error if isinstance(error, HistoryGapError) else cleaned_end
            advice = (
                "A restart would ask for the same batch, which Spark's checkpoint names: begin anew with another "
                "checkpointLocation, and with the option start where the follower stands or 'earliest' for all rows"
            )
            raise HistoryGapError(
                f"the stream cannot tell its batch from {begin or 'the beginning'} to {last}: {gap.lost}",
                begin,
                gap.oldest,
                f"{advice}. {KEEPING}" if KEEPING in gap.advice else advice,
            ) from None  # Spark shows causes too, and the advice of this one is for batches

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of a part; runs in a Spark task."""
        return batches_of(partition.value)
