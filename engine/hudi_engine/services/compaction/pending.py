"""Planned compactions: which there are, which is next, and giving up a run so that its plan can run again."""

from __future__ import annotations

import logging

from hudi_engine.config.enums import CompactionOrder, FailedWritesPolicy
from hudi_engine.config.options import Options
from hudi_engine.errors import CorruptTableError, ServiceError, TimelineError
from hudi_engine.filegroup.base_file import parse_base_file
from hudi_engine.filegroup.listing import list_partition_files
from hudi_engine.filegroup.markers import delete_markers, list_markers
from hudi_engine.services.compaction.operation import LOG_BYTES
from hudi_engine.services.compaction.plan import CompactionPlan
from hudi_engine.services.result import PendingCompaction
from hudi_engine.storage.base import Storage
from hudi_engine.table_state import TableState
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.instant import Instant, State
from hudi_engine.txn.liveness import Liveness
from hudi_engine.txn.open_instant import OpenInstant, stored_plan
from hudi_engine.txn.owner import OwnerState, heartbeat_path

logger = logging.getLogger(__name__)


def show_compactions(storage: Storage) -> list[PendingCompaction]:
    """Return the compactions of the active timeline, planned, running and completed, oldest first.

    Args:
        storage: The table's storage.
    """
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
    return found[::-1] if options.text("hoodie.compaction.order") == CompactionOrder.LIFO else found


def read_plan(state: TableState, instant: Instant) -> CompactionPlan:
    """Return the plan of a compaction that has not completed.

    Raises:
        CorruptTableError: when its file is missing, truncated, or names files that are not its own.
        PathEscapeError: when a path in it would leave the table folder.
    """
    plan = stored_plan(state.storage, state.config, instant, CompactionPlan.from_bytes)
    if plan is None:
        raise CorruptTableError(
            f"the plan of compaction {instant.requested_time} of {state.storage.base!r} was cut short when its writer died. "
            "Nothing was done under it; the next compaction drops it"
        )
    return plan


def next_to_run(state: TableState, options: Options, wanted: str | None) -> Instant | None:
    """Return the planned compaction to run now, None when all are taken or there is none.

    Args:
        state: The table, read under its lock.
        options: Order, heartbeat settings.
        wanted: A certain instant, None for the next.

    Raises:
        TimelineError: when the wanted one is not planned.
        ServiceError: when another process is running the wanted one.
    """
    pending = pending_compactions(state.timeline, options)
    if wanted is not None:
        chosen = [instant for instant in pending if instant.requested_time == wanted]
        if not chosen:
            planned = ", ".join(instant.requested_time for instant in pending) or "none"
            raise TimelineError(f"compaction {wanted!r} is not planned; planned are: {planned}")
        if is_running(state, chosen[0], options):
            raise ServiceError(f"compaction {wanted} is being run by another process; wait until it is done")
        return chosen[0]
    return next((each for each in pending if not is_running(state, each, options)), None)


def drop_torn_plans(state: TableState) -> TableState:
    """Remove plans that were cut short when their writer died; return the table without them.

    Args:
        state: The table, read under its lock.
    """
    dropped = False
    for instant in state.timeline.pending:
        if instant.action != "compaction" or instant.state is not State.REQUESTED:
            continue
        if stored_plan(state.storage, state.config, instant, CompactionPlan.from_bytes) is None:
            OpenInstant(state.storage, state.config, instant.requested_time, "compaction").drop()
            dropped = True
    return TableState.load(state.storage) if dropped else state


def is_running(state: TableState, instant: Instant, options: Options) -> bool:
    """Return whether a live process works on a planned compaction.

    A run without a heartbeat is another program's. It is respected while it is young; then
    ``hoodie.cleaner.policy.failed.writes`` says whether it is taken for dead (``EAGER``), as Apache Hudi does when
    it compacts inline.
    """
    if instant.state is State.REQUESTED:
        return False
    owner = Liveness(state.storage, state.config, options).of(instant)
    if owner is OwnerState.UNKNOWN:
        return options.text("hoodie.cleaner.policy.failed.writes") != FailedWritesPolicy.EAGER
    return owner is not OwnerState.DEAD


def take_back(state: TableState, opened: OpenInstant, partitions: set[str]) -> None:
    """Take back what a run did, so that its plan stands as if it had never run. The caller holds the lock.

    The inflight file goes first: tasks that outlive their process look for it before they publish a file.
    What a kill leaves behind in between is swept when the plan runs again.

    Args:
        state: The table.
        opened: The compaction; nothing is done when it has completed.
        partitions: Partitions of its plan.
    """
    storage = state.storage
    if storage.exists(opened.path(State.COMPLETED)):
        return
    opened.back_to_plan()
    removed = sweep(storage, opened.time, partitions, frozenset())
    delete_markers(storage, opened.time)
    storage.delete(heartbeat_path(opened.time))
    logger.info("compaction %s was taken back, %d files removed; its plan stands", opened.time, removed)


def sweep(storage: Storage, instant: str, partitions: set[str], wanted: frozenset[str]) -> int:
    """Delete base files that runs of a compaction wrote and its commit does not name; return how many.

    Args:
        storage: The table's storage.
        instant: The compaction's instant.
        partitions: Partitions of its plan.
        wanted: Paths that the commit names.
    """
    found = {path for path, _ in list_markers(storage, instant)}
    for partition in partitions | {path.rpartition("/")[0] for path in found}:
        found.update(status.path for status in list_partition_files(storage, partition))
    removed = 0
    for path in sorted(found - wanted):
        base = parse_base_file(path, path.rpartition("/")[0])
        if base is not None and base.instant == instant and storage.delete(path):
            removed += 1
    return removed
