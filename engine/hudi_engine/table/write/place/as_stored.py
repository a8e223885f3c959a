"""What the file groups that are there say of the index by which a write places its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.bucket_form import with_bucket_form
from hudi_engine.table.lookup.bucket_names import refuse_other_bucket_engines, refuse_unsaid_buckets
from hudi_engine.table.lookup.unit import PartitionUnit, UnitPlan
from hudi_engine.table.state import TableState

_WRITES_LOOKED_AT = 5


def as_stored(
    plan: UnitPlan,
    state: TableState,
    context: WriteContext,
    units: Mapping[str, PartitionUnit],
) -> UnitPlan:
    """Return the plan with buckets of the form that the table's are of, and refuse one that leaves them unsaid.

    Raises:
        ConfigError: Stored keys are in other buckets than the options say, or no option says that file groups are buckets.
        UnsupportedTableError: Its buckets differ by partition.
    """
    refuse_other_bucket_engines(state.storage, context.config)
    slices = [each for unit in units.values() for each in unit.slices]
    if not plan.delete_only:
        refuse_unsaid_buckets(context.config, context.options, _file_ids(slices, state.timeline))
    # An overwrite of the whole table leaves nothing behind that could be in other buckets.
    anew = context.operation == WriteOperation.INSERT_OVERWRITE_TABLE.value
    index = with_bucket_form(plan.index, context.read, context.options, () if anew else slices)
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
