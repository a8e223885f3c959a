"""What runs by itself after a good commit: compaction and clustering when they are due, clean, then archive.

Each service is isolated. A failure is logged and reported, and the commit stays; only with
``hoodie.engine.services.strict`` it is raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from hudi_engine.errors import HudiError, ServiceError, TimelineError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.declared.service_options import (
    ArchiveOptions,
    CleanOptions,
    CompactionOptions,
    ServiceOptions,
)
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.parallel import RunTasks
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.services.archive.execute import archive
from hudi_engine.table.services.archive.select import clean_lags, select_instants
from hudi_engine.table.services.clean.execute import clean, would_clean
from hudi_engine.table.services.clustering.execute import Workers, run_clustering
from hudi_engine.table.services.clustering.plan import runnable_clusterings
from hudi_engine.table.services.clustering.schedule import clustering_due, schedule_clustering
from hudi_engine.table.services.compaction.execute import run_compaction
from hudi_engine.table.services.compaction.plan import (
    choose_operations,
    compaction_due,
    pending_compactions,
    schedule_compaction,
)
from hudi_engine.table.services.planned import is_running
from hudi_engine.table.services.result import (
    ArchiveResult,
    CleanResult,
    ClusteringResult,
    CompactionResult,
    ServicesReport,
)
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import next_instant

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def run_after_commit(
    storage: Storage,
    options: Options,
    *,
    workers: Workers | None = None,
    publish: Publication | None = None,
    state: TableState | None = None,
) -> ServicesReport:
    """Run the services that the options ask for."""
    if not options[ServiceOptions.ENABLED]:
        return ServicesReport((), None)
    failures: list[str] = []
    workers = workers or Workers()
    known = state

    def now() -> TableState:
        # Read within the service that needs it, whose failure costs no commit.
        nonlocal known
        known = known or TableState.load(storage)
        return known

    compactions = _isolated(
        "compaction", lambda: _compact(now(), options, workers.run_tasks, publish), failures
    )
    if compactions or failures:
        known = None
    clusterings = _isolated("clustering", lambda: _cluster(now(), options, workers, publish), failures)
    if clusterings or failures:
        known = None
    cleaned = _isolated("clean", lambda: _clean(now(), options, publish), failures)
    archived: ArchiveResult | None = None
    if options[ArchiveOptions.AUTOMATIC]:
        if (cleaned is not None and cleaned.instant is not None) or failures:
            known = None
        archived = _isolated(
            "archive", lambda: archive(storage, options, publish=publish, state=now()), failures
        )
    if options[ServiceOptions.STRICT] and failures:
        raise ServiceError(
            f"the commit to {storage.base!r} is complete, but hoodie.engine.services.strict is set and "
            f"{len(failures)} table service(s) failed: {'; '.join(failures)}"
        )
    return ServicesReport(
        tuple(compactions or ()), cleaned, tuple(failures), archived, tuple(clusterings or ())
    )


def due_after_commit(state: TableState, options: Options) -> tuple[str, ...]:
    """Return the services that `run_after_commit` would start on a state and that find something to do; nothing is written."""
    if not options[ServiceOptions.ENABLED]:
        return ()
    found = []
    timeline, now = state.timeline, next_instant(state.timeline)
    if state.config.table_type is TableType.MERGE_ON_READ and _is_wanted(options, CompactionOptions):
        waiting = pending_compactions(timeline, options) if options[CompactionOptions.INLINE] else []
        if waiting or (compaction_due(timeline, options, now) and _finds_logs(state, options)):
            found.append("compaction")
    if _is_wanted(options, ClusteringOptions):
        plans = runnable_clusterings(state) if options[ClusteringOptions.INLINE] else []
        if plans or clustering_due(timeline, options):
            found.append("clustering")
    if options[CleanOptions.AUTOMATIC] and clean_due(timeline, options):
        plan = would_clean(state, options)
        if not isinstance(plan, CleanResult):
            found.append("clean")
    if options[ArchiveOptions.AUTOMATIC] and select_instants(state, options, now).instants:
        found.append("archive")
    return tuple(found)


def _finds_logs(state: TableState, options: Options) -> bool:
    """Return whether a compaction finds logs after the newest commit, which is planned, so that its files are not there."""
    stats = list(state.timeline.commit_metadata(state.timeline.completed_writes[-1]).write_stats())
    if any(stat.is_log_file for _, stat in stats):
        return True
    rewritten = {(partition, stat.file_id) for partition, stat in stats}
    operations, _ = choose_operations(state, options)
    return any((each.partition, each.file_id) not in rewritten for each in operations)


def _is_wanted(options: Options, service: type[CompactionOptions] | type[ClusteringOptions]) -> bool:
    return bool(options[service.INLINE] or options[service.SCHEDULE_INLINE])


def _clean(state: TableState, options: Options, publication: Publication | None) -> CleanResult | None:
    """Clean when it is due; before instants leave the timeline a clean records how far it has looked."""
    if not options[CleanOptions.AUTOMATIC]:
        return None
    mark = options[ArchiveOptions.AUTOMATIC] and clean_lags(state, options, next_instant(state.timeline))
    if not mark and not clean_due(state.timeline, options):
        return None
    return clean(state.storage, options, even_if_empty=mark, publish=publication, state=state)


def clean_due(timeline: Timeline, options: Options) -> bool:
    """Return whether enough was committed since the last clean; a clean that was cut short is always due."""
    needed = options[CleanOptions.TRIGGER_COMMITS]
    if needed <= 1:
        return True
    if any(each.action == "clean" for each in timeline.pending):
        return True
    cleans = [each.requested_time for each in timeline.completed if each.action == "clean"]
    last = max(cleans, default="")
    return sum(each.requested_time > last for each in timeline.completed_writes) >= needed


def _compact(
    state: TableState, options: Options, run_tasks: RunTasks, publication: Publication | None
) -> list[CompactionResult]:
    """Finish plans that no process works on, then plan, and run, a new one when it is due."""
    run, plan_only = options[CompactionOptions.INLINE], options[CompactionOptions.SCHEDULE_INLINE]
    if not (run or plan_only) or state.config.table_type is not TableType.MERGE_ON_READ:
        return []
    storage = state.storage
    run_one = partial(run_compaction, storage, options, run_tasks=run_tasks, publish=publication)
    pending = pending_compactions(state.timeline, options) if run else []
    done, state = _run_pending(state, options, pending, run_one)
    if not compaction_due(state.timeline, options, next_instant(state.timeline)):
        return done
    scheduled = schedule_compaction(storage, options, publish=publication)
    if run and scheduled.instant is not None:
        return [*done, *_unless_taken(storage, options, scheduled.instant, run_one)]
    return [*done, scheduled]


def _cluster(
    state: TableState, options: Options, workers: Workers, publication: Publication | None
) -> list[ClusteringResult]:
    """Finish plans that no process works on, then plan, or plan and run, a new one when it is due."""
    run, plan_only = options[ClusteringOptions.INLINE], options[ClusteringOptions.SCHEDULE_INLINE]
    if not (run or plan_only):
        return []
    storage = state.storage
    run_one = partial(run_clustering, storage, options, workers=workers, publish=publication)
    done, state = _run_pending(state, options, runnable_clusterings(state) if run else [], run_one)
    if not clustering_due(state.timeline, options):
        return done
    if plan_only:
        return [schedule_clustering(storage, options, publish=publication)]
    return [*done, run_one()]


def _run_pending(
    state: TableState, options: Options, pending: Sequence[Instant], run_one: Callable[..., Result]
) -> tuple[list[Result], TableState]:
    """Run the plans that no process works on; return what was done, and the table after that."""
    done: list[Result] = []
    for each in pending:
        if not is_running(state, each, options):
            done += _unless_taken(state.storage, options, each.requested_time, run_one)
    return done, TableState.load(state.storage) if done else state


def _unless_taken(
    storage: Storage, options: Options, instant: str, run_one: Callable[..., Result]
) -> list[Result]:
    """Run a plan; nothing where another writer was faster, who is at it or has done it: a plan has no owner until it runs."""
    try:
        return [run_one(instant=instant)]
    except (ServiceError, TimelineError):
        state = TableState.load(storage)
        left = [each for each in state.timeline.pending if each.requested_time == instant]
        if left and not is_running(state, left[0], options):
            raise
        logger.info("%s was taken by another writer", instant)
        return []


def _isolated(service: str, call: Callable[[], Result], failures: list[str]) -> Result | None:
    try:
        return call()
    except Exception as error:  # whatever it is, the commit before it is kept
        expected = isinstance(error, HudiError)
        logger.error("%s failed; the commit before it is complete: %s", service, error, exc_info=not expected)
        failures.append(f"{service}: {error}")
        return None
