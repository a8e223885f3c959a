"""The services of a table that move no rows through Spark: going back, saving, compacting, cleaning, publishing.

They work on a storage alone, so that a command line without a JVM and a table with a Spark session share them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.service_options import ArchiveOptions, CleanOptions
from hudi_engine.format.config.enums import CleanPolicy
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.telemetry.phases import phase
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table import services
from hudi_engine.table.clone import CloneResult, clone_table
from hudi_engine.table.inspect.as_of import check_comment, commit_named
from hudi_engine.table.repair import Repair, repair
from hudi_engine.table.services.clean.execute import make_plan
from hudi_engine.table.services.clustering.arguments import check_partitions, clustering_options
from hudi_engine.table.snapshot.derive import NONE_MADE, AfterWrite, MadeSidecars, make_in_threads
from hudi_engine.table.snapshot.derive import RunTasks as RunSidecars
from hudi_engine.table.snapshot.manifest import Published, Publisher, live_manifest_files
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.recovery import next_instant, rollback_write, to_roll_back
from hudi_engine.table.txn.removal import RollbackPlan
from hudi_engine.table.txn.rollback import RestoreResult, RollbackResult, plan_rollback
from hudi_engine.table.txn.savepoint import (
    Savepoint,
    create_savepoint,
    list_savepoints,
    plan_restore,
    restore,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_engine.table.clone import CloneArguments

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableServices:
    """Services of one table.

    Args:
        options: ``hoodie.*`` options of the calls.
        run_tasks: Where the file groups of a compaction are merged.
        run_sidecars: Where the files that are published with the data are made.
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

    def rollback(self, instant: str) -> RollbackResult:
        """Undo the newest completed write, or a pending instant.

        Raises:
            TimelineError: The instant is not there, or something later needs it.
        """
        renewed: list[Published] = []
        result = rollback_write(self.storage, self.options, self.publication(renewed), instant)
        self._publish_unless(renewed)
        return result

    def would_be_rolled_back(self, instant: str) -> RollbackPlan:
        """Return what a rollback of an instant would remove; nothing is written.

        Raises:
            TimelineError: As rollback does.
        """
        state = TableState.load(self.storage)
        state.config.check_writable()
        chosen = to_roll_back(self.storage, state.timeline, instant)
        return plan_rollback(self.storage, state.config, state.timeline, chosen)

    def savepoint(self, instant: str | None = None, *, user: str = "", comments: str = "") -> Savepoint:
        """Keep a commit, the newest for None.

        Raises:
            ConfigError: ``comments`` is a name of other states, so that it could not name this one.
            TimelineError: There is no such write, or it was cleaned.
        """
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
        """Release a savepoint, named by its instant or comment, and return its instant.

        Raises:
            TimelineError: It is not saved.
        """
        saved = commit_named(self.storage, instant)
        services.drop_savepoint(self.storage, self.options, saved)
        return saved

    def would_be_undone(self, instant: str) -> list[tuple[str, str]]:
        """Return the instants, with their actions, that a restore to a commit would take back; nothing is written.

        Raises:
            TimelineError: As restore does.
        """
        state = TableState.load(self.storage)
        state.config.check_writable()
        target = commit_named(self.storage, instant)
        return list(plan_restore(self.storage, state.config, state.timeline, target).instants)

    def restore(self, instant: str) -> RestoreResult:
        """Restore the table to a commit; later writes are removed for good, with their files.

        Args:
            instant: The commit's instant, or the comment of its savepoint.

        Raises:
            TimelineError: There is no such write, a later one has a savepoint, or a clean has been at its files.
        """
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
        """Run a pending compaction, the next one for None; without one, schedule it first.

        Raises:
            ConfigError: A copy-on-write table, or options that make no sense.
            ServiceError: The compaction failed; it was rolled back and its plan can run again.
        """
        return services.run_compaction(
            self.storage, self.options, instant=instant, run_tasks=self.run_tasks, publish=self.publication()
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
        """Run a pending clustering, the oldest for None; without one, plan it first.

        Args:
            plans: Whether a new plan is made when there is none.

        Raises:
            ConfigError: Options that make no sense, or a bucket index.
            ServiceError: The clustering failed and was taken back, or its file groups have changed; its plan is kept.
            TimelineError: ``instant`` is not planned.
        """
        return services.run_clustering(
            self.storage,
            self.options,
            instant=instant,
            workers=services.Workers(self.run_tasks, self.run_large),
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
        """Return these services with the order and the partitions of a clustering among their options.

        Raises:
            ConfigError: One is not legal, partitions are not there or named twice, or ``where`` is given without Spark.
        """
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
        """Roll back a compaction or clustering in flight whose process has died, and its plan too if ``drop_plan``.

        Raises:
            TimelineError: It is not in flight, or later writes need its plan.
            ServiceError: A process is at it.
        """
        services.give_up_run(self.storage, self.options, self.publication(), instant, drop_plan=drop_plan)

    def clusterings(self) -> list[services.PendingClustering]:
        """Return the clusterings on the active timeline, pending and done, oldest first."""
        return list(services.show_clusterings(self.storage))

    def clean(self, retain_commits: int | None = None) -> services.CleanResult:
        """Delete files that no retained commit, savepoint, pending plan or published manifest needs.

        Args:
            retain_commits: Commits whose files stay; None for what the options say.

        Raises:
            ConfigError: ``retain_commits`` is no whole number of at least 1.
        """
        self._check_retained(retain_commits)
        return services.clean(
            self.storage, self.options, retain_commits=retain_commits, publish=self.publication()
        )

    def would_be_cleaned(self, retain_commits: int | None = None) -> list[str]:
        """Return the paths that a clean would delete now; nothing is written."""
        self._check_retained(retain_commits)
        options = self.options
        if retain_commits is not None:
            keep = {
                CleanOptions.POLICY.key: CleanPolicy.KEEP_LATEST_COMMITS,
                CleanOptions.COMMITS_RETAINED.key: retain_commits,
            }
            options = options.merged(keep)
        state = TableState.load(self.storage)
        state.config.check_writable()
        readers = services.Publication(
            publish=lambda _: None, live_files=lambda: live_manifest_files(self.storage)
        )
        plan = make_plan(state, options, readers, now=next_instant(state.timeline))
        return [] if isinstance(plan, services.CleanResult) else sorted(plan.paths)

    def archive(
        self, min_commits: int | None = None, max_commits: int | None = None, *, dry_run: bool = False
    ) -> services.ArchiveResult:
        """Move the oldest instants from the active timeline to the archive when there are too many.

        Args:
            min_commits: Completed commits that stay; None for what the options say.
            max_commits: Completed commits above which older ones go; None for what the options say.

        Raises:
            ConfigError: Limits that make no sense.
        """
        limits = {ArchiveOptions.MIN_COMMITS.key: min_commits, ArchiveOptions.MAX_COMMITS.key: max_commits}
        options = self.options.merged({key: each for key, each in limits.items() if each is not None})
        return services.archive(self.storage, options, publish=self.publication(), dry_run=dry_run)

    def upgrade(self, version: int) -> services.VersionChange:
        """Upgrade the table; see `hudi_engine.table.services.upgrade.change_version`.

        Args:
            version: 8 or 9; the present one changes nothing.

        Raises:
            ConfigError: The version is lower than the table's, or no legal one.
            ServiceError: A writer or a service is at work on the table.
        """
        return self._change_version(
            version, "upgrade", is_wrong=version < TableConfig.load(self.storage).version
        )

    def downgrade(self, version: int) -> services.VersionChange:
        """Downgrade the table to version 8 or 6; errors as `upgrade`."""
        return self._change_version(
            version, "downgrade", is_wrong=version > TableConfig.load(self.storage).version
        )

    def _change_version(self, version: int, doing: str, *, is_wrong: bool) -> services.VersionChange:
        if is_wrong:
            present = TableConfig.load(self.storage).version
            other = "downgrade" if doing == "upgrade" else "upgrade"
            raise ConfigError(f"the table has version {present}, so {version} is no {doing}; use {other}")
        done = services.change_version(
            self.storage, self.options, self.publication(), version, run_tasks=self.run_tasks
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
            partitions: Partition paths in which keys are looked at; None for all.

        Raises:
            ConfigError: An unknown kind or partition.
            WriteConflictError: Another writer changed the file groups with such keys meanwhile.
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
        self, path: str, make_room: Callable[[], None] | None = None, **asked: Unpack[CloneArguments]
    ) -> CloneResult:
        """Make a table that shares this one's base files, and publish it; see `hudi_engine.table.clone.clone_table`."""
        result = clone_table(self.storage, path, make_room, self.options, **asked)
        TableServices(
            open_storage(result.path), self.options, run_sidecars=self.run_sidecars
        ).publish_or_warn()
        return result

    def publish(self, made: MadeSidecars = NONE_MADE, committed: Timeline | None = None) -> None:
        """Publish the snapshot manifest that plain Spark SQL reads; nothing happens when it is current.

        Args:
            made: Files published with the data that a write has made already, see `AfterWrite`.
            committed: The timeline right after that write.
        """
        self.on_publish(None)
        run = AfterWrite(self.run_sidecars, made)
        config = self.config if committed is None else committed.config
        config = config or TableConfig.load(self.storage)
        self.on_publish(Publisher(self.storage, run).publish(config, committed=committed))

    def publish_or_warn(self, made: MadeSidecars = NONE_MADE, committed: Timeline | None = None) -> None:
        """Publish after a commit if the options say so; the commit stands whatever happens here, a failure is a warning."""
        if not self.options[EngineOptions.PUBLISH_MANIFEST]:
            return
        try:
            self.publish(made, committed)
        except (HudiError, OSError) as error:
            base = self.storage.base
            logger.warning("%s: the commit stands, but its manifest was not published: %s", base, error)

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
                workers=services.Workers(self.run_tasks, self.run_large),
                publish=self.publication(),
                state=None if committed is None else TableState(self.storage, committed.config, committed),
            )
        for failure in report.failures:
            logger.warning("%s: %s", self.storage.base, failure)
        return report

    def publication(self, renewed: list[Published] | None = None) -> services.Publication:
        """Return the file lists that readers hold on to; a first one is made only where the options want one.

        Args:
            renewed: Gets each list that was published anew.
        """
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

    def _check_retained(self, retain_commits: int | None) -> None:
        if retain_commits is not None and (not isinstance(retain_commits, int) or retain_commits < 1):
            raise ConfigError(
                f"retain_commits is {retain_commits!r}; it must be a whole number of at least 1"
            )
