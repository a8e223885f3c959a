"""What writing tasks must know of each partition they touch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.table.lookup.log_keys import with_log_keys
from hudi_engine.table.lookup.unit import PartitionUnit
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import planned_groups, yields_to_overwrites
from hudi_engine.table.txn.liveness import Liveness
from hudi_engine.table.write.operation import NOTHING, WHOLE_TABLE, Operation


def partition_units(
    state: TableState, options: Options, slices: Iterable[FileSlice], partitions: Iterable[str]
) -> dict[str, PartitionUnit]:
    """Group slices by partition, with the instants of pending compactions and the file groups that take no new rows."""
    closed = planned_groups(state.timeline, options, Liveness(state.storage, state.config, options))
    compacting = state.timeline.pending_compaction_file_groups()
    slices = list(slices)
    log_keys = with_log_keys(state.timeline, slices)
    clustering = state.timeline.pending_clustering_file_groups()
    grouped: dict[str, list[FileSlice]] = {partition: [] for partition in partitions}
    for each in slices:
        grouped.setdefault(each.partition, []).append(each)
    return {
        partition: PartitionUnit(
            partition,
            tuple(found),
            tuple(
                (each.file_id, compacting[partition, each.file_id])
                for each in found
                if (partition, each.file_id) in compacting
            ),
            tuple(
                each.file_id
                for each in found
                if (partition, each.file_id) in compacting or (partition, each.file_id) in clustering
            ),
            bool(found),
            tuple(each.file_id for each in found if (partition, each.file_id) in log_keys),
            tuple(
                (each.file_id, closed[partition, each.file_id])
                for each in found
                if (partition, each.file_id) in closed
            ),
        )
        for partition, found in grouped.items()
    }


def groups_taken_out(
    operation: Operation, units: Mapping[str, PartitionUnit], touched: Collection[str]
) -> dict[str, list[str]] | None:
    """Return file groups that an overwrite takes out, also those of partitions whose rows are all marked as deleted."""
    if operation.replaces == NOTHING:
        return None
    return {
        partition: sorted({each.file_id for each in unit.slices})
        for partition, unit in units.items()
        if unit.slices and (operation.replaces == WHOLE_TABLE or partition in touched)
    }


def refuse_taking_out(
    operation: Operation,
    units: Mapping[str, PartitionUnit],
    partitions: Collection[str] | None,
    options: Options,
) -> None:
    """Refuse an overwrite of file groups of a planned clustering that is to stand, as far as it is known which it replaces."""
    if yields_to_overwrites(options):
        return
    known = (partitions or ()) if operation.replaces != WHOLE_TABLE else units
    for partition, file_ids in (groups_taken_out(operation, units, known) or {}).items():
        units[partition].reject_planned_groups(file_ids)
