"""The records of a slice as they were written, one after the other: nothing is merged.

Serves the log-only read of unmerged records and the reader of a changelog (Hudi table format, meta columns:
``_hoodie_operation``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.base_reader import read_base_file
from hudi_engine.format.merge.log_records import block_rows
from hudi_engine.format.merge.log_scanner import load_blocks, scan_slice
from hudi_engine.format.merge.read_context import ReadContext, rows_in_range
from hudi_engine.format.schema.meta_fields import COMMIT_TIME


def read_unmerged_logs(context: ReadContext, file_slice: FileSlice) -> pa.Table:
    """Return rows of the data blocks of a slice's logs in the order in which they apply; delete blocks hold no rows."""
    return pa.concat_tables([context.schema.empty_table(), *_blocks(context, file_slice)])


def read_changes(
    context: ReadContext, file_slice: FileSlice, *, is_first: bool, skips_base: bool = False
) -> pa.Table:
    """Return what the writes of a slice did: new rows of its base file, then the records of its logs.

    Args:
        context: The read; its schema has ``_hoodie_operation``.
        is_first: It is the oldest one left of its file group, so that rows that its base file took over from older
            slices are told nowhere else.
        skips_base: The rows of its base file are told elsewhere, all of them.
    """
    parts = [context.schema.empty_table()]
    base = file_slice.base_file
    if base is not None and not skips_base:
        rows = read_base_file(context, base)
        if not is_first:
            rows = rows.filter(pc.equal(rows.column(COMMIT_TIME), base.instant))
        parts.append(rows_in_range(context, rows))
    parts.extend(_blocks(context, file_slice))
    return pa.concat_tables(parts)


def _blocks(context: ReadContext, file_slice: FileSlice) -> Iterator[pa.Table]:
    with_rows = [each for each in scan_slice(context, file_slice).blocks if each.place.is_data]
    for block in load_blocks(context, with_rows):
        yield rows_in_range(context, block_rows(context, file_slice, block, context.schema))
