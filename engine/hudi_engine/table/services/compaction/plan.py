"""The plan of a compaction, in ``C.compaction.requested``: making it, and those that have not run.

From then on writers name new logs of the planned file groups after C, and readers merge them into the slice
before until C completes (Hudi table format, compaction). Nothing is read or written but the plan.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from functools import partial
from typing import Any

from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import CompactionOrder, CompactionTrigger, TableType
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, Written, parse_log_file
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.storage.paths import relative_path
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.format.timeline.schemas import COMPACTION_PLAN
from hudi_engine.table.services.planned import open_locked, partitions_in_use
from hudi_engine.table.services.result import CompactionResult, PendingCompaction
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.open_instant import OpenInstant, stored_plan
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import table_lock

logger = logging.getLogger(__name__)

_PLAN_VERSION = 2
MEGABYTE = 1024 * 1024
LOG_FILES = "TOTAL_LOG_FILES"
LOG_BYTES = "TOTAL_LOG_FILES_SIZE"
IO_MB = "TOTAL_IO_MB"
READ_MB = "TOTAL_IO_READ_MB"
WRITE_MB = "TOTAL_IO_WRITE_MB"


@dataclass(frozen=True)
class CompactionOperation:
    """A slice to compact.

    Args:
        data_file: Name of its base file, None for a slice that has logs only.
        log_files: Names of its logs, in the order in which they apply.
        metrics: Hudi's figures by which strategies choose, see the constants of this module.
    """

    partition: str
    file_id: str
    base_instant: str
    data_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, file_slice: FileSlice, new_file_bytes: int) -> CompactionOperation:
        """Plan a slice."""
        base = file_slice.base_file
        log_bytes = sum(log.size for log in file_slice.log_files)
        read_mb = log_bytes // MEGABYTE + (base.size // MEGABYTE if base else 0)
        write_mb = (base.size if base else new_file_bytes) // MEGABYTE
        metrics = {
            LOG_FILES: float(len(file_slice.log_files)),
            LOG_BYTES: float(log_bytes),
            READ_MB: float(read_mb),
            WRITE_MB: float(write_mb),
            IO_MB: float(read_mb + write_mb),
        }
        return cls(
            file_slice.partition,
            file_slice.file_id,
            file_slice.base_instant,
            base.name if base else None,
            tuple(log.name for log in file_slice.log_files),
            metrics,
        )

    def to_record(self) -> dict[str, Any]:
        """Return the record ``HoodieCompactionOperation``; it holds names, not paths."""
        return {
            "baseInstantTime": self.base_instant,
            "deltaFilePaths": list(self.log_files),
            "dataFilePath": self.data_file,
            "fileId": self.file_id,
            "partitionPath": self.partition,
            "metrics": dict(self.metrics),
            "bootstrapFilePath": None,
        }

    @classmethod
    def from_record(cls, raw: Mapping[str, Any], source: str) -> CompactionOperation:
        """Check and take over a record of a stored plan."""
        partition = relative_path(str(raw.get("partitionPath") or ""))
        data_file = str(raw.get("dataFilePath") or "").rpartition("/")[2] or None
        operation = cls(
            partition,
            str(raw.get("fileId") or ""),
            str(raw.get("baseInstantTime") or ""),
            data_file,
            tuple(str(path).rpartition("/")[2] for path in raw.get("deltaFilePaths") or ()),
            {key: float(value) for key, value in (raw.get("metrics") or {}).items()},
        )
        operation._check(source)
        return operation

    def file_slice(self, sizes: Mapping[str, int], written: Mapping[str, tuple[Written, ...]]) -> FileSlice:
        """Return the slice, with the bytes of its files and what completed commits wrote to its logs, by path."""
        base = self._base_file()
        if base is not None:
            base = replace(base, size=sizes[base.path])
        logs = tuple(
            replace(log, size=sizes[log.path], written=written.get(log.path, ())) for log in self.logs
        )
        return FileSlice(self.partition, self.file_id, self.base_instant, base, logs)

    @property
    def names(self) -> frozenset[str]:
        """Names of all files that the operation reads."""
        return frozenset(self.log_files) | ({self.data_file} if self.data_file else frozenset())

    def _base_file(self) -> BaseFile | None:
        return parse_base_file(self.data_file, self.partition) if self.data_file else None

    @property
    def logs(self) -> list[LogFile]:
        """Its log files, parsed from their names."""
        parsed = (parse_log_file(name, self.partition) for name in self.log_files)
        return [log for log in parsed if log is not None]

    def _check(self, source: str) -> None:
        base = self._base_file()
        wrong = [log for log in self.logs if log.file_id != self.file_id]
        if (
            not self.file_id
            or (self.data_file is not None and (base is None or base.file_id != self.file_id))
            or wrong
            or len(self.logs) != len(self.log_files)
        ):
            raise CorruptTableError(
                f"{source} plans to compact files of {self.file_id!r} in partition {self.partition!r} that "
                f"are not its own: base file {self.data_file!r}, logs {list(self.log_files)!r}. Look at the "
                "file, and delete the plan if it is not Hudi's"
            )


@dataclass(frozen=True)
class CompactionPlan(StoredPlan):
    """What one compaction does."""

    operations: tuple[CompactionOperation, ...]

    @property
    def partitions(self) -> frozenset[str]:
        """Partitions of its file groups."""
        return frozenset(operation.partition for operation in self.operations)

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
    """Plan a compaction now, whatever the triggers say."""
    publication = publish if publish is not None else publication_of(storage)
    with storage_errors(storage, "plan a compaction"), table_lock(storage, options):
        return schedule_locked(open_locked(storage, options, publication, sweeps=False), options)


def schedule_locked(state: TableState, options: Options) -> CompactionResult:
    """Plan a compaction of a table that was just read; the caller holds its lock."""
    require_merge_on_read(state)
    state.check_rows_writable()
    operations, reason = choose_operations(state, options)
    plan = CompactionPlan(tuple(operations))
    if not plan.operations:
        return CompactionResult(reason=reason)
    # A plan has no owner before it runs.
    opened = OpenInstant.announce(state.storage, state.config, state.timeline, "compaction", plan.to_bytes())
    logger.info("scheduled compaction %s of %d file groups", opened.time, len(plan.operations))
    return plan.describe(opened.time, "scheduled")


def choose_operations(state: TableState, options: Options) -> tuple[Sequence[CompactionOperation], str]:
    """Return what a compaction planned now would merge, or nothing and the reason; nothing is written."""
    slices, reason = candidates(state)
    new_file_bytes = options[FileOptions.MAX_FILE_SIZE]
    chosen = strategy_of(options)([CompactionOperation.of(each, new_file_bytes) for each in slices], options)
    if chosen:
        return chosen, ""
    return (), reason or "the strategy takes none of the file slices with log files"


def candidates(state: TableState) -> tuple[Sequence[FileSlice], str]:
    """Return the slices that can be compacted, or none and the reason."""
    timeline = state.timeline
    in_use = partitions_in_use(timeline)
    if in_use is None:
        return (), "a write is under way whose partitions are not known yet; try again when it has ended"
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
        "no file slice has log files (updates and deletes write them; a file group that takes new rows in the same write gets a "
        "base file)"
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


def _most_first(
    metric: str, threshold: Option[int], operations: Sequence[CompactionOperation], options: Options
) -> list[CompactionOperation]:
    """Return slices with the most of something in their logs first, above a threshold, up to the target IO."""
    worthy = [each for each in operations if each.metrics.get(metric, 0.0) >= options[threshold]]
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


def bounded_partitions(
    operations: Sequence[CompactionOperation], options: Options
) -> list[CompactionOperation]:
    """Return slices of the last days up to today, newest first; partitions that are no dates are left to the other strategy."""
    first = _today() - timedelta(days=options[CompactionOptions.TARGET_PARTITIONS])
    recent = [each for each in operations if (_day(each.partition) or date.min) >= first]
    return sorted(recent, key=lambda each: _day_key(each.partition), reverse=True)


def unbounded_partitions(
    operations: Sequence[CompactionOperation], options: Options
) -> list[CompactionOperation]:
    """Return the slices that `bounded_partitions` leaves, so that a long compaction of them does not meet short ones."""
    recent = {each.partition for each in bounded_partitions(operations, options)}
    return [each for each in operations if each.partition not in recent]


def _today() -> date:
    return datetime.now().astimezone().date()


def _day(partition: str) -> date | None:
    match = _DATE.match(partition)
    try:
        return date(*(int(group) for group in match.groups())) if match else None
    except ValueError:
        return None


def _day_key(partition: str) -> tuple[bool, date, str]:
    day = _day(partition)
    return (day is not None, day or date.min, partition)


STRATEGIES: dict[str, Strategy] = {
    "LogFileSizeBasedCompactionStrategy": partial(
        _most_first, LOG_BYTES, CompactionOptions.LOG_SIZE_THRESHOLD
    ),
    "LogFileNumBasedCompactionStrategy": partial(
        _most_first, LOG_FILES, CompactionOptions.LOG_COUNT_THRESHOLD
    ),
    "BoundedIOCompactionStrategy": bounded_io,
    "DayBasedCompactionStrategy": day_based,
    "UnBoundedCompactionStrategy": lambda operations, _: list(operations),
    "BoundedPartitionAwareCompactionStrategy": bounded_partitions,
    "UnBoundedPartitionAwareCompactionStrategy": unbounded_partitions,
}


@dataclass(frozen=True)
class DeltaCommits:
    """Completed delta commits since a moment: how many, and the instant from which time is measured."""

    count: int
    since: str | None


def compaction_due(timeline: Timeline, options: Options, now: str) -> bool:
    """Return whether ``hoodie.compact.inline.trigger.strategy`` fires."""
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
    """Count the delta commits after the newest compaction."""
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


def show_compactions(storage: Storage) -> list[PendingCompaction]:
    """Return the compactions of the active timeline, planned, running and completed, oldest first."""
    state = TableState.load(storage)
    found = []
    for instant in state.timeline.instants:
        if instant.action == "compaction":
            operations = read_plan(state, instant).operations
            found.append(
                PendingCompaction(
                    instant.requested_time,
                    instant.state.value,
                    len(operations),
                    sum(len(each.log_files) for each in operations),
                    int(sum(each.metrics.get(LOG_BYTES, 0.0) for each in operations)),
                )
            )
        elif instant.action == "commit" and instant.is_completed:
            metadata = state.timeline.commit_metadata(instant)
            if metadata.compacted:
                stats = [stat for _, stat in metadata.write_stats()]
                found.append(
                    PendingCompaction(
                        instant.requested_time,
                        instant.state.value,
                        len(stats),
                        sum(stat.total_log_files_compacted or 0 for stat in stats),
                        sum(stat.total_log_size_compacted or 0 for stat in stats),
                    )
                )
    return found


def pending_compactions(timeline: Timeline, options: Options) -> list[Instant]:
    """Return planned compactions in the order of ``hoodie.compaction.order``."""
    found = [instant for instant in timeline.pending if instant.action == "compaction"]
    return found[::-1] if options[CompactionOptions.ORDER] == CompactionOrder.LIFO else found


def read_plan(state: TableState, instant: Instant) -> CompactionPlan:
    """Return the plan of a compaction that has not completed."""
    plan = stored_plan(state.storage, state.config, instant, CompactionPlan.from_bytes)
    if plan is None:
        raise CorruptTableError(
            f"the plan of compaction {instant.requested_time} of {state.storage.base!r} was cut short when its writer died. "
            "Nothing was done under it; the next compaction drops it"
        )
    return plan


def drop_torn_plans(state: TableState) -> tuple[TableState, dict[str, CompactionPlan]]:
    """Remove plans that were cut short when their writer died; return the table without them, and the requested plans.

    Later writes may go by one of them: it was whole once and was damaged since, which raises CorruptTableError.
    """
    plans: dict[str, CompactionPlan] = {}
    dropped = False
    for instant in state.timeline.pending:
        if instant.action != "compaction" or instant.state is not State.REQUESTED:
            continue
        plan = stored_plan(state.storage, state.config, instant, CompactionPlan.from_bytes)
        if plan is None:
            check_droppable(state, instant)
            OpenInstant(state.storage, state.config, instant.requested_time, "compaction").drop()
            dropped = True
        else:
            plans[instant.requested_time] = plan
    return TableState.load(state.storage) if dropped else state, plans


def logs_named_after(state: TableState, instant: Instant) -> list[str]:
    """Return the logs that later writes made for a planned compaction: its instant is in their names.

    Without the plan they would count as slices of their own once the archive has passed its instant, without the rows of the
    base files below them.
    """
    logs = (log for each in state.view().every_slice() for log in each.log_files)
    return [log.path for log in logs if log.instant == instant.requested_time]


def check_droppable(state: TableState, instant: Instant) -> None:
    """Refuse to drop a damaged plan that later writes go by; raises CorruptTableError."""
    based = logs_named_after(state, instant)
    if based:
        path = f"{state.storage.base}/{state.config.timeline_path}/{instant.file_name}"
        raise CorruptTableError(
            f"{path} cannot be read, and the plan cannot go, as logs of later writes are named after it: "
            f"{', '.join(based[:3])}. Put the file back from a copy and run the compaction; or read the table and "
            "rebuild it at another path"
        )
