"""Which rows of a batch delete."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import DataError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.delete_marker import delete_mask, ordering_values
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.handles.append import LogDeletes
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.tagging import SliceTag
from hudi_engine.table.lookup.unit import DELETE_FLAG, PartitionUnit, UnitPlan


def deletes_of(batch: pa.Table, plan: UnitPlan, config: TableConfig) -> pa.Array | None:
    """Tell which rows delete, by their marks or the flag of a move; None when none can, or all do."""
    if plan.delete_only:
        return None
    marked = delete_mask(batch, config)
    if DELETE_FLAG not in batch.column_names:
        return marked
    flagged = batch.column(DELETE_FLAG).combine_chunks()
    return flagged if marked is None else pc.or_(flagged, marked.fill_null(False))


def takes_several(unit: PartitionUnit, tag: SliceTag, config: TableConfig) -> bool:
    """Tell whether a batch takes out or changes several rows of one key of a base file, which then has to be written anew.

    Apache Hudi and hudi-rs apply a record of a log to the first row with its key, so of several only that one would change.

    Raises:
        DataError: A compaction of the file group is pending, or the table keeps its changes in logs.
    """
    hits = tag.batch_rows.drop_null()
    if tag.file_slice.base_file is None or are_distinct(hits):
        return False
    if config.keeps_operations:
        raise DataError(
            f"rows of file group {tag.file_slice.file_id!r} in partition {unit.partition!r} have a key that is there more than "
            "once. The table is in changelog mode, so a change goes to a log, which changes only one of them for other readers. "
            "Insert each key once, or rebuild the table"
        )
    check_rewritable(unit, tag.file_slice)
    return True


def check_rewritable(unit: PartitionUnit, file_slice: FileSlice) -> None:
    """Refuse to take rows out of a base file that a pending compaction reads; raises DataError."""
    if file_slice.file_id in unit.frozen:
        raise DataError(
            f"rows of file group {file_slice.file_id!r} in partition {unit.partition!r} have a key that is there more than once, "
            "and cannot be changed while a compaction of it is pending. Run the compaction (compact()) and write again"
        )


def split_deletes(
    task: WriteTask, rows: pa.Table, mask: pa.Array | None
) -> tuple[pa.Table | None, LogDeletes | None]:
    """Split rows into those to write and the deletes among them."""
    if mask is None:
        return rows, None
    gone = rows.filter(mask)
    if gone.num_rows == 0:
        return rows, None
    ordering = ordering_values(gone, task.context.config)
    return rows.filter(pc.invert(mask)), LogDeletes(gone.column(RECORD_KEY).combine_chunks(), ordering)
