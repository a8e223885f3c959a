"""Runs of a plan that is on the timeline already, a compaction or a clustering: who runs it, its commit, its undoing.

Readers and writers continue meanwhile: files are only added, and no reader sees them before the one file that completes the
instant. Whatever fails, or dies, leaves the plan as it was, to be run again.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import pyarrow as pa

from hudi_engine.errors import HudiError, ServiceError, StorageError, TimelineError
from hudi_engine.format.config.declared.engine_options import MergeOptions, WriterOptions
from hudi_engine.format.config.enums import FailedWritesPolicy, WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.markers import delete_markers
from hudi_engine.format.filegroup.view import list_partition_files
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.table_reader import read_context, table_schema
from hudi_engine.format.schema.meta_fields import meta_fields, with_meta_columns
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.telemetry.services import Done
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.table.services.result import PlannedResult
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import KeyScope, check_conflicts, is_clustering
from hudi_engine.table.txn.metadata_conflicts import column_ids, with_checkpoint
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.owner import Liveness, OwnerState, heartbeat_path
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.receipts import with_receipt
from hudi_engine.table.txn.recovery import recover, table_lock
from hudi_engine.table.txn.removal import announced_files, settle_markers
from hudi_engine.table.txn.rollback import check_not_rolled_back, pending_rollback_of

logger = logging.getLogger(__name__)
_Planned = TypeVar("_Planned", bound=PlannedResult)


def done_as(action: str, commit: str) -> Callable[[_Planned], Done | None]:
    """Return what the metrics record of a run: of one that completed, its commit."""

    def done(result: _Planned) -> Done | None:
        if result.instant is None or result.state != "completed":
            return None
        return Done(action, commit=(commit, result.instant))

    return done


def open_locked(
    storage: Storage, options: Options, publication: Publication, *, sweeps: bool = True
) -> TableState:
    """Return the table as it is after writes of dead writers were rolled back. The caller holds the lock."""
    config = TableConfig.load(storage)
    config.check_writable()
    timeline = recover(storage, config, options, publication, sweeps=sweeps).timeline
    return TableState(storage, timeline.config, timeline)


def partitions_in_use(timeline: Timeline) -> frozenset[str] | None:
    """Return the partitions that writers in flight work on; None when it may be any of them.

    Such a writer has read the timeline before and will not notice what is planned now, so its partitions are left alone.
    """
    found: set[str] = set()
    for instant in timeline.pending:
        if instant.action not in WRITE_ACTIONS:
            continue
        if is_clustering(timeline, instant):
            continue
        workload = timeline.planned_metadata(instant) if instant.state is State.INFLIGHT else None
        if workload is None or not workload.partition_to_write_stats:
            return None
        found.update(workload.partition_to_write_stats)
    return frozenset(found)


def run_planned(
    service: str,
    storage: Storage,
    options: Options,
    publication: Publication,
    claim: Callable[[TableState], PlanRun[_Planned] | _Planned],
) -> _Planned:
    """Claim a plan under the table's lock, carry it out, and publish its commit; a claim may find nothing to run."""
    with ExitStack() as stack:
        with storage_errors(storage, f"begin a {service}"), table_lock(storage, options):
            run = claim(open_locked(storage, options, publication, sweeps=False))
            if not isinstance(run, PlanRun):
                return run
            stack.enter_context(run.opened).start()
        stats, committed = run.carry_out()
    try:
        publication.publish(run.state.config, committed)
    except Exception as error:  # the commit stays; the next write or session start publishes
        logger.warning("%s %s is committed but could not be published: %s", service, run.instant, error)
    return run.result(stats)


@dataclass(frozen=True)
class PlanRun(ABC, Generic[_Planned]):
    """A plan that this process carries out."""

    service: str
    state: TableState
    options: Options
    opened: OpenInstant  # the instant, in flight and this process's
    partitions: frozenset[str]

    @abstractmethod
    def work(self) -> list[WriteStat]:
        """Write the new files."""

    @abstractmethod
    def metadata(self, stats: Sequence[WriteStat]) -> CommitMetadata:
        """Return the commit of what was written."""

    @abstractmethod
    def result(self, stats: Sequence[WriteStat]) -> _Planned:
        """Return what the service reports."""

    @property
    def instant(self) -> str:
        """Its instant."""
        return self.opened.time

    def reading(self) -> tuple[ReadContext, pa.Schema]:
        """Return how the plan's slices are read, in the memory of a service, and the columns of that read without meta columns."""
        state = self.state
        read = replace(
            as_planned(state, read_context(state.storage, state.config, state.timeline), self.instant),
            memory_limit_bytes=self.options[MergeOptions.COMPACTION_MEMORY],
            spill_dir=self.options[MergeOptions.SPILL_FOLDER],
        )
        meta = meta_fields(operation=state.config.keeps_operations)
        return read, pa.schema(
            [field for field in read.schema if field.name not in meta], read.schema.metadata
        )

    def carry_out(self) -> tuple[list[WriteStat], Timeline]:
        """Do the work and commit it, or take it back; return what it wrote and the timeline after the commit."""
        try:
            stats = self.work()
            return stats, self.commit(self.metadata(stats))
        except BaseException as error:
            self.take_back(error)
            if isinstance(error, HudiError) or not isinstance(error, Exception):
                raise
            raise ServiceError(
                f"{self.service} {self.instant} of {self.state.storage.base!r} failed and was taken back; its plan "
                f"is kept and can be run again: {error}"
            ) from error

    def commit(self, metadata: CommitMetadata) -> Timeline:
        """Complete the instant unless another write conflicts with it; return the timeline after that."""
        storage, config = self.state.storage, self.state.config
        wanted = frozenset(str(stat.path) for _, stat in metadata.write_stats())
        with table_lock(storage, self.options) as lock:
            current = Timeline.load(storage, config)
            if any(
                each.requested_time == self.instant and each.state is State.INFLIGHT
                for each in current.pending
            ):
                self.opened.check_owner()
            else:
                self.opened.check_mine()
                self.opened.void_late_commit()
                current = Timeline.load(storage, config)
            self._check(metadata, current)
            history = load_schema_history(storage, current)
            # A later write's columns would stay when that write is taken back.
            schema = current.table_schema_json(self.instant)
            if schema is not None:
                metadata.extra_metadata["schema"] = schema
            metadata.extra_metadata.update(column_ids(history, self.instant))
            metadata = with_checkpoint(metadata, instant=self.instant, current=current)
            metadata = with_receipt(metadata, instant=self.instant, current=current)
            sweep(storage, self.instant, self.partitions, wanted)
            body = metadata.to_bytes(config.table_version)
            done = self.opened.complete_fenced(body, lock, current, partial(self._check, metadata))
        self._tidy(wanted)
        return current.as_if_completed(self.instant, done.action, metadata, done.completion_time)

    def take_back(self, cause: BaseException) -> None:
        """Leave the plan as it was, unless its commit is there; what cannot be undone now is undone by the next run."""
        ownership = self.opened.ownership
        try:
            if self.opened.is_ours():
                logger.warning("%s %s is completed, not taken back: %s", self.service, self.instant, cause)
                self.opened.give_up()
                return
            logger.warning("%s %s failed, its plan is kept: %s", self.service, self.instant, cause)
            with table_lock(self.state.storage, self.options):
                if ownership is not None and ownership.is_mine():
                    self.opened.void_late_commit()
                    take_back(self.state, self.opened, self.partitions)
        except Exception as error:  # the cause is what the caller must hear of
            logger.warning(
                "%s %s could not be taken back, the next run will: %s", self.service, self.instant, error
            )
            self.opened.give_up()

    def _check(self, metadata: CommitMetadata, current: Timeline) -> None:
        check_not_rolled_back(self.state.storage, self.state.config, current, self.opened)
        check_conflicts(
            metadata, instant=self.instant, base=self.state.timeline, current=current, key_scope=KeyScope.NONE
        )

    def _tidy(self, wanted: frozenset[str]) -> None:
        storage = self.state.storage
        try:
            # A task of an earlier run that looked for the inflight file just before may have finished since.
            announced = announced_files(storage, self.instant)
            sweep(storage, self.instant, self.partitions, wanted, announced)
            settle_markers(storage, self.instant, wanted, announced=announced)
        except (OSError, StorageError) as error:
            logger.warning("could not remove leftovers of %s, the next write will: %s", self.instant, error)
        finally:
            self.opened.release()


def by_partition(stats: Iterable[WriteStat]) -> dict[str, list[WriteStat]]:
    """Return write stats by their partition paths."""
    found: dict[str, list[WriteStat]] = {}
    for stat in stats:
        found.setdefault(stat.partition_path or "", []).append(stat)
    return found


def choose_planned(
    service: str, state: TableState, options: Options, pending: Sequence[Instant], wanted: str | None
) -> Instant | None:
    """Return the plan to run now, None when all are taken or there is none."""
    if wanted is not None:
        chosen = [instant for instant in pending if instant.requested_time == wanted]
        if not chosen:
            planned = ", ".join(instant.requested_time for instant in pending) or "none"
            raise TimelineError(f"{service} {wanted!r} is not planned; planned are: {planned}")
        check_not_running(service, state, chosen[0], options)
        return chosen[0]
    return next((each for each in pending if not is_running(state, each, options)), None)


def is_running(state: TableState, instant: Instant, options: Options) -> bool:
    """Return whether a live process works on a plan.

    A run without a heartbeat is another program's. It is respected while it is young; then
    ``hoodie.cleaner.policy.failed.writes`` decides whether it is taken for dead (``EAGER``), as Apache Hudi does when
    it runs the service inline. A rollback of a run that was not ended when the table was opened is another live program's too.
    """
    undoing = pending_rollback_of(state.storage, state.config, state.timeline, instant.requested_time)
    return undoing is not None or _is_worked_on(state, instant, options)


def _is_worked_on(state: TableState, instant: Instant, options: Options) -> bool:
    if instant.state is State.REQUESTED:
        return False
    owner = Liveness(state.storage, state.config, options).of(instant)
    if owner is OwnerState.UNKNOWN:
        return options[WriterOptions.FAILED_WRITES_POLICY] != FailedWritesPolicy.EAGER
    return owner is not OwnerState.DEAD


def check_not_running(service: str, state: TableState, instant: Instant, options: Options) -> None:
    """Refuse to touch a plan that a live process works on, or that is being rolled back."""
    plan = f"{service} {instant.requested_time}"
    undoing = pending_rollback_of(state.storage, state.config, state.timeline, instant.requested_time)
    if undoing is not None:
        raise ServiceError(
            f"{plan} is being rolled back by {undoing.action} {undoing.requested_time}, which another program began; the next "
            "writer ends it once its files are older than a heartbeat may be, and then the plan can be run"
        )
    if _is_worked_on(state, instant, options):
        raise ServiceError(f"{plan} is being run by another process; wait until it is done")


def take_over(
    service: str, state: TableState, options: Options, chosen: Instant, partitions: Collection[str]
) -> tuple[TableState, OpenInstant]:
    """Make a plan this process's, after what a dead run did under it was taken back. The caller holds the lock."""
    if chosen.state is State.INFLIGHT:
        logger.warning(
            "%s %s was left by a process that has ended; it runs again", service, chosen.requested_time
        )
        left = OpenInstant(state.storage, state.config, chosen.requested_time, chosen.action)
        take_back(state, left, partitions)
    return state, OpenInstant.claim(state.storage, state.config, options, chosen)


def take_back(state: TableState, opened: OpenInstant, partitions: Collection[str]) -> None:
    """Take back what a run did, so that its plan is as if it had never run. The caller holds the lock.

    The inflight file goes first: tasks that outlive their process look for it before they publish a file.
    What a kill leaves behind in between is swept when the plan runs again.
    """
    storage = state.storage
    if opened.is_completed():
        return
    opened.back_to_plan()
    removed = sweep(storage, opened.time, partitions, frozenset())
    delete_markers(storage, opened.time)
    storage.remove(heartbeat_path(opened.time))
    logger.info(
        "%s %s was taken back, %d files removed; its plan is kept", opened.action, opened.time, removed
    )


def sweep(
    storage: Storage,
    instant: str,
    partitions: Iterable[str],
    wanted: frozenset[str],
    announced: Iterable[str] = (),
) -> int:
    """Delete base files that runs of a plan wrote and its commit does not name; return how many.

    Args:
        announced: Paths of its markers, which may be of files that are not listed yet.
    """
    found = set(announced)
    for partition in partitions:
        found.update(status.path for status in list_partition_files(storage, partition))
    removed = 0
    for path in sorted(found - wanted):
        base = parse_base_file(path, path.rpartition("/")[0])
        if base is not None and base.instant == instant and storage.delete(path):
            removed += 1
    return removed


def as_planned(state: TableState, read: ReadContext, instant: str) -> ReadContext:
    """Return how the slices of a plan are read: no value is left out, or widened, that a state since the plan may need."""
    history = read.schema_history
    if history is not None:
        known = history.up_to(instant)
        if known == history:
            return read
        # by the instant of a file readers look up which ids its columns have
        read = replace(read, schema_history=known)
        columns = table_schema(state.config, state.timeline, instant)
    else:
        columns = _columns_since(state, instant)
    return replace(read, schema=with_meta_columns(columns, operation=state.config.keeps_operations))


def _columns_since(state: TableState, instant: str) -> pa.Schema:
    """Return the columns at an instant and those that came later: of one that was dropped before, older files have values.

    Each has its first type, which can be read as every later one. A name in another case is no second column.
    """
    columns = table_schema(state.config, state.timeline, instant)
    known = {name.lower() for name in columns.names}
    for write in state.timeline.completed_writes:
        if write.requested_time <= instant:
            continue
        if state.timeline.commit_metadata(write).operation_type == WriteOperation.INSERT_OVERWRITE_TABLE:
            break  # its columns, and those after it, need not fit what stood before
        for field in table_schema(state.config, state.timeline, write.requested_time):
            if field.name.lower() not in known:
                known.add(field.name.lower())
                columns = columns.append(field)
    return columns
