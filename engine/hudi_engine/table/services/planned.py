"""Runs of a plan that is on the timeline already, a compaction or a clustering: who runs it, its commit, its undoing.

Readers and writers continue meanwhile: files are only added, and nobody sees them before the one file that completes the
instant. Whatever fails, or dies, leaves the plan as it was, to be run again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

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
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.telemetry.services import Done
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.table.services.result import PlannedResult
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import KeyScope, check_conflicts
from hudi_engine.table.txn.metadata_conflicts import column_ids, with_checkpoint
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.owner import Liveness, OwnerState, heartbeat_path
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import table_lock
from hudi_engine.table.txn.removal import announced_files, settle_markers
from hudi_engine.table.txn.rollback import check_not_rolled_back, pending_rollback_of

logger = logging.getLogger(__name__)
_Planned = TypeVar("_Planned", bound=PlannedResult)


def done_as(action: str, commit: str) -> Callable[[_Planned], Done | None]:
    """Return what a run of a plan tells to the metrics: of one that completed, its commit.

    Args:
        action: Hudi's name of the service among the metrics.
        commit: Action of its commit on the timeline.
    """

    def done(result: _Planned) -> Done | None:
        if result.instant is None or result.state != "completed":
            return None
        return Done(action, commit=(commit, result.instant))

    return done


@dataclass(frozen=True)
class PlanRun:
    """A plan that this process carries out.

    Args:
        opened: The instant, in flight and this process's.
    """

    service: str
    state: TableState
    opened: OpenInstant
    partitions: frozenset[str]

    @property
    def instant(self) -> str:
        """Its instant."""
        return self.opened.time

    def reading(self, options: Options) -> tuple[ReadContext, pa.Schema]:
        """Return how the plan's slices are read, in the memory of a service, and the columns of that read without meta columns."""
        state = self.state
        read = replace(
            as_planned(state, read_context(state.storage, state.config, state.timeline), self.instant),
            memory_limit_bytes=options[MergeOptions.COMPACTION_MEMORY],
            spill_dir=options[MergeOptions.SPILL_FOLDER],
        )
        meta = meta_fields(operation=state.config.keeps_operations)
        return read, pa.schema(
            [field for field in read.schema if field.name not in meta], read.schema.metadata
        )

    def carry_out(
        self,
        options: Options,
        work: Callable[[], list[WriteStat]],
        metadata: Callable[[list[WriteStat]], CommitMetadata],
    ) -> list[WriteStat]:
        """Do the work and commit it, or take it back; return what it wrote.

        Raises:
            WriteConflictError: when another write stands against it; the plan stays.
            ServiceError: when the work failed with anything but a HudiError or the end of the process, which pass.
        """
        try:
            stats = work()
            self.commit(options, metadata(stats))
        except BaseException as error:
            self.take_back(options, error)
            if isinstance(error, HudiError) or not isinstance(error, Exception):
                raise
            raise ServiceError(
                f"{self.service} {self.instant} of {self.state.storage.base!r} failed and was taken back; its plan "
                f"stands and can be run again: {error}"
            ) from error
        return stats

    def commit(self, options: Options, metadata: CommitMetadata) -> None:
        """Complete the instant unless another write stands against it.

        Raises:
            WriteConflictError: when one does, or the run was taken over or rolled back, or is about to be.
        """
        storage, config = self.state.storage, self.state.config
        wanted = frozenset(str(stat.path) for _, stat in metadata.write_stats())
        with table_lock(storage, options) as lock:
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
            sweep(storage, self.instant, self.partitions, wanted)
            body = metadata.to_bytes(config.table_version)
            self.opened.complete_fenced(body, lock, current, partial(self._check, metadata))
        self._tidy(wanted)

    def take_back(self, options: Options, cause: BaseException) -> None:
        """Leave the plan as it was, unless its commit is there; what cannot be undone now is undone by the next run."""
        ownership = self.opened.ownership
        try:
            if self.opened.is_ours():
                logger.warning("%s %s is completed, not taken back: %s", self.service, self.instant, cause)
                self.opened.give_up()
                return
            logger.warning("%s %s failed, its plan stands: %s", self.service, self.instant, cause)
            with table_lock(self.state.storage, options):
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


def choose_planned(
    service: str, state: TableState, options: Options, pending: Sequence[Instant], wanted: str | None
) -> Instant | None:
    """Return the plan to run now, None when all are taken or there is none.

    Args:
        wanted: A certain instant, None for the next.

    Raises:
        TimelineError: when the wanted one is not planned.
        ServiceError: when another process is running the wanted one, or it is being rolled back.
    """
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
    ``hoodie.cleaner.policy.failed.writes`` says whether it is taken for dead (``EAGER``), as Apache Hudi does when
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
) -> OpenInstant:
    """Make a plan this process's, after what a dead run did under it was taken back. The caller holds the lock."""
    if chosen.state is State.INFLIGHT:
        logger.warning(
            "%s %s was left by a process that is gone; it runs again", service, chosen.requested_time
        )
        left = OpenInstant(state.storage, state.config, chosen.requested_time, chosen.action)
        take_back(state, left, partitions)
    return OpenInstant.claim(state.storage, state.config, options, chosen)


def take_back(state: TableState, opened: OpenInstant, partitions: Collection[str]) -> None:
    """Take back what a run did, so that its plan is as if it had never run. The caller holds the lock.

    The inflight file goes first: tasks that outlive their process look for it before they publish a file.
    What a kill leaves behind in between is swept when the plan runs again.

    Args:
        opened: The instant; nothing is done when it has completed.
    """
    storage = state.storage
    if opened.is_completed():
        return
    opened.back_to_plan()
    removed = sweep(storage, opened.time, partitions, frozenset())
    delete_markers(storage, opened.time)
    storage.remove(heartbeat_path(opened.time))
    logger.info(
        "%s %s was taken back, %d files removed; its plan stands", opened.action, opened.time, removed
    )


def sweep(
    storage: Storage,
    instant: str,
    partitions: Collection[str],
    wanted: frozenset[str],
    announced: Collection[str] | None = None,
) -> int:
    """Delete base files that runs of a plan wrote and its commit does not name; return how many.

    Args:
        announced: Paths of its markers when the caller has just listed them.
    """
    found = set(announced_files(storage, instant) if announced is None else announced)
    for partition in {*partitions, *(path.rpartition("/")[0] for path in found)}:
        found.update(status.path for status in list_partition_files(storage, partition))
    removed = 0
    for path in sorted(found - wanted):
        base = parse_base_file(path, path.rpartition("/")[0])
        if base is not None and base.instant == instant and storage.delete(path):
            removed += 1
    return removed


def publish_service(publication: Publication, config: TableConfig, service: str, instant: str) -> None:
    """Publish what a service has committed; a failure is a warning, since the commit stays."""
    try:
        publication.publish(config)
    except Exception as error:  # the commit stays; the next write or session start publishes
        logger.warning("%s %s is committed but could not be published: %s", service, instant, error)


def as_planned(state: TableState, read: ReadContext, instant: str) -> ReadContext:
    """Return how the slices of a plan are read: no value is left out, or widened, that a state since the plan may be asked for."""
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
