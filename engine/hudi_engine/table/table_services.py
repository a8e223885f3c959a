"""The services of a table that move no rows through Spark: going back, saving, compacting, cleaning, publishing.

They work on a storage alone, so that a command line without a JVM and a table with a Spark session share them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hudi_engine.errors import ConfigError, HudiError, TimelineError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.service_options import ArchiveOptions, ServiceOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.parallel import at_most
from hudi_engine.format.storage.base import Storage, storage_errors
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.telemetry.phases import phase
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table import services
from hudi_engine.table.clone import CloneResult, clone_table
from hudi_engine.table.inspect.as_of import check_comment, commit_named
from hudi_engine.table.repair import Repair, repair
from hudi_engine.table.services.clean.execute import retaining, would_clean
from hudi_engine.table.services.clustering.plan import pending_clusterings, read_clustering_plan
from hudi_engine.table.services.clustering.schedule import check_partitions, clustering_options
from hudi_engine.table.services.compaction.plan import logs_named_after, pending_compactions, read_plan
from hudi_engine.table.services.indexing import create_index, drop_index
from hudi_engine.table.services.planned import check_not_running, open_locked, take_back
from hudi_engine.table.snapshot.derive import NONE_MADE, AfterWrite, MadeSidecars, make_in_threads
from hudi_engine.table.snapshot.derive import RunTasks as RunSidecars
from hudi_engine.table.snapshot.manifest import Published, Publisher
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.recovery import (
    pending_writes,
    rollback_write,
    table_lock,
    to_roll_back,
)
from hudi_engine.table.txn.removal import RollbackPlan
from hudi_engine.table.txn.restore import plan_restore, restore
from hudi_engine.table.txn.rollback import RestoreResult, RollbackResult, plan_rollback
from hudi_engine.table.txn.savepoint import (
    Savepoint,
    create_savepoint,
    list_savepoints,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_engine.table.clone import CloneArguments

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableServices:
    """Services of one table.

    Args:
        config: The table's settings when the caller has read them.
        on_publish: Called with what was published, and with None before it is tried.
        run_large: Rewrites a group of a clustering that is too large for one task; None when no Spark is at hand.
        find_partitions: Finds partition paths by a condition on their columns; None when no Spark is at hand.
    """

    storage: Storage
    options: Options
    run_tasks: services.RunTasks = services.run_in_threads
    run_sidecars: RunSidecars = make_in_threads
    config: TableConfig | None = None
    on_publish: Callable[[Published | None], None] = lambda _: None
    run_large: services.RunLarge | None = None
    find_partitions: Callable[[str], list[str]] | None = None

    @property
    def workers(self) -> services.Workers:
        """Who does the work of a service, with as many tasks as the options allow."""
        tasks = self.options[ServiceOptions.PARALLELISM]
        return services.Workers(at_most(self.run_tasks, tasks), self.run_large)

    def rollback(self, instant: str) -> RollbackResult:
        """Undo the newest completed write, or a pending instant."""
        renewed: list[Published] = []
        result = rollback_write(self.storage, self.options, self.publication(renewed), instant)
        self._publish_unless(renewed)
        return result

    def would_be_rolled_back(self, instant: str) -> RollbackPlan:
        """Return what a rollback of an instant would remove; nothing is written."""
        state = TableState.load(self.storage)
        state.config.check_writable()
        chosen = to_roll_back(self.storage, state.timeline, instant)
        return plan_rollback(self.storage, state.config, state.timeline, chosen)

    def savepoint(self, instant: str | None = None, *, user: str = "", comments: str = "") -> Savepoint:
        """Keep a commit, the newest for None."""
        check_comment(comments)
        saved = create_savepoint(
            self.storage, self.options, self.publication(), instant, user=user, comments=comments
        )
        if comments not in ("", saved.comments):
            logger.warning(
                "%s is saved already and keeps its comment %r; delete that savepoint first to give it another",
                saved.instant,
                saved.comments,
            )
        return saved

    def savepoints(self) -> list[Savepoint]:
        """Return the savepoints, oldest first."""
        return list(list_savepoints(self.storage))

    def delete_savepoint(self, instant: str) -> str:
        """Release a savepoint, named by its instant or comment, and return its instant."""
        saved = commit_named(self.storage, instant)
        services.drop_savepoint(self.storage, self.options, saved)
        return saved

    def would_be_undone(self, instant: str) -> list[tuple[str, str]]:
        """Return the instants, with their actions, that a restore to a commit would take back; nothing is written."""
        state = TableState.load(self.storage)
        state.config.check_writable()
        target = commit_named(self.storage, instant)
        return list(plan_restore(self.storage, state.config, state.timeline, target).instants)

    def restore(self, instant: str) -> RestoreResult:
        """Restore the table to a commit, named by instant or savepoint; later writes are removed with their files."""
        target = commit_named(self.storage, instant)
        # What is in the archive already is none of the writes that a restore can take back.
        services.finish_archive(self.storage, self.options, self.publication())
        renewed: list[Published] = []
        result = restore(self.storage, self.options, self.publication(renewed), target)
        self._publish_unless(renewed)
        return result

    def schedule_compaction(self) -> services.CompactionResult:
        """Plan a compaction of the slices that have logs; raises ConfigError for a copy-on-write table."""
        return services.schedule_compaction(self.storage, self.options, publish=self.publication())

    def compact(self, instant: str | None = None) -> services.CompactionResult:
        """Run a pending compaction, the next one for None; without one, schedule it first."""
        return services.run_compaction(
            self.storage,
            self.options,
            instant=instant,
            run_tasks=self.workers.run_tasks,
            publish=self.publication(),
        )

    def compactions(self) -> list[services.PendingCompaction]:
        """Return the compactions on the active timeline, pending and done, oldest first."""
        return list(services.show_compactions(self.storage))

    def schedule_clustering(self, *, dry_run: bool = False) -> services.ClusteringResult:
        """Plan a clustering, or say what a plan would take; raises ConfigError for options that make no sense."""
        return services.schedule_clustering(
            self.storage, self.options, publish=self.publication(), dry_run=dry_run
        )

    def cluster(self, instant: str | None = None, *, plans: bool = True) -> services.ClusteringResult:
        """Run a pending clustering, the oldest for None; without one, plan it first if ``plans``."""
        return services.run_clustering(
            self.storage,
            self.options,
            instant=instant,
            workers=self.workers,
            publish=self.publication(),
            plans=plans,
        )

    def for_clustering(
        self,
        columns: str | Sequence[str] | None = None,
        strategy: str | None = None,
        partitions: Sequence[str] | None = None,
        where: str | None = None,
    ) -> TableServices:
        """Return these services with the order and the partitions of a clustering among their options."""
        named = partitions is not None
        if where is not None:
            if named:
                raise ConfigError("a clustering has partitions and where; give one of them")
            if self.find_partitions is None:
                raise ConfigError(
                    "a clustering has a condition on partition columns, which needs Spark; name the partitions instead"
                )
            partitions = self.find_partitions(where)
        options = clustering_options(self.options, columns=columns, strategy=strategy, partitions=partitions)
        if named:
            check_partitions(TableState.load(self.storage), options)
        return replace(self, options=options)

    def give_up_run(self, instant: str, *, drop_plan: bool = False) -> None:
        """Roll back a compaction or clustering in flight whose process has died, and its plan too if ``drop_plan``."""
        storage, options = self.storage, self.options
        with storage_errors(storage, "take a service back"), table_lock(storage, options):
            state = open_locked(storage, options, self.publication())
            planned = (*pending_compactions(state.timeline, options), *pending_clusterings(state.timeline))
            running = {each.requested_time: each for each in planned if each.state is State.INFLIGHT}
            if instant not in running:
                known = ", ".join(running) or "none"
                raise TimelineError(
                    f"no compaction or clustering {instant} is in flight; in flight are: {known}"
                )
            chosen = running[instant]
            is_compaction = chosen.action == "compaction"
            check_not_running(chosen.action, state, chosen, options)
            if drop_plan and is_compaction:
                _check_unused(state, chosen)
            plan = read_plan(state, chosen) if is_compaction else read_clustering_plan(state, chosen)
            opened = OpenInstant(storage, state.config, instant, chosen.action)
            take_back(state, opened, plan.partitions)
            if drop_plan:
                opened.drop()

    def clusterings(self) -> list[services.PendingClustering]:
        """Return the clusterings on the active timeline, pending and done, oldest first."""
        return list(services.show_clusterings(self.storage))

    def clean(self, retain_commits: int | None = None) -> services.CleanResult:
        """Delete files that no retained commit, savepoint, pending plan or published manifest needs."""
        return services.clean(
            self.storage, self.options, retain_commits=retain_commits, publish=self.publication()
        )

    def would_be_cleaned(self, retain_commits: int | None = None) -> list[str]:
        """Return the paths that a clean would delete now; nothing is written."""
        options = retaining(self.options, retain_commits)
        state = TableState.load(self.storage)
        state.config.check_writable()
        plan = would_clean(state, options)
        return [] if isinstance(plan, services.CleanResult) else sorted(plan.paths)

    def archive(
        self, min_commits: int | None = None, max_commits: int | None = None, *, dry_run: bool = False
    ) -> services.ArchiveResult:
        """Move the oldest instants from the active timeline to the archive when there are too many."""
        limits = {ArchiveOptions.MIN_COMMITS.key: min_commits, ArchiveOptions.MAX_COMMITS.key: max_commits}
        options = self.options.merged({key: each for key, each in limits.items() if each is not None})
        return services.archive(self.storage, options, publish=self.publication(), dry_run=dry_run)

    def create_index(
        self, index: str, columns: Sequence[str] = (), expression: Expression | None = None
    ) -> tuple[str, ...]:
        """Build an index of the metadata table; see `hudi_engine.table.services.indexing.create_index`."""
        return create_index(self.storage, self.options, self.publication(), index, columns, expression)

    def drop_index(self, index: str) -> tuple[str, ...]:
        """Drop an index of the metadata table; see `hudi_engine.table.services.indexing.drop_index`."""
        return drop_index(self.storage, self.options, self.publication(), index)

    def upgrade(self, version: int) -> services.VersionChange:
        """Upgrade the table; see `hudi_engine.table.services.upgrade.change_version`.

        Args:
            version: 8 or 9; the present one changes nothing.

        Raises:
            ConfigError: The version is lower than the table's, or no legal one.
            ServiceError: A writer or a service is at work on the table.
        """
        return self._change_version(version, "upgrade")

    def downgrade(self, version: int) -> services.VersionChange:
        """Downgrade the table to version 8 or 6; errors as `upgrade`."""
        return self._change_version(version, "downgrade")

    def _change_version(self, version: int, doing: str) -> services.VersionChange:
        present = TableConfig.load(self.storage).version
        other = "downgrade" if doing == "upgrade" else "upgrade"
        if version != present and (version > present) != (doing == "upgrade"):
            raise ConfigError(f"the table has version {present}, so {version} is no {doing}; use {other}")
        done = services.change_version(
            self.storage, self.options, self.publication(), version, run_tasks=self.workers.run_tasks
        )
        if not done.reason:
            self.publish_or_warn()
        return done

    def repair(
        self,
        kinds: tuple[str, ...] | None = None,
        *,
        dry_run: bool = True,
        partitions: Sequence[str] | None = None,
    ) -> list[Repair]:
        """Repair what `validate` finds, or say what would be done.

        Args:
            kinds: ``partition_metadata`` (added where it is missing), ``orphan_files`` (deleted), ``damaged_plans``
                (dropped), ``duplicate_keys`` (the newest row of a key stays); None for all but the last.
        """
        found = repair(
            self.storage,
            self.options,
            self.publication(),
            kinds=kinds,
            dry_run=dry_run,
            partitions=partitions,
        )
        if found and not dry_run:
            self.publish_or_warn()
        return found

    def clone(
        self, path: str, make_room: Callable[[], None] | None = None, **given: Unpack[CloneArguments]
    ) -> CloneResult:
        """Make a table that shares this one's base files, and publish it; see `hudi_engine.table.clone.clone_table`."""
        result = clone_table(self.storage, path, make_room, self.options, **given)
        TableServices(
            open_storage(result.path), self.options, run_sidecars=self.run_sidecars
        ).publish_or_warn()
        return result

    def publish(self, made: MadeSidecars = NONE_MADE, committed: Timeline | None = None) -> None:
        """Publish the snapshot manifest that plain Spark SQL reads; nothing happens when it is current."""
        self.on_publish(None)
        run = AfterWrite(self.run_sidecars, made)
        config = self.config if committed is None else committed.config
        config = config or TableConfig.load(self.storage)
        self.on_publish(Publisher(self.storage, run).publish(config, committed=committed))

    def publish_or_warn(self, made: MadeSidecars = NONE_MADE, committed: Timeline | None = None) -> None:
        """Publish after a commit if the options say so; the commit is kept whatever happens here, a failure is a warning."""
        if not self.options[EngineOptions.PUBLISH_MANIFEST]:
            return
        try:
            self.publish(made, committed)
        except (HudiError, OSError) as error:
            base = self.storage.base
            logger.warning("%s: the commit is complete, but its manifest was not published: %s", base, error)

    def after_commit(
        self, made: MadeSidecars = NONE_MADE, committed: Timeline | None = None
    ) -> services.ServicesReport:
        """Publish a commit, then run the services that are due, and return what they did; a failure is a warning."""
        with phase("publish"):
            self.publish_or_warn(made, committed)
        with phase("services"):
            report = services.run_after_commit(
                self.storage,
                self.options,
                workers=self.workers,
                publish=self.publication(),
                state=None if committed is None else TableState(self.storage, committed.config, committed),
            )
        for failure in report.failures:
            logger.warning("%s: %s", self.storage.base, failure)
        return report

    def publication(self, renewed: list[Published] | None = None) -> services.Publication:
        """Return the file lists that readers hold on to; a first one is made only where the options want one."""
        return publication_of(
            self.storage,
            self.run_sidecars,
            first=self.options[EngineOptions.PUBLISH_MANIFEST],
            on_renew=(lambda _: None) if renewed is None else renewed.append,
        )

    def _publish_unless(self, renewed: list[Published]) -> None:
        """Publish after commits were undone, unless that was done while they went."""
        if not renewed:
            self.publish_or_warn()
        elif self.options[EngineOptions.PUBLISH_MANIFEST]:
            self.on_publish(renewed[-1])


def _check_unused(state: TableState, compaction: Instant) -> None:
    """Refuse to drop the plan of a compaction that later writes go by: their logs carry its instant."""
    based = logs_named_after(state, compaction)
    writing = [each.requested_time for each in pending_writes(state.timeline)]
    if based or writing:
        raise TimelineError(
            f"the plan of compaction {compaction.requested_time} cannot go, as logs of later writes are named after it: "
            f"{', '.join((based or writing)[:3])}; run the compaction instead"
        )
