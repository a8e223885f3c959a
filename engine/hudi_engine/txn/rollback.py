"""Undoing an instant, in Apache Hudi's layout, and finishing a rollback that was killed.

The order is what makes it safe to be killed anywhere (Hudi table format, rollback): the plan is stored first;
a completed instant is unpublished before any of its files goes; the instant's own timeline files go last but
one, and the completed rollback is the last file written. Each step can be done again. All functions here
expect the caller to hold the table's lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.filegroup.base_file import parse_base_file
from hudi_engine.filegroup.listing import list_partition_files
from hudi_engine.filegroup.log_file import log_file_name, parse_log_file
from hudi_engine.filegroup.markers import delete_markers
from hudi_engine.logformat.format import HeaderKey
from hudi_engine.logformat.reader import read_blocks
from hudi_engine.logformat.writer import encode_rollback_block
from hudi_engine.storage.base import Storage
from hudi_engine.storage.paths import join
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.avro_file import encode_avro_file
from hudi_engine.timeline.commit_metadata import CommitMetadata
from hudi_engine.timeline.instant import WRITE_ACTIONS, Instant, State, timeline_file_name
from hudi_engine.timeline.schemas import ROLLBACK_METADATA
from hudi_engine.timeline.writer import TimelineWriter
from hudi_engine.txn.owner import heartbeat_path
from hudi_engine.txn.rollback_plan import (
    RollbackFinder,
    RollbackPlan,
    RollbackRequest,
    absolute_path,
    slice_log_files,
)

logger = logging.getLogger(__name__)

ROLLBACK_TOKEN = "1-0-1"
"""Write token of log files that no task wrote."""
_PLANNED_AS = {"commit": ("commit", "compaction"), "deltacommit": ("deltacommit", "logcompaction")}
_SERVICES = frozenset({"compaction", "logcompaction", "clustering"})

Republish = Callable[[], None]
"""Called when a completed instant is no longer visible and before its files go, so that a published list of
files can be renewed first."""


@dataclass(frozen=True)
class RollbackResult:
    """What a rollback did.

    Args:
        rollback_time: Instant of the rollback.
        instant: Instant that was rolled back.
        action: Its action.
        deleted: Data files that went, relative to the base path.
        command_blocks: Log files written to neutralise blocks of the instant.
    """

    rollback_time: str
    instant: str
    action: str
    deleted: tuple[str, ...]
    command_blocks: tuple[str, ...]


@dataclass
class _PartitionOutcome:
    """Entry of one partition in the rollback's metadata."""

    deleted: list[str] = field(default_factory=list)
    command_blocks: dict[str, int] = field(default_factory=dict)
    failed_logs: dict[str, int] = field(default_factory=dict)


def rollback_instant(
    storage: Storage,
    config: TableConfig,
    instant: Instant,
    *,
    rollback_time: str,
    protect: Collection[str] = (),
    republish: Republish | None = None,
    drop_service: bool = False,
) -> RollbackResult:
    """Undo an instant: data files, log blocks, timeline files.

    Args:
        instant: A pending write, or the newest completed one.
        rollback_time: Instant of the rollback, greater than every other one.
        protect: Paths of files that a published file list still names; the rollback refuses to delete them.
        republish: Called between unpublishing a completed instant and deleting its files.
        drop_service: Also accept a pending compaction or clustering, and drop its plan with what it wrote.

    Raises:
        TimelineError: when the instant cannot be rolled back: it is not there, not a write, not the newest
            completed one, saved by a savepoint, built upon by a planned compaction, or the files before it
            are gone.
    """
    timeline = Timeline.load(storage, config)
    current = timeline.find(instant.requested_time, instant.action)
    _check_allowed(timeline, current, drop_service)
    metadata = _metadata_of(timeline, current)
    if current.is_completed and metadata is not None:
        _check_older_files(storage, current, metadata)
    finder = RollbackFinder(
        storage,
        config,
        current.requested_time,
        metadata,
        keep_logs=_is_service(timeline, current) and _has_later_deltacommits(timeline, current),
    )
    everywhere = current.state is State.INFLIGHT
    plan = RollbackPlan(current.requested_time, current.action, finder.find(everywhere=everywhere))
    _check_unprotected(plan, protect)
    TimelineWriter(storage, config).create_requested(rollback_time, "rollback", plan.to_bytes(storage))
    return _Execution(storage, config, rollback_time, plan, republish).run()


def resume_rollbacks(
    storage: Storage, config: TableConfig, *, republish: Republish | None = None
) -> tuple[RollbackResult, ...]:
    """Finish the rollbacks that somebody began and did not complete.

    A plan that was cut short is dropped: nothing was done under it. So is one for a completed instant that is
    no longer the newest write, since nothing was taken away yet and later commits build on it.

    Raises:
        CorruptTableError, PathEscapeError: when a stored plan names files that are not the instant's.
    """
    timeline = Timeline.load(storage, config)
    writer = TimelineWriter(storage, config)
    done = []
    for pending in timeline.pending:
        if pending.action != "rollback":
            continue
        plan = read_rollback_plan(storage, config, timeline, pending)
        if plan is None or _is_built_upon(timeline, plan):
            logger.warning("dropping rollback %s, which was not begun", pending.requested_time)
            writer.delete(pending.requested_time, "rollback", State.INFLIGHT, State.REQUESTED)
            continue
        logger.info("finishing rollback %s of %s", pending.requested_time, plan.instant)
        done.append(_Execution(storage, config, pending.requested_time, plan, republish).run())
    return tuple(done)


def read_rollback_plan(
    storage: Storage, config: TableConfig, timeline: Timeline, pending: Instant
) -> RollbackPlan | None:
    """Return the plan of a pending rollback, None when its file is missing or was cut short before it began.

    Raises:
        CorruptTableError: when the rollback is in flight and its plan cannot be read.
        PathEscapeError: when the plan names a file outside its partition.
    """
    name = timeline_file_name(pending.requested_time, "rollback", State.REQUESTED)
    path = f"{config.timeline_path}/{name}"
    try:
        data = timeline.read_file(name)
    except FileNotFoundError:
        data = b""
    if pending.state is State.REQUESTED and not _is_whole_avro(data):
        return None
    return RollbackPlan.from_bytes(data, f"{storage.base}/{path}")


class _Execution:
    """One run, first or repeated, of a stored plan."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        rollback_time: str,
        plan: RollbackPlan,
        republish: Republish | None,
    ) -> None:
        self._storage = storage
        self._config = config
        self._time = rollback_time
        self._plan = plan
        self._republish = republish
        self._writer = TimelineWriter(storage, config)
        self._partitions: dict[str, _PartitionOutcome] = {}

    def run(self) -> RollbackResult:
        started = time.monotonic()
        if not self._exists("rollback", self._time, State.INFLIGHT):
            self._writer.to_inflight(self._time, "rollback")
        if self._unpublish() and self._republish is not None:
            self._republish()
        for request in self._plan.requests:
            self._carry_out(request)
        self._remove_pending(State.INFLIGHT)
        self._delete_strays()
        self._remove_pending(State.REQUESTED)
        delete_markers(self._storage, self._plan.instant)
        self._storage.delete(heartbeat_path(self._plan.instant))
        self._complete(int((time.monotonic() - started) * 1000))
        return RollbackResult(
            self._time,
            self._plan.instant,
            self._plan.action,
            tuple(path for outcome in self._partitions.values() for path in outcome.deleted),
            tuple(path for outcome in self._partitions.values() for path in outcome.command_blocks),
        )

    def _unpublish(self) -> bool:
        """Remove the completed file, so that no reader sees the instant while its files go."""
        if self._plan.action not in WRITE_ACTIONS:
            return False
        name = timeline_file_name(self._plan.instant, self._plan.action, State.COMPLETED)
        return self._storage.delete(f"{self._config.timeline_path}/{name}")

    def _carry_out(self, request: RollbackRequest) -> None:
        outcome = self._outcome(request.partition)
        for path in request.delete:
            self._storage.delete(path)
            outcome.deleted.append(path)
        if request.log_files:
            path, size = self._neutralise(request)
            outcome.command_blocks[path] = size
            outcome.failed_logs.update(request.log_files)

    def _neutralise(self, request: RollbackRequest) -> tuple[str, int]:
        """Write the command block of a slice unless an earlier run did; return its file and size."""
        logs = slice_log_files(self._storage, request.partition, request.file_id, request.base_instant)
        block = encode_rollback_block(self._time, self._plan.instant)
        for log in reversed(logs):
            if log.size == len(block) and _is_command(self._storage.read(log.path), self._time):
                return log.path, log.size
        version = max((log.version for log in logs), default=0) + 1
        while True:
            name = log_file_name(request.file_id, request.base_instant, version, ROLLBACK_TOKEN)
            path = join(request.partition, name)
            try:
                self._storage.create(path, block)
                return path, len(block)
            except FileExistsError:
                version += 1

    def _remove_pending(self, state: State) -> None:
        for action in _PLANNED_AS.get(self._plan.action, (self._plan.action,)):
            self._writer.delete(self._plan.instant, action, state)

    def _delete_strays(self) -> None:
        """Delete base files that tasks of a killed writer have finished since the plan was made.

        Tasks look for the inflight file before they give a file its name, so after its removal no more come.
        """
        for partition, outcome in self._partitions.items():
            for status in list_partition_files(self._storage, partition):
                base = parse_base_file(status.name, partition, status)
                if base is not None and base.instant == self._plan.instant:
                    self._storage.delete(status.path)
                    outcome.deleted.append(status.path)

    def _complete(self, took_ms: int) -> None:
        info = {"commitTime": self._plan.instant, "action": self._plan.action}
        record = {
            "startRollbackTime": self._time,
            "timeTakenInMillis": took_ms,
            "totalFilesDeleted": sum(len(outcome.deleted) for outcome in self._partitions.values()),
            "commitsRollback": [self._plan.instant],
            "partitionMetadata": {
                partition: {
                    "partitionPath": partition,
                    "successDeleteFiles": [absolute_path(self._storage, path) for path in outcome.deleted],
                    "failedDeleteFiles": [],
                    "rollbackLogFiles": self._with_uris(outcome.command_blocks),
                    "logFilesFromFailedCommit": self._with_uris(outcome.failed_logs),
                }
                for partition, outcome in self._partitions.items()
            },
            "version": 1,
            "instantsRollback": [info],
        }
        self._writer.complete(self._time, "rollback", encode_avro_file(ROLLBACK_METADATA, record))

    def _outcome(self, partition: str) -> _PartitionOutcome:
        return self._partitions.setdefault(partition, _PartitionOutcome())

    def _with_uris(self, sizes: dict[str, int]) -> dict[str, int]:
        return {self._storage.uri(path): size for path, size in sizes.items()}

    def _exists(self, action: str, instant: str, state: State) -> bool:
        name = timeline_file_name(instant, action, state)
        return self._storage.exists(f"{self._config.timeline_path}/{name}")


def _check_allowed(timeline: Timeline, instant: Instant, drop_service: bool) -> None:
    time_, action = instant.requested_time, instant.action
    if action not in WRITE_ACTIONS and not (drop_service and action in _SERVICES):
        raise TimelineError(
            f"{action} {time_} cannot be rolled back: only commit, deltacommit and replacecommit can. A "
            "planned "
            "compaction or clustering is carried out by its service"
        )
    if time_ in {savepoint.requested_time for savepoint in timeline.savepoints}:
        raise TimelineError(
            f"{action} {time_} cannot be rolled back: a savepoint keeps it. Delete the savepoint first"
        )
    if not instant.is_completed:
        return
    newest = timeline.completed_writes[-1]
    if newest.requested_time != time_:
        raise TimelineError(
            f"{action} {time_} cannot be rolled back: {newest.action} {newest.requested_time} was written "
            "after it. "
            "Roll back the newest write first, or restore to a savepoint"
        )
    for pending in timeline.pending:
        if pending.action in _SERVICES and pending.requested_time > time_:
            raise TimelineError(
                f"{action} {time_} cannot be rolled back: {pending.action} {pending.requested_time} is "
                "planned on "
                "top of it. Run it, or drop its plan, first"
            )


def _check_older_files(storage: Storage, instant: Instant, metadata: CommitMetadata) -> None:
    """Refuse when a clean has taken the files that readers would need after the rollback."""
    for partition, stats in metadata.partition_to_write_stats.items():
        needed = {
            (stat.file_id, stat.prev_commit)
            for stat in stats
            if not stat.is_log_file and stat.prev_commit not in (None, "", "null")
        }
        if needed:
            _check_slices(
                storage, instant, partition, {(str(file_id), str(prev)) for file_id, prev in needed}
            )
    for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
        present = {file_id for file_id, _ in _slices_in(storage, partition)}
        for file_id in file_ids:
            if file_id not in present:
                raise TimelineError(_cleaned(instant, partition, file_id))


def _check_slices(storage: Storage, instant: Instant, partition: str, needed: set[tuple[str, str]]) -> None:
    missing = needed - _slices_in(storage, partition)
    if missing:
        raise TimelineError(_cleaned(instant, partition, min(missing)[0]))


def _slices_in(storage: Storage, partition: str) -> set[tuple[str, str]]:
    found = set()
    for status in list_partition_files(storage, partition):
        base = parse_base_file(status.name, partition, status)
        log = parse_log_file(status.name, partition, status)
        if base is not None:
            found.add((base.file_id, base.instant))
        elif log is not None:
            found.add((log.file_id, log.instant))
    return found


def _cleaned(instant: Instant, partition: str, file_id: str) -> str:
    return (
        f"{instant.action} {instant.requested_time} cannot be rolled back: the files of file group "
        f"{file_id!r} in "
        f"partition {partition!r} from before it were cleaned. Restore the data from its source instead"
    )


def _check_unprotected(plan: RollbackPlan, protect: Collection[str]) -> None:
    kept = sorted(set(plan.deleted_paths) & set(protect))
    if kept:
        raise TimelineError(
            f"{plan.action} {plan.instant} cannot be rolled back: {len(kept)} of its files are still "
            "published to "
            f"readers, such as {kept[0]!r}. Publish the state before it first"
        )


def _metadata_of(timeline: Timeline, instant: Instant) -> CommitMetadata | None:
    """Return commit metadata, or the workload of a pending write; None when there is none that can be
    read.
    """
    if instant.is_completed:
        return timeline.commit_metadata(instant)
    try:
        return timeline.planned_metadata(instant)
    except CorruptTableError as error:
        logger.warning(
            "the inflight file of %s cannot be read, listing all partitions: %s",
            instant.requested_time,
            error,
        )
        return None


def _is_service(timeline: Timeline, instant: Instant) -> bool:
    if instant.action in _SERVICES:
        return True
    return instant.is_completed and timeline.commit_metadata(instant).compacted


def _has_later_deltacommits(timeline: Timeline, instant: Instant) -> bool:
    return any(
        write.action == "deltacommit" and write.requested_time > instant.requested_time
        for write in timeline.completed_writes
    )


def _is_built_upon(timeline: Timeline, plan: RollbackPlan) -> bool:
    times = [write.requested_time for write in timeline.completed_writes]
    return plan.instant in times and times[-1] != plan.instant


def _is_whole_avro(data: bytes) -> bool:
    """Return whether an Avro container file of one block ends with its own sync marker."""
    return len(data) > 36 and data.startswith(b"Obj\x01") and data.count(data[-16:]) >= 2


def _is_command(data: bytes, rollback_time: str) -> bool:
    return any(
        block.is_rollback and block.header.get(HeaderKey.INSTANT_TIME) == rollback_time
        for block in read_blocks(data)
    )
