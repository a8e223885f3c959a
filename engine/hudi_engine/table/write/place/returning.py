"""Rows of a key that the log of their slice has deleted, and that come back with an ordering value that is not the newest.

A log cannot bring such a row back: readers compare it with the delete, or with the row that still is in the base file, and
Apache Hudi 0.15, 1.2 and hudi-rs do not agree which of them wins. In a base file written anew there is neither, so all
readers see what a copy-on-write table shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import DataError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.base_reader import read_base_file
from hudi_engine.format.merge.delete_marker import can_delete
from hudi_engine.format.merge.log_scanner import scan_slice
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.ordering import newer_wins
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.slice_reader import scan_logs
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.unit import PartitionUnit


def brings_back(task: WriteTask, unit: PartitionUnit, file_slice: FileSlice, rows: pa.Table) -> bool:
    """Tell whether a row has to be in the base file, as its key was deleted in the log and it is older than what was there.

    Args:
        rows: Rows for its log, none of them a delete; their record keys and ordering columns are enough.

    Raises:
        DataError: It cannot be: a compaction of the file group is pending, which reads the base file, or the table is in
            changelog mode, where a base file takes no changes in.
    """
    context = task.context
    config = context.config
    fields = [name for name in config.ordering_fields if name in rows.column_names]
    if config.table_type is not TableType.MERGE_ON_READ:
        return False
    if not (fields and file_slice.log_files and rows.num_rows and merge_rule(config).compares):
        return False
    if not (can_delete(context.read.schema, config) or scan_slice(context.read, file_slice).has_deletes):
        return False
    found = scan_logs(context.read, file_slice, columns=[RECORD_KEY, *fields]).winners
    gone = found.take(np.flatnonzero(found.deleted & _among(found.keys, rows)))
    if not len(gone):
        return False
    loses = _older(rows, gone.rows.append_column("__key", gone.keys), "__key", fields, ~gone.always)
    if file_slice.base_file is not None:
        stored = read_base_file(context.read, file_slice.base_file, columns=[RECORD_KEY, *fields])
        stored = stored.filter(pc.is_in(stored.column(RECORD_KEY), value_set=gone.keys.combine_chunks()))
        loses |= _older(rows, stored, RECORD_KEY, fields, np.ones(stored.num_rows, dtype=bool))
    if loses and (config.keeps_operations or file_slice.file_id in unit.frozen):
        reason = (
            "the table is in changelog mode" if config.keeps_operations else "a compaction of it is pending"
        )
        raise DataError(
            f"rows of file group {file_slice.file_id!r} in partition {unit.partition!r} bring back deleted keys with a smaller "
            f"{', '.join(fields)} than the deleted rows had, which a log cannot, and {reason}. Give them a value that is not "
            "smaller, or run the compaction (compact()) and write again"
        )
    return loses


def _among(keys: pa.ChunkedArray, rows: pa.Table) -> npt.NDArray[Any]:
    return np.asarray(pc.is_in(keys, value_set=rows.column(RECORD_KEY).combine_chunks())).astype(bool)


def _older(rows: pa.Table, known: pa.Table, key: str, fields: list[str], counts: npt.NDArray[Any]) -> bool:
    """Tell whether a row has a smaller ordering value than one of the ``known`` rows with its key that count."""
    known = known.filter(pa.array(counts))
    if known.num_rows == 0:
        return False
    places = pc.index_in(known.column(key), value_set=rows.column(RECORD_KEY).combine_chunks())
    same = taken(rows, places)
    wins = newer_wins([known.column(name) for name in fields], [same.column(name) for name in fields])
    return not bool(wins.all())
