"""Which files a share of a write is going to write, told before it is written, so that their markers can be made together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hudi_engine.format.config.enums import TableType
from hudi_engine.format.filegroup.base_file import base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.filegroup.markers import marker_name
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.unit import UnitPlan
from hudi_engine.table.write.place.changelog import log_target
from hudi_engine.table.write.place.shares import takers_of


def planned_markers(task: WriteTask, plan: UnitPlan, tagged: TaggedUnit) -> Iterator[str]:
    """Give the markers of the file groups that rows of a share are in, or have room in.

    Whatever is not foreseen, such as a new file group, the task announces when it comes to it; what is foreseen need not come,
    as when no row changes.
    """
    context, unit = task.context, tagged.unit
    is_log = context.config.table_type is TableType.MERGE_ON_READ
    groups, takers = _groups(context, plan, tagged)
    for each in groups:
        if is_log and each.file_id not in takers:
            target = log_target(unit, each)
            name = log_file_name(each.file_id, target.base_instant, target.next_version, task.write_token)
            yield marker_name(unit.partition, name, "APPEND")
        else:
            name = base_file_name(each.file_id, task.write_token, context.instant)
            yield marker_name(unit.partition, name, "MERGE")


def _groups(
    context: WriteContext, plan: UnitPlan, tagged: TaggedUnit
) -> tuple[Sequence[FileSlice], Collection[str]]:
    if plan.index.buckets is not None:
        # Shares of several buckets are those of changelog mode, or of no rows.
        return tagged.unit.slices if len(tagged.unit.slices) == 1 else (), ()
    matched = sum(len(tag.matched) for tag in tagged.tags)
    takers = takers_of(context, plan, tagged, max(tagged.batch.num_rows - matched, 0))
    named = takers | {tag.file_slice.file_id for tag in tagged.tags}
    return [each for each in tagged.unit.slices if each.file_id in named], takers
