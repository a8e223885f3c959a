"""What writing tasks must know of each partition they touch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import replace

from hudi_engine.errors import DataError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.buckets import (
    refuse_other_bucket_engines,
    refuse_unsaid_buckets,
    with_bucket_form,
)
from hudi_engine.table.lookup.log_keys import with_log_keys
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import planned_groups, yields_to_overwrites
from hudi_engine.table.txn.owner import Liveness
from hudi_engine.table.write.operation import NOTHING, WHOLE_TABLE, Operation


def tagged_profile(operation: str, tagged: Iterable[TaggedUnit]) -> CommitMetadata:
    """Return planned inserts a partition and planned updates a file group (Hudi table format, inflight body)."""
    partitions: dict[str, list[WriteStat]] = {}
    for each in tagged:
        new_rows = max(0, each.batch.num_rows - each.matched_rows)
        stats = [WriteStat(file_id="", num_inserts=new_rows)]
        for tag in each.tags:
            base = tag.file_slice.base_file
            stats.append(
                WriteStat(
                    file_id=tag.file_slice.file_id,
                    prev_commit=base.instant if base is not None else tag.file_slice.base_instant,
                    num_update_writes=len(tag.matched),
                )
            )
        partitions.setdefault(each.unit.partition, []).extend(stats)
    return CommitMetadata(partition_to_write_stats=partitions, operation_type=operation)


def partition_profile(
    operation: str, rows: Mapping[str, int], units: Mapping[str, PartitionUnit]
) -> CommitMetadata:
    """Return rows a partition, and the file groups they may touch, when keys are looked up only while writing."""
    partitions = {}
    for partition, count in rows.items():
        stats = [WriteStat(file_id="", num_inserts=count)]
        unit = units.get(partition)
        for each in unit.slices if unit is not None else ():
            base = each.base_file
            stats.append(
                WriteStat(
                    file_id=each.file_id, prev_commit=base.instant if base is not None else each.base_instant
                )
            )
        partitions[partition] = stats
    return CommitMetadata(partition_to_write_stats=partitions, operation_type=operation)


_WRITES_LOOKED_AT = 5


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


def check_partition_count(partitions: Sized, options: Options) -> None:
    """Refuse rows of more partitions than one write may touch; raises DataError."""
    limit = options[EngineOptions.MAX_PARTITIONS]
    if len(partitions) > limit:
        raise DataError(
            f"the batch touches more than hoodie.engine.max.partitions.per.commit={limit} partitions; "
            "check partition_by, or raise the limit"
        )


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


def with_stored_buckets(
    plan: UnitPlan,
    state: TableState,
    context: WriteContext,
    units: Mapping[str, PartitionUnit],
) -> UnitPlan:
    """Return the plan with buckets of the form that the table's are of, and refuse one that leaves them unsaid."""
    refuse_other_bucket_engines(state.storage, context.config)
    slices = [each for unit in units.values() for each in unit.slices]
    if not plan.delete_only:
        refuse_unsaid_buckets(context.config, context.options, _file_ids(slices, state.timeline))
    # An overwrite of the whole table leaves nothing behind that could be in other buckets.
    replaces_all = context.operation == WriteOperation.INSERT_OVERWRITE_TABLE.value
    index = with_bucket_form(plan.index, context.read, context.options, () if replaces_all else slices)
    return replace(plan, index=index)


def _file_ids(slices: Iterable[FileSlice], timeline: Timeline) -> Iterator[str]:
    """Yield the file groups of the partitions that are written to, or else some others; commits are read when it comes to that."""
    yield from [each.file_id for each in slices] or _newest_file_ids(timeline)


def _newest_file_ids(timeline: Timeline) -> list[str]:
    """Return the file groups of the newest write that has some, for a write to partitions that are not there yet."""
    for instant in reversed(timeline.completed_writes[-_WRITES_LOOKED_AT:]):
        found = [stat.file_id for _, stat in timeline.commit_metadata(instant).write_stats() if stat.file_id]
        if found:
            return found
    return []
