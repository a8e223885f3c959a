"""Planned compactions: which there are, and which is next."""

from __future__ import annotations

import logging

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.enums import CompactionOrder
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table.services.compaction.operation import LOG_BYTES
from hudi_engine.table.services.compaction.plan import CompactionPlan
from hudi_engine.table.services.planned import choose_planned
from hudi_engine.table.services.result import PendingCompaction
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.open_instant import OpenInstant, stored_plan

logger = logging.getLogger(__name__)


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
    """Return the plan of a compaction that has not completed.

    Raises:
        CorruptTableError: when its file is missing, truncated, or names files that are not its own.
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
        wanted: A certain instant, None for the next.

    Raises:
        TimelineError: when the wanted one is not planned.
        ServiceError: when another process is running the wanted one.
    """
    return choose_planned("compaction", state, options, pending_compactions(state.timeline, options), wanted)


def drop_torn_plans(state: TableState) -> TableState:
    """Remove plans that were cut short when their writer died; return the table without them.

    Raises:
        CorruptTableError: Later writes go by one of them, so it was whole once and was damaged since.
    """
    dropped = False
    for instant in state.timeline.pending:
        if instant.action != "compaction" or instant.state is not State.REQUESTED:
            continue
        if stored_plan(state.storage, state.config, instant, CompactionPlan.from_bytes) is None:
            check_droppable(state, instant)
            OpenInstant(state.storage, state.config, instant.requested_time, "compaction").drop()
            dropped = True
    return TableState.load(state.storage) if dropped else state


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
            f"{', '.join(based[:3])}. Put the file back from a copy and run the compaction; or read the table and build it "
            "anew at another path"
        )
