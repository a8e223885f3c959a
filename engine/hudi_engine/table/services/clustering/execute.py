"""Running a planned clustering: claim, rewrite every group, commit once (see `hudi_engine.table.services.planned`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from hudi_engine.errors import ServiceError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.parallel import RunTasks, run_in_threads
from hudi_engine.format.schema.meta_fields import without_meta_columns
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.telemetry.services import measured
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.services.clustering.pending import (
    group_tasks,
    pending_clusterings,
    read_clustering_plan,
    runnable_clusterings,
)
from hudi_engine.table.services.clustering.plan import ClusteringPlan, PlannedSlice
from hudi_engine.table.services.clustering.schedule import (
    in_numbers,
    refuse_bucket_index,
    schedule_clustering_locked,
)
from hudi_engine.table.services.clustering.strategy import check_strategy
from hudi_engine.table.services.clustering.write_group import (
    ClusteringContext,
    GroupTask,
    RunLarge,
    write_group,
)
from hudi_engine.table.services.opening import open_locked
from hudi_engine.table.services.planned import (
    PlanRun,
    as_planned,
    choose_planned,
    done_as,
    publish_service,
    take_over,
)
from hudi_engine.table.services.result import ClusteringResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import rolls_back_plans
from hudi_engine.table.txn.publication import Publication, drop_foreign_metadata_table
from hudi_engine.table.txn.recovery import table_lock
from hudi_engine.table.txn.rollback import rollback_instant

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workers:
    """Who rewrites the groups.

    Args:
        run_tasks: Spreads groups that fit into the memory of a task.
        run_large: Rewrites one that does not; None when no Spark is at hand.
    """

    run_tasks: RunTasks = run_in_threads
    run_large: RunLarge | None = None


@measured(done_as("replacecommit", "replacecommit"))
def run_clustering(
    storage: Storage,
    options: Options,
    *,
    instant: str | None = None,
    workers: Workers | None = None,
    publish: Publication | None = None,
    plans: bool = True,
) -> ClusteringResult:
    """Run a planned clustering; plan one first when there is none, whatever ``inline.max.commits`` says.

    Args:
        options: ``hoodie.clustering.*``, ``hoodie.layout.optimize.*``, base file layout.
        instant: Run this plan; None for the oldest whose strategy is known.
        workers: Who rewrites the groups; threads of this process by default.
        publish: Published file lists, renewed after the commit; None for those there are, rebuilt without Spark.
        plans: Whether a new plan is made when there is none.

    Returns:
        What was done, or the reason why there was nothing to do.

    Raises:
        ConfigError: when columns or strategy make no sense, or the table has a bucket index.
        UnsupportedTableError: when the plan asks for a strategy that this engine does not know.
        TimelineError: when ``instant`` is not planned.
        ServiceError: when another process is running it, it failed, or its file groups have changed since; the plan stays.
        WriteConflictError: when another write stood against it; the plan stays.
    """
    publication = publish if publish is not None else publication_of(storage)
    with ExitStack() as stack:
        with storage_errors(storage, "begin a clustering"):
            claim = _claim(storage, options, (instant, plans), publication, stack)
        if isinstance(claim, ClusteringResult):
            return claim
        stats = claim.run.carry_out(
            options, lambda: claim.work(options, workers or Workers()), partial(_metadata, claim.plan)
        )
    publish_service(publication, claim.run.state.config, "clustering", claim.run.instant)
    return replace(
        in_numbers(claim.plan, claim.run.instant, "completed"),
        files_written=len(stats),
        rows=sum(stat.num_writes or 0 for stat in stats),
        bytes_written=sum(stat.file_size_in_bytes or 0 for stat in stats),
    )


def _claim(
    storage: Storage,
    options: Options,
    wanted: tuple[str | None, bool],
    publication: Publication,
    stack: ExitStack,
) -> _Claim | ClusteringResult:
    """Take a plan under the lock, the wanted or next one, else a new one; what stops it is told before anything is begun."""
    with table_lock(storage, options):
        state = open_locked(storage, options, publication)
        state.check_rows_writable()
        merge_rule(state.config)
        refuse_bucket_index(state, options)
        planned = pending_clusterings(state.timeline) if wanted[0] else runnable_clusterings(state)
        chosen = choose_planned("clustering", state, options, planned, wanted[0])
        if chosen is None:
            if not wanted[1]:
                return ClusteringResult(reason=_nothing_to_run(state))
            scheduled = schedule_clustering_locked(state, options)
            if scheduled.instant is None:
                return scheduled
            state = TableState.load(storage)
            chosen = state.timeline.find(scheduled.instant, state.config.table_version.clustering_action)
        state = replace(state, config=drop_foreign_metadata_table(storage, state.config))
        plan = read_clustering_plan(state, chosen)
        check_strategy(plan.strategy_class)
        tasks, changed = group_tasks(state, plan)
        if changed is not None:
            return _outdated(state, options, chosen, changed, publication)
        layout = _layout(state, options, plan, chosen.requested_time)
        opened = take_over("clustering", state, options, chosen, plan.partitions)
        stack.enter_context(opened).start()
    return _Claim(PlanRun("clustering", state, opened, plan.partitions), plan, tasks, layout)


def _nothing_to_run(state: TableState) -> str:
    left = [each.requested_time for each in pending_clusterings(state.timeline)]
    if not left:
        return "no clustering is planned"
    return f"the clusterings that are planned ({', '.join(left)}) are run by others"


def _outdated(
    state: TableState, options: Options, chosen: Instant, changed: PlannedSlice, publication: Publication
) -> ClusteringResult:
    """Take back a plan whose file groups have changed, or refuse to run it: what came since would be lost."""
    time = chosen.requested_time
    said = (
        f"clustering {time} planned file group {changed.file_id!r} of partition {changed.partition!r} as it was then, and "
        "it has changed since"
    )
    if not rolls_back_plans(options):
        raise ServiceError(
            f"{said}; roll {time} back and plan anew, or set hoodie.clustering.rollback.pending.replacecommit.on.conflict"
        )
    rollback_instant(state.storage, state.config, state.timeline, chosen, publication, owned_by=options)
    logger.warning("%s; it was rolled back", said)
    return ClusteringResult(reason=f"{said}; it was rolled back")


def _layout(state: TableState, options: Options, plan: ClusteringPlan, instant: str) -> RowLayout:
    """Return the order of a plan's rows, by columns that are read as they were planned."""
    layout = RowLayout.from_options(options, plan.params)
    if not layout.columns or state.data_schema() is None:
        return layout
    read = as_planned(state, read_context(state.storage, state.config, state.timeline), instant)
    return layout.fitted(without_meta_columns(read.schema))


@dataclass(frozen=True)
class _Claim:
    """A plan that this process carries out."""

    run: PlanRun
    plan: ClusteringPlan
    tasks: tuple[GroupTask, ...]
    layout: RowLayout

    def work(self, options: Options, workers: Workers) -> list[WriteStat]:
        """Rewrite all groups: small ones in the memory of a task each, large ones by a shuffle each."""
        limit = options[ClusteringOptions.TASK_BYTES]
        small = [task for task in self.tasks if task.size_bytes <= limit]
        large = [task for task in self.tasks if task.size_bytes > limit]
        if large and workers.run_large is None:
            raise ServiceError(
                f"clustering {self.run.instant} has a group of {max(task.size_bytes for task in large)} bytes, more than "
                f"{ClusteringOptions.TASK_BYTES}={limit}, which needs Spark to be sorted; run it "
                "from a Spark session, or raise the option"
            )
        context = self._context(options)
        stats = [stat for found in workers.run_tasks(partial(write_group, context), small) for stat in found]
        for task in large:
            assert workers.run_large is not None
            stats += workers.run_large(context, task)
        return stats

    def _context(self, options: Options) -> ClusteringContext:
        state = self.run.state
        read, data_schema = self.run.reading(options)
        write = state.write_context(
            options,
            data_schema,
            read,
            instant=self.run.instant,
            action=self.run.opened.action,
            operation=WriteOperation.CLUSTER.value,
        )
        return ClusteringContext(write, self.layout, self.plan.preserves_metadata)


def _metadata(plan: ClusteringPlan, stats: Sequence[WriteStat]) -> CommitMetadata:
    partitions: dict[str, list[WriteStat]] = {}
    for stat in stats:
        partitions.setdefault(stat.partition_path or "", []).append(stat)
    replaced: dict[str, list[str]] = {}
    for each in plan.slices:
        replaced.setdefault(each.partition, []).append(each.file_id)
    return CommitMetadata(
        partitions, {}, WriteOperation.CLUSTER.value, compacted=False, partition_to_replace_file_ids=replaced
    )
