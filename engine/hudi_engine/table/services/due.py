"""What a table holds, which services are due for it, and what the next ones would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import CleanPolicy, TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.inspect.files import PartitionFacts, Snapshot, partition_facts
from hudi_engine.table.services.archive.select import Limits, archive_due, select_instants
from hudi_engine.table.services.clean.execute import would_clean
from hudi_engine.table.services.clean.plan import Policy, partitions_to_clean
from hudi_engine.table.services.compaction.plan import (
    choose_operations,
    compaction_due,
    since_last_compaction,
)
from hudi_engine.table.services.result import CleanResult
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import oldest_needed
from hudi_engine.table.txn.recovery import next_instant


@dataclass(frozen=True)
class Upcoming:
    """What one service would take."""

    service: str
    items: tuple[str, ...] = ()
    bytes: int = 0
    reason: str = ""


def upcoming(state: TableState, options: Options, snapshot: Snapshot) -> list[Upcoming]:
    """Return what compaction (of a merge-on-read table), clean and archive would take now."""
    found = [_clean(state, options, snapshot), _archive(state, options)]
    if state.config.table_type is TableType.MERGE_ON_READ:
        found.insert(0, _compaction(state, options, snapshot))
    return found


def _compaction(state: TableState, options: Options, snapshot: Snapshot) -> Upcoming:
    operations, reason = choose_operations(state, options)
    sizes = {(each.partition, each.file_id): each.size for each in snapshot.slices}
    groups = [(each.partition, each.file_id) for each in operations]
    names = tuple(f"{partition}/{file_id}".lstrip("/") for partition, file_id in groups)
    return Upcoming("compaction", names, sum(sizes.get(each, 0) for each in groups), reason)


def _clean(state: TableState, options: Options, snapshot: Snapshot) -> Upcoming:
    plan = would_clean(state, options)
    if isinstance(plan, CleanResult):
        return Upcoming("clean", reason=plan.reason)
    paths = frozenset(plan.paths)
    listed = (status for partition in plan.files for status in snapshot.view.files(partition))
    freed = sum(status.size for status in listed if status.path in paths)
    return Upcoming("clean", tuple(sorted(paths)), freed)


def _archive(state: TableState, options: Options) -> Upcoming:
    chosen = select_instants(state, options, next_instant(state.timeline))
    names = tuple(f"{each.requested_time} {each.action}" for each in chosen.instants)
    return Upcoming("archive", names, reason=chosen.reason)


def _in_all(count: Callable[[PartitionFacts], int]) -> cached_property[int]:
    return cached_property(lambda stats: sum(map(count, stats.partitions)))


@dataclass(frozen=True)
class ServiceDue:
    """A table service and whether its trigger fires."""

    service: str  # ``compaction``, ``clean`` or ``archive``
    due: bool
    reason: str


@dataclass(frozen=True)
class TableStats:
    """A table in numbers."""

    name: str
    table_type: str
    version: int
    instant: str | None
    commits: int
    pending: int
    rows: int | None  # rows of a snapshot; None where logs would have to be merged to know it and were not
    base_rows: int
    small_files: int
    partitions: tuple[PartitionFacts, ...]
    services: tuple[ServiceDue, ...]
    indexes: tuple[str, ...] = ()  # of the metadata table, by which reads skip files

    file_groups = _in_all(lambda partition: partition.file_groups)
    base_files = _in_all(lambda partition: partition.base_files)
    log_files = _in_all(lambda partition: partition.log_files)
    base_bytes = _in_all(lambda partition: partition.base_bytes)
    log_bytes = _in_all(lambda partition: partition.log_bytes)

    @property
    def log_share(self) -> float:
        """Bytes of logs among all bytes, 0 to 1."""
        total = self.base_bytes + self.log_bytes
        return self.log_bytes / total if total else 0.0


def table_stats(
    state: TableState, options: Options, *, count_rows: bool = False, snapshot: Snapshot | None = None
) -> TableStats:
    """Return a table in numbers, from its timeline, one listing and the footers of its base files."""
    snapshot = snapshot or Snapshot.of(state)
    slices, counts = snapshot.slices, snapshot.base_rows
    limit = options[FileOptions.SMALL_FILE_LIMIT]
    writes = state.timeline.completed_writes
    return TableStats(
        name=state.config.name,
        table_type=state.config.table_type.value,
        version=state.config.version,
        instant=writes[-1].requested_time if writes else None,
        commits=len(writes),
        pending=len(state.timeline.pending),
        rows=_rows(state, options, slices, counts, count_rows),
        base_rows=sum(counts.values()),
        small_files=sum(base.size < limit for base in snapshot.bases),
        partitions=tuple(partition_facts(slices)),
        services=tuple(services_due(state, options)),
        indexes=tuple(sorted({*state.config.metadata_partitions} - {MetadataPartition.FILES.value})),
    )


def services_due(state: TableState, options: Options) -> list[ServiceDue]:
    """Return which services the options would start after the next commit."""
    found = []
    now, total = next_instant(state.timeline), len(state.timeline.completed_writes)
    nothing = "" if total else "the table has no commit yet"
    if state.config.table_type is TableType.MERGE_ON_READ:
        commits = since_last_compaction(state.timeline).count
        enough = options[CompactionOptions.DELTA_COMMITS]
        trigger = options[CompactionOptions.TRIGGER]
        reason = f"{commits} delta commits since the last one; {trigger} asks for {enough}"
        found.append(
            ServiceDue("compaction", compaction_due(state.timeline, options, now), nothing or reason)
        )
    try:
        clean_is_due, reason = _clean_due(state, options, now)
    except (CorruptTableError, TimelineError, FileNotFoundError) as error:  # what cleans before have left
        clean_is_due, reason = False, str(error)
    found.append(ServiceDue("clean", clean_is_due, nothing or reason))
    held_back, limits = archive_due(state.timeline, options, now), Limits.of(state.timeline, options, now)
    above = "" if limits is None else f"{total} commits or as many cleans are above {limits.keep_max}"
    found.append(ServiceDue("archive", not held_back, held_back or above))
    return found


def _clean_due(state: TableState, options: Options, now: str) -> tuple[bool, str]:
    """Return whether a clean may find something, and the numbers by which its policy goes.

    How many versions a file group has is not looked up: it has no more than there are commits.
    """
    timeline, policy = state.timeline, Policy.from_options(options)
    needed = oldest_needed(state.storage)
    cleans = [each.requested_time for each in timeline.completed if each.action == "clean"]
    writes = [each.requested_time for each in timeline.completed_writes]
    later = sum(each > max(cleans, default="") for each in writes)
    if policy.retains_instants:
        retained = policy.earliest_retained(timeline, now, needed)
        passes = retained is not None and any(each < retained.time for each in writes)
        may_find = passes and partitions_to_clean(state, options, retained) != frozenset()
    else:
        is_free = needed is None or sum(each < needed for each in writes) > 1
        may_find = len(writes) > policy.amount and is_free
    kept = {
        CleanPolicy.KEEP_LATEST_COMMITS: f"{policy.amount} are retained",
        CleanPolicy.KEEP_LATEST_BY_HOURS: f"those of the last {policy.amount} hours are retained",
        CleanPolicy.KEEP_LATEST_FILE_VERSIONS: f"{policy.amount} versions of each file group are retained",
    }[policy.name]
    kept += "" if needed is None else f", and what a registered reader needs after {needed}"
    return (
        later > 0 and may_find,
        f"{len(writes)} commits on the timeline, {later} since the last clean; {kept}",
    )


def _rows(
    state: TableState, options: Options, slices: Sequence[FileSlice], counts: Mapping[str, int], merge: bool
) -> int | None:
    """Count rows; slices with logs have to be merged for it, so without leave to merge the number is not known."""
    logged = [each for each in slices if each.log_files]
    if logged and not merge:
        return None
    plain = sum(counts[each.base_file.path] for each in slices if each.base_file and not each.log_files)
    schema = state.data_schema()
    if not logged or schema is None:
        return plain
    context = state.read_context(schema, options)
    merged: list[int] = [read_slice(context, each, columns=[RECORD_KEY]).num_rows for each in logged]
    return plain + sum(merged)
