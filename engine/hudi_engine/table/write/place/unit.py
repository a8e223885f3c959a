"""One partition's share of a write: tag, merge or append, and place the new rows.

The same function runs on the driver (small batches) and inside executor tasks, so every way of distributing the work gives
the same files.
"""

from __future__ import annotations

from hudi_engine.format.filegroup.partition_metadata import begin_partition
from hudi_engine.format.schema.meta_fields import OPERATION
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.outdated_updates import drop_outdated_updates
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.unit import UnitPlan
from hudi_engine.table.write.place.by_bucket import write_buckets
from hudi_engine.table.write.place.by_key import write_keys
from hudi_engine.table.write.place.symbols import check_symbols
from hudi_engine.table.write.place.unchanged import stat_of_left, without_unchanged


def write_unit(task: WriteTask, plan: UnitPlan, tagged: TaggedUnit) -> list[WriteStat]:
    """Write one partition's tagged rows; returns the write stats of the files written, possibly none."""
    found = tagged
    tagged = drop_outdated_updates(task.context, plan, tagged)
    if plan.skip_unchanged and OPERATION not in tagged.batch.column_names:
        tagged = without_unchanged(task.context, plan, tagged)
    unit, batch = tagged.unit, tagged.batch
    if not plan.delete_only:
        check_symbols(batch, task.context.avro_schema)
    if not unit.exists and batch.num_rows and not plan.delete_only:
        begin_partition(task.context.storage, task.context.config, unit.partition, task.context.instant)
    left = [] if tagged is found else stat_of_left(found, tagged)
    if plan.index.buckets is not None:
        return [*left, *write_buckets(task, plan, unit, batch, plan.index.buckets)]
    return [*left, *write_keys(task, plan, unit, batch, list(tagged.tags))]
