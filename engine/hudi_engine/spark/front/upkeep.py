"""Going back to earlier commits, and table services."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hudi_engine.errors import ConfigError
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.spark.front.base import RawOptions, TableBase
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.clone import CloneResult
from hudi_engine.table.repair import Repair
from hudi_engine.table.report import write_report
from hudi_engine.table.services import result
from hudi_engine.table.services.clustering.arguments import check_partitions, clustering_options
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.consumers import Consumer, forget_consumer, list_consumers, register_consumer
from hudi_engine.table.txn.restore_steps import RestoreResult
from hudi_engine.table.txn.rollback import RollbackResult
from hudi_engine.table.txn.savepoint import Savepoint

if TYPE_CHECKING:
    pass


class Upkeep(TableBase):
    """Going back to earlier commits, and table services."""

    def rollback(self, instant: str, *, options: RawOptions | None = None) -> RollbackResult:
        """Undo an instant: the newest completed write, or a pending one.

        Raises:
            TimelineError: The instant is not there, or something later stands on it.
        """
        return self.services(options).rollback(str(instant))

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comments: str = "",
        options: RawOptions | None = None,
    ) -> Savepoint:
        """Keep a commit: clean spares its files until the savepoint is deleted, and the table can go back to it.

        Args:
            instant: A completed write; None for the newest.
            user: Who saves it.
            comments: Why, in words by which it can be named afterwards.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: The comment is a name of other states: digits, a date or ``latest``.
            TimelineError: There is no such write, or a clean has been at its files.
        """
        saved = None if instant is None else str(instant)
        return self.services(options).savepoint(saved, user=user, comments=comments)

    def savepoints(self) -> list[Savepoint]:
        """Return savepoints of the table, oldest first."""
        return self.services().savepoints()

    def delete_savepoint(self, instant: str, *, options: RawOptions | None = None) -> None:
        """Give a saved commit free to clean, by instant or comment; raises TimelineError when it is not saved."""
        self.services(options).delete_savepoint(str(instant))

    def restore(self, instant: str, *, options: RawOptions | None = None) -> RestoreResult:
        """Take the table back to a commit; every later write goes for good, with its files.

        Args:
            instant: A completed write, best one with a savepoint, whose comment names it too.
            options: ``hoodie.*`` options of this call.

        Raises:
            TimelineError: There is no such write, a later one has a savepoint, or a clean has been at its files.
        """
        return self.services(options).restore(str(instant))

    def clone(
        self,
        path: str,
        *,
        name: str | None = None,
        at: Moment | None = None,
        replace: bool = False,
        copy: bool = False,
    ) -> CloneResult:
        """Make a table that shares the base files of this one, and from then on goes its own way.

        Args:
            path: Folder of the clone, on the same file system or in the same bucket.
            name: Its name; None for the last part of the path.
            at: Instant, moment or savepoint; None for the newest commit.
            replace: Whether a table that is there is replaced, at once for its readers.
            copy: Whether bytes may be copied where files cannot be shared.

        Raises:
            ConfigError: The path is this table's, or inside it.
            TableExistsError: A table is there and is not to be replaced, or a folder with other files.
            TimelineError: A clean has deleted files of ``at``, or it has left the active timeline.
            StorageError: The files cannot be shared, or the storage failed.
        """
        chosen = public_location(os.fspath(path))
        return self.services().clone(chosen, name=name, at=at, replace=replace, copy=copy)

    def schedule_compaction(self, *, options: RawOptions | None = None) -> result.CompactionResult:
        """Plan a compaction of the slices that have logs; ``instant`` of the result is None when none has.

        Raises:
            ConfigError: A copy-on-write table, or options that make no sense.
        """
        return self.services(options).schedule_compaction()

    def compact(
        self, *, instant: str | None = None, options: RawOptions | None = None
    ) -> result.CompactionResult:
        """Merge logs into new base files: run the pending plan, or schedule one and run it.

        Args:
            instant: Plan to run; None for the next in the order of ``hoodie.compaction.order``.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: A copy-on-write table, or options that make no sense.
            ServiceError: The compaction failed; it was rolled back and its plan can run again.
        """
        prepare_session(self.spark)
        return self.services(options).compact(instant)

    def compactions(self) -> list[result.PendingCompaction]:
        """Return compactions on the active timeline, pending and done, oldest first."""
        return self.services().compactions()

    def schedule_clustering(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        strategy: str | None = None,
        partitions: Sequence[str] | None = None,
        where: str | None = None,
        dry_run: bool = False,
        options: RawOptions | None = None,
    ) -> result.ClusteringResult:
        """Plan a clustering; ``instant`` of the result is None when there is nothing to rewrite.

        Until the plan is done its file groups must not change: writes to them are refused, see
        ``hoodie.clustering.updates.strategy``.

        Args:
            columns: Columns by which rows are ordered; None for ``hoodie.clustering.plan.strategy.sort.columns``.
            strategy: ``linear``, ``z-order`` or ``hilbert``; None for ``hoodie.layout.optimize.strategy``.
            partitions: Partition paths to look at; None for what the options say.
            where: Or a condition on the partition columns.
            dry_run: Only say what a plan would take.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: Columns, partitions or options that make no sense, or a bucket index.
        """
        services = self._clustering(options, columns, strategy, partitions, where)
        return services.schedule_clustering(dry_run=dry_run)

    def cluster(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        strategy: str | None = None,
        partitions: Sequence[str] | None = None,
        where: str | None = None,
        instant: str | None = None,
        options: RawOptions | None = None,
    ) -> result.ClusteringResult:
        """Rewrite small file groups into files of a good size, rows in order: run the pending plan, or plan and run.

        Args:
            columns: As for schedule_clustering; a pending plan has its own.
            strategy: As for schedule_clustering.
            partitions: As for schedule_clustering.
            where: As for schedule_clustering.
            instant: Plan to run; None for the oldest pending one.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: As for schedule_clustering.
            ServiceError: The clustering failed and was taken back, or its file groups have changed; its plan stands.
            TimelineError: ``instant`` is not planned.
        """
        prepare_session(self.spark)
        return self._clustering(options, columns, strategy, partitions, where).cluster(instant)

    def clusterings(self) -> list[result.PendingClustering]:
        """Return clusterings on the active timeline, pending and done, oldest first."""
        return self.services().clusterings()

    def _clustering(
        self,
        options: RawOptions | None,
        columns: str | Sequence[str] | None,
        strategy: str | None,
        partitions: Sequence[str] | None,
        where: str | None,
    ) -> TableServices:
        services, named = self.services(options), partitions is not None
        if where is not None:
            if named:
                raise ConfigError("a clustering has partitions and where; give one of them")
            assert services.find_partitions is not None
            partitions = services.find_partitions(where)
        asked = clustering_options(
            services.options, columns=columns, strategy=strategy, partitions=partitions
        )
        if named:
            check_partitions(TableState.load(self.storage), asked)
        return replace(services, options=asked)

    def clean(
        self, retain_commits: int | None = None, *, options: RawOptions | None = None
    ) -> result.CleanResult:
        """Delete files that no retained commit, savepoint, pending plan or published manifest needs.

        Time travel to instants before the oldest retained one is over after that.

        Args:
            retain_commits: Commits whose files stay; None for what the options say (default 10).
            options: ``hoodie.*`` options of this call.
        """
        return self.services(options).clean(retain_commits)

    def archive(
        self,
        min_commits: int | None = None,
        max_commits: int | None = None,
        *,
        dry_run: bool = False,
        options: RawOptions | None = None,
    ) -> result.ArchiveResult:
        """Move the oldest instants from the active timeline to the archive when there are too many.

        Nothing goes that a savepoint, a pending instant, the cleaner, a due compaction or a reader still needs there.

        Args:
            min_commits: Completed commits that stay; None for ``hoodie.keep.min.commits`` (default 20).
            max_commits: Completed commits above which older ones go; None for ``hoodie.keep.max.commits`` (default 30).
            dry_run: Only say which instants would go.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: Limits that make no sense.
        """
        return self.services(options).archive(min_commits, max_commits, dry_run=dry_run)

    def repair(
        self,
        kinds: Sequence[str] | None = None,
        *,
        dry_run: bool = True,
        partitions: Sequence[str] | None = None,
        options: RawOptions | None = None,
    ) -> list[Repair]:
        """Mend what a look at the table finds; only say what would be done unless ``dry_run`` is false.

        Args:
            kinds: ``partition_metadata``, ``orphan_files``, ``damaged_plans``, ``duplicate_keys``; None for all but the
                last, which reads all keys.
            dry_run: Only look.
            partitions: Partition paths in which keys are looked at; None for all.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: An unknown kind or partition.
            WriteConflictError: Another writer changed the file groups with duplicate keys meanwhile.
        """
        chosen = None if kinds is None else tuple(kinds)
        return self.services(options).repair(chosen, dry_run=dry_run, partitions=partitions)

    def report(
        self,
        path: str | Path | None = None,
        *,
        count_rows: bool = False,
        options: RawOptions | None = None,
    ) -> Path:
        """Write one HTML page about the table to a file of this machine, and return where it is.

        Args:
            path: The file; None for ``<table>-report.html`` in the working directory.
            count_rows: Whether logs are merged to know the rows of a merge-on-read table.
            options: ``hoodie.*`` options of this call: limits and triggers of the services that the page tells of.

        Raises:
            ConfigError: The file would lie in the table, is a folder, or its folder is not there.
        """
        state = TableState.load(self.storage)
        return write_report(state, self._resolved(options), path, count_rows=count_rows).path

    def register_consumer(self, name: str, instant: str, *, hours: float) -> Consumer:
        """Make clean and archive spare what a reader of changes needs after an instant; Apache Hudi's own do not.

        Args:
            name: The reader; registered again it takes the place of what it was.
            instant: Requested time of the last commit that it has taken.
            hours: How long it is remembered.

        Raises:
            ConfigError: An empty name, an instant that is no digits, or a time that is not positive.
            HistoryGapError: The instant is no commit of the table, or was taken back.
        """
        if str(instant).isdigit():  # all else is refused by its form
            check_known(TableState.load(self.storage), str(instant))
        return register_consumer(self.storage, name, str(instant), hours)

    def forget_consumer(self, name: str) -> bool:
        """Spare nothing for a reader any more; return whether it was registered."""
        return forget_consumer(self.storage, name)

    def consumers(self) -> list[Consumer]:
        """Return the registered readers whose time is not over, by name."""
        return list_consumers(self.storage)

    def publish(self) -> None:
        """Publish the snapshot manifest that plain Spark SQL reads; nothing happens when it is current."""
        self.services().publish()
