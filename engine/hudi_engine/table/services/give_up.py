"""Taking back the run of a planned compaction or clustering whose process has ended, and its plan too when that is asked for."""

from __future__ import annotations

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table.services.clustering.pending import pending_clusterings, read_clustering_plan
from hudi_engine.table.services.compaction.pending import logs_named_after, pending_compactions, read_plan
from hudi_engine.table.services.opening import open_locked
from hudi_engine.table.services.planned import check_not_running, take_back
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import pending_writes, table_lock


def give_up_run(
    storage: Storage, options: Options, publication: Publication, instant: str, *, drop_plan: bool = False
) -> None:
    """Take back what a run of a plan did that will not continue; nothing of it was ever visible.

    Args:
        drop_plan: Whether the plan goes too; else it can run again.

    Raises:
        TimelineError: No run of the plan is in flight, or logs that later writes made for it would be lost with the plan.
        ServiceError: Another process is running it, or it is being rolled back.
    """
    with storage_errors(storage, "take a service back"), table_lock(storage, options):
        state = open_locked(storage, options, publication)
        running = [
            each
            for each in (*pending_compactions(state.timeline, options), *pending_clusterings(state.timeline))
            if each.state is State.INFLIGHT
        ]
        chosen = next((each for each in running if each.requested_time == instant), None)
        if chosen is None:
            known = ", ".join(each.requested_time for each in running) or "none"
            raise TimelineError(f"no compaction or clustering {instant} is in flight; in flight are: {known}")
        check_not_running(chosen.action, state, chosen, options)
        if drop_plan:
            _check_droppable(state, chosen)
        is_compaction = chosen.action == "compaction"
        plan = read_plan(state, chosen) if is_compaction else read_clustering_plan(state, chosen)
        opened = OpenInstant(storage, state.config, chosen.requested_time, chosen.action)
        take_back(state, opened, plan.partitions)
        if drop_plan:
            opened.drop()


def _check_droppable(state: TableState, chosen: Instant) -> None:
    """Refuse to drop the plan of a compaction that later writes go by: their logs carry its instant."""
    if chosen.action != "compaction":
        return
    based = logs_named_after(state, chosen)
    writing = [each.requested_time for each in pending_writes(state.timeline)]
    if based or writing:
        raise TimelineError(
            f"the plan of compaction {chosen.requested_time} cannot go, as logs of later writes are named after it: "
            f"{', '.join((based or writing)[:3])}; run the compaction instead"
        )
