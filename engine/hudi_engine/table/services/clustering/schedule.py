"""Scheduling a clustering: the plan in ``T.replacecommit.requested``, in layout 2 ``T.clustering.requested``.

From then on the file groups of the plan must not change until it is done or taken back; who writes to them is refused
(`hudi_engine.table.txn.conflict`). Nothing is read or written but the plan.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.declared.write_options import FileOptions, IndexOptions
from hudi_engine.format.config.enums import IndexType, PartitionFilter
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.layout.layout import SORT_COLUMNS, STRATEGY, RowLayout, split_names
from hudi_engine.format.spelling import no_such_partitions
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table.lookup.buckets import refuse_other_bucket_engines, refuse_unsaid_buckets
from hudi_engine.table.services.clustering.plan import (
    ClusteringGroup,
    ClusteringPlan,
    PlannedSlice,
    check_strategy,
)
from hudi_engine.table.services.compaction.plan import (
    IO_MB,
    LOG_BYTES,
    LOG_FILES,
    MEGABYTE,
    READ_MB,
    WRITE_MB,
)
from hudi_engine.table.services.planned import open_locked, partitions_in_use
from hudi_engine.table.services.result import ClusteringResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import is_clustering
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import table_lock

logger = logging.getLogger(__name__)


def schedule_clustering(
    storage: Storage, options: Options, *, publish: Publication | None = None, dry_run: bool = False
) -> ClusteringResult:
    """Plan a clustering now, regardless of ``hoodie.clustering.inline.max.commits``."""
    if dry_run:
        state = TableState.load(storage)
        state.config.check_writable()
        return plan_clustering(state, options)[1]
    publication = publish if publish is not None else publication_of(storage)
    with storage_errors(storage, "plan a clustering"), table_lock(storage, options):
        return schedule_clustering_locked(open_locked(storage, options, publication, sweeps=False), options)


def schedule_clustering_locked(state: TableState, options: Options) -> ClusteringResult:
    """Plan a clustering of a table that was just read; the caller holds its lock."""
    plan, result = plan_clustering(state, options)
    if plan is None:
        return result
    live = {(each.partition, each.file_id): each for each in state.view(plan.partitions).latest_slices()}
    body = plan.to_bytes(state.storage, live)
    # Owned while it is written: a plan that was cut short looks like an overwrite, which the next writer rolls back.
    opened = OpenInstant.announce(
        state.storage,
        state.config,
        state.timeline,
        state.config.table_version.clustering_action,
        body,
        owned_by=options,
    )
    opened.release()
    logger.info("scheduled clustering %s of %d file groups", opened.time, len(plan.slices))
    return in_numbers(plan, opened.time, "scheduled")


def plan_clustering(state: TableState, options: Options) -> tuple[ClusteringPlan | None, ClusteringResult]:
    """Return what a clustering planned now would do, and the same in numbers; nothing is written."""
    state.check_rows_writable()
    refuse_bucket_index(state, options)
    execution = options[ClusteringOptions.EXECUTION_STRATEGY]
    check_strategy(execution)
    layout = RowLayout.from_options(options)
    schema = state.data_schema()
    if schema is not None:
        layout = layout.fitted(schema)
    groups, reason = choose_groups(state, options)
    if not groups:
        return None, ClusteringResult(reason=reason)
    refuse_other_bucket_engines(state.storage, state.config)
    ids = (each.file_id for group in groups for each in group.slices)
    refuse_unsaid_buckets(state.config, options, ids)
    params = {SORT_COLUMNS.key: ",".join(layout.columns)} if layout.columns else {}
    if layout.is_curve:
        params[STRATEGY.key] = layout.strategy.value
    preserves = options[ClusteringOptions.PRESERVE_COMMIT_METADATA]
    plan = ClusteringPlan(tuple(groups), execution, params, preserves)
    return plan, in_numbers(plan, None, "none")


def in_numbers(plan: ClusteringPlan, instant: str | None, state: str) -> ClusteringResult:
    """Return a plan in numbers."""
    return ClusteringResult(
        instant,
        state,
        len(plan.slices),
        groups=len(plan.groups),
        files_read=sum(len(each.names) for each in plan.slices),
        partitions=tuple(sorted(plan.partitions)),
    )


def refuse_bucket_index(state: TableState, options: Options) -> None:
    """Refuse a table whose keys must be in the file group of their bucket, as Apache Hudi does."""
    if IndexType.BUCKET in (state.config.properties.get(IndexOptions.TYPE.key), options[IndexOptions.TYPE]):
        raise ConfigError(
            f"{IndexOptions.TYPE} of table {state.config.name!r} is {IndexType.BUCKET}, which places every key in "
            "the file group of its bucket; clustering would move it. Leave the clustering out, or rebuild the table with "
            "another index"
        )


_SUFFIX = "ClusteringPlanStrategy"
_MODES = {
    "SizeBased": None,
    "RecentDays": PartitionFilter.RECENT_DAYS,
    "SelectedPartitions": PartitionFilter.SELECTED_PARTITIONS,
}
"""Class names without the engine before and the suffix after them, and the partition filter of each."""
_ENGINES = ("Spark", "Java", "Flink")


def choose_groups(state: TableState, options: Options) -> tuple[Sequence[ClusteringGroup], str]:
    """Return what a clustering planned now would rewrite, or nothing and the reason; nothing is written."""
    mode = partition_filter(options)
    slices, reason = _free_slices(state)
    partitions = choose_partitions({each.partition for each in slices}, mode, options)
    limit = options[ClusteringOptions.SMALL_FILE_LIMIT]
    by_partition: dict[str, list[FileSlice]] = {partition: [] for partition in partitions}
    for each in slices:
        if each.partition in by_partition and _base_bytes(each) < limit:
            by_partition[each.partition].append(each)
    groups = [group for found in by_partition.values() for group in _groups(found, options)]
    if groups:
        return groups[: options[ClusteringOptions.MAX_GROUPS]], ""
    return (), reason or "no file group of the chosen partitions is worth rewriting"


def partition_filter(options: Options) -> PartitionFilter:
    """Return which partitions are looked at: by the strategy's class, else by the filter mode."""
    given = options[ClusteringOptions.PLAN_STRATEGY]
    name = given.rpartition(".")[2].removesuffix(_SUFFIX)
    name = next((name[len(engine) :] for engine in _ENGINES if name.startswith(engine)), name)
    if name not in _MODES:
        legal = ", ".join(f"Spark{each}{_SUFFIX}" for each in _MODES)
        raise ConfigError(
            f"{ClusteringOptions.PLAN_STRATEGY} is {given!r}; legal values: {legal}, with or without their package"
        )
    return _MODES[name] or options[ClusteringOptions.PARTITION_FILTER]


def choose_partitions(known: Iterable[str], mode: PartitionFilter, options: Options) -> list[str]:
    """Return the partitions that a plan looks at."""
    names = sorted(known)
    selected = options[ClusteringOptions.SELECTED_PARTITIONS]
    if selected is not None:
        wanted = set(split_names(selected))
        names = [each for each in names if each in wanted]
    else:
        pattern = _pattern(options)
        names = [each for each in names if pattern is None or pattern.fullmatch(each)]
    if mode is PartitionFilter.RECENT_DAYS:
        skip = options[ClusteringOptions.SKIPPED_PARTITIONS]
        newest = names[::-1][skip:]
        return newest[: options[ClusteringOptions.RECENT_PARTITIONS]]
    if mode is PartitionFilter.SELECTED_PARTITIONS:
        begin = options[ClusteringOptions.BEGIN_PARTITION]
        end = options[ClusteringOptions.END_PARTITION]
        return [each for each in names if (begin is None or each >= begin) and (end is None or each <= end)]
    return names


def _pattern(options: Options) -> re.Pattern[str] | None:
    text = options[ClusteringOptions.PARTITION_PATTERN]
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(
            f"{ClusteringOptions.PARTITION_PATTERN} is {text!r}, which is no regular expression: {error}"
        ) from error


def _free_slices(state: TableState) -> tuple[Sequence[FileSlice], str]:
    timeline = state.timeline
    in_use = partitions_in_use(timeline)
    if in_use is None:
        return (), "a write is under way whose partitions are not known yet; try again when it has ended"
    taken = (
        timeline.pending_compaction_file_groups().keys() | timeline.pending_clustering_file_groups().keys()
    )
    every = state.view().latest_slices()
    free = [
        each for each in every if (each.partition, each.file_id) not in taken and each.partition not in in_use
    ]
    if every and not free:
        return (), "every file group is being compacted, clustered or written to"
    return free, "" if every else "the table has no rows"


def _groups(slices: Sequence[FileSlice], options: Options) -> Iterable[ClusteringGroup]:
    """Pack the slices of a partition into groups, the largest first."""
    most = options[ClusteringOptions.MAX_GROUP_BYTES]
    ratio = options[FileOptions.LOG_COMPRESSION_RATIO]
    ordered = sorted(slices, key=lambda each: (-each.merged_size(ratio), each.file_id))
    group: list[FileSlice] = []
    size = 0.0
    for each in ordered:
        bytes_ = each.merged_size(ratio)
        if group and size + bytes_ > most:
            yield from _group(group, size, options)
            group, size = [], 0.0
        group.append(each)
        size += bytes_
    if group:
        yield from _group(group, size, options)


def _group(slices: Sequence[FileSlice], size: float, options: Options) -> Iterable[ClusteringGroup]:
    outputs = max(1, int(-(-size // options[ClusteringOptions.TARGET_FILE_BYTES])))
    if len(slices) == 1:
        gains = bool(split_names(options[SORT_COLUMNS])) or bool(slices[0].log_files) or outputs > 1
        if not gains or not options[ClusteringOptions.SINGLE_GROUPS]:
            return
    planned = tuple(PlannedSlice.of(each) for each in slices)
    yield ClusteringGroup(planned, outputs, _metrics(slices, options))


def _metrics(slices: Sequence[FileSlice], options: Options) -> dict[str, float]:
    """Return the figures that Hudi notes for a group."""
    new_file = options[FileOptions.MAX_FILE_SIZE]
    log_bytes = sum(log.size for each in slices for log in each.log_files)
    read = sum(each.size // MEGABYTE for each in slices)
    write = sum((_base_bytes(each) if each.base_file else new_file) // MEGABYTE for each in slices)
    return {
        LOG_FILES: float(sum(len(each.log_files) for each in slices)),
        LOG_BYTES: float(log_bytes),
        READ_MB: float(read),
        WRITE_MB: float(write),
        IO_MB: float(read + write),
    }


def _base_bytes(file_slice: FileSlice) -> int:
    return file_slice.base_file.size if file_slice.base_file is not None else 0


def clustering_due(timeline: Timeline, options: Options) -> bool:
    """Return whether enough writes have completed since the last clustering, planned or done."""
    newest = (each.requested_time for each in reversed(timeline.instants) if is_clustering(timeline, each))
    last = next(newest, "")
    since = sum(each.requested_time > last for each in timeline.completed_writes)
    return since >= options[ClusteringOptions.MAX_COMMITS]


def clustering_options(
    options: Options,
    *,
    columns: str | Iterable[str] | None = None,
    strategy: str | None = None,
    partitions: Iterable[str] | None = None,
) -> Options:
    """Return options with what a call names on top."""
    given: dict[str, object] = {}
    if columns is not None:
        given[SORT_COLUMNS.key] = (
            columns if isinstance(columns, str) else ",".join(_names(columns, "columns"))
        )
    if strategy is not None:
        given[STRATEGY.key] = strategy
    if partitions is not None:
        given[ClusteringOptions.PARTITION_FILTER.key] = PartitionFilter.SELECTED_PARTITIONS
        given[ClusteringOptions.SELECTED_PARTITIONS.key] = ",".join(_paths(partitions))
    return options.merged(given) if given else options


def check_partitions(state: TableState, options: Options) -> None:
    """Refuse to look for partitions by name that a table does not have."""
    wanted = split_names(options[ClusteringOptions.SELECTED_PARTITIONS])
    known = {each.partition for each in state.view().latest_slices()}
    missing = [each for each in wanted if each not in known]
    if not missing or not known:
        return
    if not state.config.is_partitioned:
        raise ConfigError(f"table {state.config.name!r} has no partitions; leave partitions out")
    raise ConfigError(no_such_partitions(missing, known, state.config.name))


def _paths(given: Iterable[str]) -> list[str]:
    """Return partition paths that can be written with commas between, without naming others."""
    paths = _names(given, "partitions")
    other = [path for path in paths if split_names(path) != (path,)]
    if other:
        raise ConfigError(
            f"partition {other[0]!r} cannot be chosen for a clustering by its path, of which a comma, or a blank at an end, would "
            f"make others; leave partitions and condition out, and choose it by {ClusteringOptions.PARTITION_PATTERN}"
        )
    return paths


def _names(given: Iterable[str], what: str) -> list[str]:
    if isinstance(given, str):
        return [given]
    try:
        names = list(given)
    except TypeError:
        names = [given]  # type: ignore[list-item]
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ConfigError(
            f"{what} of a clustering holds {wrong[0]!r}; give names, such as ['day', 'customer']"
        )
    return names
