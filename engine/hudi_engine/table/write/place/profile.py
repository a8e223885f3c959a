"""The workload profile: what a write plans to do, stored in the inflight file so that a rollback can find its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.unit import PartitionUnit


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
