"""Scheduling a compaction: the plan in ``C.compaction.requested``.

From then on writers name new logs of the planned file groups after C, and readers merge them into the slice
before until C completes (Hudi table format, compaction). Nothing is read or written but the plan.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import CompactionTrigger, TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.schemas import COMPACTION_PLAN
from hudi_engine.table.services.compaction.operation import IO_MB, LOG_BYTES, LOG_FILES, CompactionOperation
from hudi_engine.table.services.opening import open_locked, partitions_in_use
from hudi_engine.table.services.result import CompactionResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication, drop_foreign_metadata_table
from hudi_engine.table.txn.recovery import table_lock

logger = logging.getLogger(__name__)

_PLAN_VERSION = 2


@dataclass(frozen=True)
class CompactionPlan(StoredPlan):
    """What one compaction does."""

    operations: tuple[CompactionOperation, ...]

    @property
    def partitions(self) -> set[str]:
        """Partitions of its file groups."""
        return {operation.partition for operation in self.operations}

    def to_bytes(self) -> bytes:
        """Encode as Hudi's ``HoodieCompactionPlan``."""
        return encode_avro_file(
            COMPACTION_PLAN,
            {
                "operations": [operation.to_record() for operation in self.operations],
                "extraMetadata": {},
                "version": _PLAN_VERSION,
                "strategy": None,
                "preserveHoodieMetadata": False,
                "missingSchedulePartitions": [],
            },
        )

    @classmethod
    def _from_record(cls, record: Mapping[str, Any], source: str) -> CompactionPlan:
        operations = (CompactionOperation.from_record(raw, source) for raw in record.get("operations") or ())
        return cls(tuple(operations))

    def describe(self, instant: str, state: str) -> CompactionResult:
        """Return the result of scheduling the plan."""
        files = sum(len(operation.names) for operation in self.operations)
        return CompactionResult(instant, state, len(self.operations), files_compacted=files)


def schedule_compaction(
    storage: Storage, options: Options, *, publish: Publication | None = None
) -> CompactionResult:
    """Plan a compaction now, whatever the triggers say.

    Args:
        options: Strategy and limits, ``hoodie.compaction.*``.
        publish: Published file lists; None for those there are, rebuilt without Spark.

    Returns:
        The plan's instant, or the reason why there is nothing to plan.

    Raises:
        ConfigError: when the table is copy-on-write, or the strategy unknown.
    """
    publication = publish if publish is not None else publication_of(storage)
    with storage_errors(storage, "plan a compaction"), table_lock(storage, options):
        return schedule_locked(open_locked(storage, options, publication), options)


def schedule_locked(state: TableState, options: Options) -> CompactionResult:
    """Plan a compaction of a table that was just read; the caller holds its lock."""
    require_merge_on_read(state)
    state.check_rows_writable()
    operations, reason = choose_operations(state, options)
    plan = CompactionPlan(tuple(operations))
    if not plan.operations:
        return CompactionResult(reason=reason)
    config = drop_foreign_metadata_table(state.storage, state.config)
    # A plan has no owner before it runs.
    opened = OpenInstant.announce(state.storage, config, state.timeline, "compaction", plan.to_bytes())
    logger.info("scheduled compaction %s of %d file groups", opened.time, len(plan.operations))
    return plan.describe(opened.time, "scheduled")


def choose_operations(state: TableState, options: Options) -> tuple[Sequence[CompactionOperation], str]:
    """Return what a compaction planned now would merge, or nothing and the reason; nothing is written."""
    slices, reason = candidates(state)
    new_file_bytes = options[FileOptions.MAX_FILE_SIZE]
    chosen = choose([CompactionOperation.of(each, new_file_bytes) for each in slices], options)
    if chosen:
        return chosen, ""
    return (), reason or "the strategy takes none of the file slices with log files"


def candidates(state: TableState) -> tuple[Sequence[FileSlice], str]:
    """Return the slices that can be compacted, or none and the reason.

    Left out are file groups under a pending compaction or clustering, and partitions that a writer in flight
    works on.
    """
    timeline = state.timeline
    in_use = partitions_in_use(timeline)
    if in_use is None:
        return (), "a writer is at work and has not said yet where; try again when it is done"
    taken = (
        timeline.pending_compaction_file_groups().keys()
        | timeline.pending_clustering_file_groups().keys()
        | _log_compacted(state)
    )
    with_logs = [each for each in state.view().latest_slices() if each.log_files]
    free = [
        each
        for each in with_logs
        if (each.partition, each.file_id) not in taken and each.partition not in in_use
    ]
    if free:
        return free, ""
    if with_logs:
        return (), "every file slice with log files is being compacted, clustered or written to"
    return (), (
        "no file slice has log files; updates and deletes write them, but for those of a file group that takes new rows "
        "in the same write; new rows only do with a bucket index"
    )


def require_merge_on_read(state: TableState) -> None:
    """Refuse a table that has no log files by its type."""
    if state.config.table_type is not TableType.MERGE_ON_READ:
        raise ConfigError(
            f"table {state.config.name!r} is {state.config.table_type.value}; only MERGE_ON_READ tables have "
            "log files to compact. Leave the compaction out"
        )


def _log_compacted(state: TableState) -> set[tuple[str, str]]:
    return {
        (str(operation.get("partitionPath") or ""), str(operation["fileId"]))
        for plan in state.timeline.pending_log_compaction_plans().values()
        for operation in plan.get("operations") or ()
    }


Strategy = Callable[[Sequence[CompactionOperation], Options], list[CompactionOperation]]

_SUFFIX = "CompactionStrategy"
_DATE = re.compile(r"^(?:[^=/]+=)?(\d{4})[-/](?:[^=/]+=)?(\d{1,2})[-/](?:[^=/]+=)?(\d{1,2})$")


def choose(operations: Sequence[CompactionOperation], options: Options) -> list[CompactionOperation]:
    """Return the operations of the next plan, in the order of ``hoodie.compaction.strategy``."""
    return strategy_of(options)(operations, options)


def strategy_of(options: Options) -> Strategy:
    """Return the strategy that ``hoodie.compaction.strategy`` names, by class or short name."""
    given = options[CompactionOptions.STRATEGY] or ""
    name = given.rpartition(".")[2]
    strategy = STRATEGIES.get(name if name.endswith(_SUFFIX) else name + _SUFFIX)
    if strategy is None:
        raise ConfigError(
            f"hoodie.compaction.strategy is {given!r}; legal values: {', '.join(sorted(STRATEGIES))}, with "
            "or without their package"
        )
    return strategy


def log_file_size_based(
    operations: Sequence[CompactionOperation], options: Options
) -> list[CompactionOperation]:
    """Return slices with the most bytes of logs first, above a threshold, up to the target IO."""
    return _most_first(operations, LOG_BYTES, options[CompactionOptions.LOG_SIZE_THRESHOLD], options)


def log_file_num_based(
    operations: Sequence[CompactionOperation], options: Options
) -> list[CompactionOperation]:
    """Return slices with the most log files first, above a threshold, up to the target IO."""
    return _most_first(operations, LOG_FILES, options[CompactionOptions.LOG_COUNT_THRESHOLD], options)


def _most_first(
    operations: Sequence[CompactionOperation], metric: str, threshold: int, options: Options
) -> list[CompactionOperation]:
    worthy = [each for each in operations if each.metrics.get(metric, 0.0) >= threshold]
    return bounded_io(sorted(worthy, key=lambda each: -each.metrics.get(metric, 0.0)), options)


def bounded_io(operations: Sequence[CompactionOperation], options: Options) -> list[CompactionOperation]:
    """Return slices as they come until the target IO is reached; the one that reaches it is part of the plan."""
    left = float(options[CompactionOptions.TARGET_IO])
    chosen = []
    for operation in operations:
        chosen.append(operation)
        left -= operation.metrics.get(IO_MB, 0.0)
        if left <= 0:
            break
    return chosen


def day_based(operations: Sequence[CompactionOperation], options: Options) -> list[CompactionOperation]:
    """Return slices of the newest days, a number of partitions; partitions that are no dates come last."""
    newest = sorted({each.partition for each in operations}, key=_day_key, reverse=True)
    taken = newest[: options[CompactionOptions.TARGET_PARTITIONS]]
    rank = {partition: position for position, partition in enumerate(taken)}
    return sorted(
        (each for each in operations if each.partition in rank), key=lambda each: rank[each.partition]
    )


def unbounded(operations: Sequence[CompactionOperation], _options: Options) -> list[CompactionOperation]:
    """Return all slices."""
    return list(operations)


def _day_key(partition: str) -> tuple[bool, date, str]:
    match = _DATE.match(partition)
    try:
        day = date(*(int(group) for group in match.groups())) if match else None
    except ValueError:
        day = None
    return (day is not None, day or date.min, partition)


STRATEGIES: dict[str, Strategy] = {
    "LogFileSizeBasedCompactionStrategy": log_file_size_based,
    "LogFileNumBasedCompactionStrategy": log_file_num_based,
    "BoundedIOCompactionStrategy": bounded_io,
    "DayBasedCompactionStrategy": day_based,
    "UnBoundedCompactionStrategy": unbounded,
}


@dataclass(frozen=True)
class DeltaCommits:
    """Completed delta commits since a moment: how many, and the instant from which time is measured."""

    count: int
    since: str | None


def compaction_due(timeline: Timeline, options: Options, now: str) -> bool:
    """Return whether ``hoodie.compact.inline.trigger.strategy`` fires.

    Args:
        options: Trigger, number of delta commits, seconds.
    """
    trigger = options[CompactionOptions.TRIGGER]
    enough = options[CompactionOptions.DELTA_COMMITS]
    if trigger is CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST:
        return since_last_compaction(timeline, requested=True).count >= enough
    commits = since_last_compaction(timeline)
    by_number = commits.count >= enough
    by_time = (
        commits.count > 0
        and _seconds(commits.since, now, timeline.zone) >= options[CompactionOptions.DELTA_SECONDS]
    )
    return {
        CompactionTrigger.NUM_COMMITS: by_number,
        CompactionTrigger.TIME_ELAPSED: by_time,
        CompactionTrigger.NUM_AND_TIME: by_number and by_time,
        CompactionTrigger.NUM_OR_TIME: by_number or by_time,
    }[trigger]


def since_last_compaction(timeline: Timeline, *, requested: bool = False) -> DeltaCommits:
    """Count the delta commits after the newest compaction.

    Args:
        requested: Whether a compaction counts from its request on, rather than when it has completed.
    """
    compactions = [each.requested_time for each in timeline.completed if each.action == "commit"]
    if requested:
        compactions += [each.requested_time for each in timeline.pending if each.action == "compaction"]
    last = max(compactions, default=None)
    deltas = [
        each.requested_time
        for each in timeline.completed
        if each.action == "deltacommit" and (last is None or each.requested_time > last)
    ]
    return DeltaCommits(len(deltas), last if last is not None else min(deltas, default=None))


def _seconds(since: str | None, now: str, zone: tzinfo | None) -> float:
    if since is None:
        return 0.0
    return (parse_instant_time(now, zone) - parse_instant_time(since, zone)).total_seconds()
