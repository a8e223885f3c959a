"""What reading a file slice needs to know, as one frozen value that can be shipped to an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.internal_schema import SchemaHistory
from hudi_engine.format.schema.meta_fields import COMMIT_TIME
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.worker import rows_at_once

InstantRange = tuple[str | None, str | None] | frozenset[str]
"""(start, end], either end open; or the instants themselves, where requested times do not say it."""

DEFAULT_MEMORY_LIMIT_BYTES = 100 * 1024 * 1024


@dataclass(frozen=True)
class ReadContext:
    """The fixed facts of one read.

    Args:
        schema: Columns of the table, the five meta columns first.
        is_committed: Whether a requested instant time is committed; picklable.
        as_of: Newest requested time that counts, None for now.
        memory_limit_bytes: Log records, or rows of a batch for one file, beyond this many bytes are merged on disk.
        spill_dir: Folder for that, None for the system's temp folder.
        instant_range: Only rows whose commit time lies in it are read, before anything is merged; None for
            all.
        stops_after: From the first log block of a later instant on nothing of a slice's logs is read; None for
            no such end. Hudi 0.x reads so.
        schema_history: Column ids of a table that was altered by schema on read, None for other tables.
        defaults: What Hudi takes for no value in columns of records of logs where this engine takes null; not merged.
        fills_by: Avro schema whose defaults are in columns that Avro and HFile blocks are older than; None for nulls.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    is_committed: Callable[[str], bool]
    as_of: str | None = None
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES
    spill_dir: str | None = None
    instant_range: InstantRange | None = None
    schema_history: SchemaHistory | None = None
    stops_after: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fills_by: str | None = None

    @property
    def bytes_at_once(self) -> int:
        """Bytes of log records or of a batch that this process may hold: those requested, less where its memory is limited."""
        return rows_at_once(self.memory_limit_bytes)

    def is_visible(self, instant: str) -> bool:
        """Return whether log blocks of ``instant`` count in this read."""
        if self.as_of is not None and instant > self.as_of:
            return False
        return self.is_committed(instant)


def in_instant_range(commit_times: pa.ChunkedArray, instants: InstantRange) -> pa.ChunkedArray:
    """Return which rows a range of instants lets through, by their commit time."""
    if isinstance(instants, frozenset):
        return pc.is_in(commit_times, value_set=pa.array(sorted(instants), pa.string()))
    start, end = instants
    inside = pc.is_valid(commit_times)
    if start is not None:
        inside = pc.and_kleene(inside, pc.greater(commit_times, start))
    if end is not None:
        inside = pc.and_kleene(inside, pc.less_equal(commit_times, end))
    return pc.fill_null(inside, False)


def rows_in_range(context: ReadContext, rows: pa.Table) -> pa.Table:
    """Return the rows that the instant range of a read lets through, all without one."""
    if context.instant_range is None:
        return rows
    return rows.filter(in_instant_range(rows.column(COMMIT_TIME), context.instant_range))


def range_allows(instant: str, instants: InstantRange | None) -> bool:
    """Return whether blocks of ``instant`` can hold rows of the range."""
    if instants is None:
        return True
    if isinstance(instants, frozenset):
        return instant in instants
    start, end = instants
    return (start is None or instant > start) and (end is None or instant <= end)
