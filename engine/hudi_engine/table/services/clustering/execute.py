"""Running a planned clustering: claim, rewrite every group, commit once (see `hudi_engine.table.services.planned`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow.parquet as pq

from hudi_engine.errors import ServiceError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.parallel import RunTasks, each_once, on_threads, run_in_threads
from hudi_engine.format.schema.meta_fields import without_meta_columns
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet
from hudi_engine.format.telemetry.services import measured
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, Content, WriteStat
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.services.clustering.plan import (
    ClusteringPlan,
    PlannedSlice,
    check_strategy,
    group_tasks,
    pending_clusterings,
    read_clustering_plan,
    runnable_clusterings,
)
from hudi_engine.table.services.clustering.schedule import (
    in_numbers,
    refuse_bucket_index,
    schedule_clustering_locked,
)
from hudi_engine.table.services.clustering.write_group import (
    ClusteringContext,
    GroupTask,
    RunLarge,
    write_group,
)
from hudi_engine.table.services.planned import (
    PlanRun,
    as_planned,
    by_partition,
    choose_planned,
    done_as,
    run_planned,
    take_over,
)
from hudi_engine.table.services.result import ClusteringResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import rolls_back_plans
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.receipts import keeps_receipts
from hudi_engine.table.txn.rollback import rollback_instant

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workers:
    """Who rewrites the groups."""

    run_tasks: RunTasks = run_in_threads
    run_large: RunLarge | None = None  # rewrites one that does not; None when no Spark is at hand


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
    """Run a plan, the oldest with a known strategy for None; without one make it first if ``plans``, whatever triggers say."""
    publication = publish or publication_of(storage)

    def claim(state: TableState) -> ClusteringRun | ClusteringResult:
        chosen = _choose(state, options, instant, plans=plans)
        if isinstance(chosen, ClusteringResult):
            return chosen
        return _claim(*chosen, options, workers or Workers(), publication)

    return run_planned("clustering", storage, options, publication, claim)


def _choose(
    state: TableState, options: Options, wanted: str | None, *, plans: bool
) -> tuple[TableState, Instant] | ClusteringResult:
    """Return the plan to run, the wanted or next one, else a new one."""
    state.check_rows_writable()
    merge_rule(state.config)
    refuse_bucket_index(state, options)
    planned = pending_clusterings(state.timeline) if wanted else runnable_clusterings(state)
    chosen = choose_planned("clustering", state, options, planned, wanted)
    if chosen is not None:
        return state, chosen
    if not plans:
        return ClusteringResult(reason=_nothing_to_run(state))
    scheduled = schedule_clustering_locked(state, options)
    if scheduled.instant is None:
        return scheduled
    state = TableState.load(state.storage)
    return state, state.timeline.find(scheduled.instant, state.config.table_version.clustering_action)


def _claim(
    state: TableState, chosen: Instant, options: Options, workers: Workers, publication: Publication
) -> ClusteringRun | ClusteringResult:
    """Take a plan; what stops it is raised before anything is begun."""
    plan = read_clustering_plan(state, chosen)
    check_strategy(plan.strategy_class)
    tasks, changed = group_tasks(state, plan)
    if changed is not None:
        return _outdated(state, options, chosen, changed, publication)
    layout = _layout(state, options, plan, chosen.requested_time)
    state, opened = take_over("clustering", state, options, chosen, plan.partitions)
    return ClusteringRun("clustering", state, options, opened, plan.partitions, plan, tasks, layout, workers)


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
    found = (
        f"clustering {time} planned file group {changed.file_id!r} of partition {changed.partition!r} as it was then, and "
        "it has changed since"
    )
    if not rolls_back_plans(options):
        raise ServiceError(
            f"{found}; roll {time} back and plan again, or set hoodie.clustering.rollback.pending.replacecommit.on.conflict"
        )
    rollback_instant(state.storage, state.config, state.timeline, chosen, publication, owned_by=options)
    logger.warning("%s; it was rolled back", found)
    return ClusteringResult(reason=f"{found}; it was rolled back")


def _layout(state: TableState, options: Options, plan: ClusteringPlan, instant: str) -> RowLayout:
    """Return the order of a plan's rows, by columns that are read as they were planned."""
    layout = RowLayout.from_options(options, plan.params)
    if not layout.columns or state.data_schema() is None:
        return layout
    read = as_planned(state, read_context(state.storage, state.config, state.timeline), instant)
    return layout.fitted(without_meta_columns(read.schema))


def _check_complete(storage: Storage, task: GroupTask, stats: Sequence[WriteStat]) -> None:
    """Refuse a group that has other rows than the footers of its files state; raises ServiceError.

    How many rows logs leave is not known without reading them.
    """
    bases = [each.base_file for each in task.slices if each.base_file is not None and not each.log_files]
    if len(bases) < len(task.slices):
        return
    stored = sum(on_threads(lambda base: _rows_in(storage, base.path), bases))
    written = sum(stat.num_writes or 0 for stat in stats)
    if written != stored:
        raise ServiceError(
            f"the base files of partition {task.partition!r} hold {stored} rows, but {written} of them were written; nothing was "
            "committed. Check the session for settings that change what Spark reads of files, and run the clustering again"
        )


def _rows_in(storage: Storage, path: str) -> int:
    """Return the rows of a base file by its footer."""
    with storage.open_input(path) as source, damaged_parquet(f"base file {path!r}"):
        return int(pq.read_metadata(source).num_rows)


@dataclass(frozen=True)
class ClusteringRun(PlanRun[ClusteringResult]):
    """A plan that this process carries out."""

    plan: ClusteringPlan
    tasks: tuple[GroupTask, ...]
    layout: RowLayout
    workers: Workers

    def work(self) -> list[WriteStat]:
        """Rewrite all groups: small ones in the memory of a task each, large ones by a shuffle each."""
        limit = self.options[ClusteringOptions.TASK_BYTES]
        small = [task for task in self.tasks if task.size <= limit]
        large = [task for task in self.tasks if task.size > limit]
        run_large = self.workers.run_large
        if large and run_large is None:
            raise ServiceError(
                f"clustering {self.instant} has a group of {max(task.size for task in large)} bytes, more than "
                f"{ClusteringOptions.TASK_BYTES}={limit}, which needs Spark to be sorted; run it "
                "from a Spark session, or raise the option"
            )
        context = self._context()
        written = self.workers.run_tasks(partial(write_group, context), small)
        written = each_once(written, small, "groups of file slices")
        if run_large is not None:
            written += [run_large(context, task) for task in large]
        made = [stat for found in written for stat in found]
        each_once([*{stat.file_id for stat in made}], made, "new file groups")
        for task, stats in zip((*small, *large), written, strict=True):
            _check_complete(self.state.storage, task, stats)
        return made

    def metadata(self, stats: Sequence[WriteStat]) -> CommitMetadata:
        """Return the commit, which replaces the file groups of the plan."""
        replaced: dict[str, list[str]] = {}
        for each in self.plan.slices:
            replaced.setdefault(each.partition, []).append(each.file_id)
        # rows of base files move; what logs do is not counted
        is_same = not any(each.log_files for task in self.tasks for each in task.slices)
        return CommitMetadata(
            by_partition(stats),
            {},
            WriteOperation.CLUSTER.value,
            partition_to_replace_file_ids=replaced,
            content=Content(0, 0) if is_same and keeps_receipts(self.state.timeline, self.options) else None,
        )

    def result(self, stats: Sequence[WriteStat]) -> ClusteringResult:
        """Return what was rewritten."""
        return replace(
            in_numbers(self.plan, self.instant, "completed"),
            files_written=len(stats),
            rows=sum(stat.num_writes or 0 for stat in stats),
            bytes_written=sum(stat.file_size_in_bytes or 0 for stat in stats),
        )

    def _context(self) -> ClusteringContext:
        read, data_schema = self.reading()
        write = self.state.write_context(
            self.options,
            data_schema,
            read,
            instant=self.instant,
            action=self.opened.action,
            operation=WriteOperation.CLUSTER.value,
        )
        return ClusteringContext(write, self.layout, self.plan.preserves_metadata)
