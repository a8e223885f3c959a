"""Operations on a table as methods: looks, savepoints and restore, table services, repair, report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hudi_engine.format.storage.given import public_location
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.clone import CloneResult
from hudi_engine.table.front.handle import RawOptions, TableHandle
from hudi_engine.table.inspect import (
    CommitFacts,
    FileFacts,
    Finding,
    PartitionFacts,
    commit_facts,
    damaged_files,
    duplicate_keys,
    file_facts,
    partition_facts,
    validate,
)
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.operations.contents import Difference, Side, Verified, difference, verified
from hudi_engine.table.repair import Repair
from hudi_engine.table.report import write_report
from hudi_engine.table.services import VersionChange, result
from hudi_engine.table.services.due import TableStats, table_stats
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import Consumer, forget_consumer, list_consumers, register_consumer
from hudi_engine.table.txn.rollback import RestoreResult, RollbackResult
from hudi_engine.table.txn.savepoint import Savepoint
from hudi_engine.table.txn.swap import table_storage


class TableOperations(TableHandle):
    """Looks at a table, which change nothing and start no Spark job, and operations that change it.

    `options` are ``hoodie.*`` options of the call. Their errors are those of
    `hudi_engine.table.table_services.TableServices`.
    """

    def timeline(self) -> list[Instant]:
        """Return completed and pending instants of the active timeline, newest last."""
        return list(Timeline.load(self.storage, self.config).instants)

    def commits(self, limit: int | None = None) -> list[CommitFacts]:
        """Return what the completed writes of the active timeline did, newest first.

        Args:
            limit: How many; None for all. The body of each is read.

        Raises:
            CorruptTableError: A commit cannot be read.
        """
        return commit_facts(TableState.load(self.storage), limit)

    def files(self, *, as_of: Moment | None = None) -> list[FileFacts]:
        """Return the base and log files that a snapshot reads, in the order of partition and file group.

        Args:
            as_of: Instant, moment or savepoint; the files of the table as it was then.
        """
        state = TableState.load(self.storage)
        return file_facts(state, as_of=None if as_of is None else instant_as_of(state, as_of))

    def partitions(self) -> list[PartitionFacts]:
        """Return what lies in each partition: file groups, base and log files and their bytes."""
        return partition_facts(TableState.load(self.storage).view().latest_slices())

    def stats(self, *, count_rows: bool = False, options: RawOptions | None = None) -> TableStats:
        """Return the table in numbers, and which services are due.

        Args:
            count_rows: Whether logs are merged to know the rows; without, ``rows`` is None where there are logs.
            options: ``hoodie.*`` options of this call, such as the triggers of services.
        """
        return table_stats(TableState.load(self.storage), self._resolved(options), count_rows=count_rows)

    def validate(
        self, *, keys: bool = False, deep: bool = False, options: RawOptions | None = None
    ) -> list[Finding]:
        """Compare timeline and files; returns what is wrong, what harms readers first, and nothing for a sound table.

        Args:
            keys: Whether all keys are read too, to find duplicates.
            deep: Whether every data file is read too, and its pages compared with their checksums.
        """
        state, resolved = TableState.load(self.storage), self._resolved(options)
        return [
            *validate(state),
            *(damaged_files(state, resolved) if deep else []),
            *(duplicate_keys(state, resolved) if keys else []),
        ]

    def verify(self, *, as_of: Moment | None = None, options: RawOptions | None = None) -> Verified:
        """Count the rows and their content hash in one pass, without a Spark job, beside the receipt of the commits.

        Args:
            as_of: An earlier state, as `as_of` takes it.
        """
        return verified(self._side(as_of, options))

    def diff(
        self,
        other: str | TableOperations | None = None,
        *,
        as_of: Moment | None = None,
        other_as_of: Moment | None = None,
        limit: int = 5,
        options: RawOptions | None = None,
    ) -> Difference:
        """Compare the rows with those of another table, or of an earlier state: by receipts at once, else by key.

        Args:
            other: A table or its folder; None for this one.
            limit: Keys of each kind that are shown.
        """
        if isinstance(other, str):
            there = Side(TableState.load(table_storage(other)), self._resolved(options).raw, other_as_of)
        else:
            there = (other or self)._side(other_as_of, options)
        return difference(self._side(as_of, options), there, limit)

    def _side(self, as_of: Moment | None, options: RawOptions | None) -> Side:
        return Side(TableState.load(self.storage), self._resolved(options).raw, as_of)

    def rollback(self, instant: str, *, options: RawOptions | None = None) -> RollbackResult:
        """Undo the newest completed write, or a pending instant."""
        return self.services(options).rollback(str(instant))

    def upgrade(self, version: int, *, options: RawOptions | None = None) -> VersionChange:
        """Upgrade the table to version 8 or 9 of its format; its rows and its history stay.

        Args:
            version: Table version, not lower than the present one. Athena, Trino and Apache Hudi before 1.0 read 6 at most.

        Raises:
            ConfigError: The version is lower, or no legal one.
            ServiceError: A writer or a service is at work on the table.
        """
        return self.services(options).upgrade(version)

    def downgrade(self, version: int, *, options: RawOptions | None = None) -> VersionChange:
        """Downgrade the table to version 8 or 6 of its format; its rows and its history stay.

        Args:
            version: Table version, not higher than the present one.

        Raises:
            ConfigError: The version is higher, or no legal one.
            ServiceError: A writer or a service is at work on the table.
        """
        return self.services(options).downgrade(version)

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comments: str = "",
        options: RawOptions | None = None,
    ) -> Savepoint:
        """Save a commit, the newest for None: clean keeps its files, and the table can be restored to it.

        Args:
            comments: Why, in words by which it can be named afterwards.
        """
        chosen = None if instant is None else str(instant)
        return self.services(options).savepoint(chosen, user=user, comments=comments)

    def savepoints(self) -> list[Savepoint]:
        """Return savepoints of the table, oldest first."""
        return self.services().savepoints()

    def delete_savepoint(self, instant: str, *, options: RawOptions | None = None) -> None:
        """Release a savepoint, named by its instant or comment."""
        self.services(options).delete_savepoint(str(instant))

    def restore(self, instant: str, *, options: RawOptions | None = None) -> RestoreResult:
        """Restore the table to a commit, named by its instant or its savepoint's comment; later writes are removed for good."""
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
        """Make a table that shares the base files of this one and is written on its own from then on.

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
        """Plan a compaction of the slices that have logs; ``instant`` of the result is None when none has."""
        return self.services(options).schedule_compaction()

    def compact(
        self, *, instant: str | None = None, options: RawOptions | None = None
    ) -> result.CompactionResult:
        """Merge logs into new base files: run a pending plan, or schedule one and run it.

        Args:
            instant: Plan to run; None for the next in the order of ``hoodie.compaction.order``.
        """
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
            partitions: Partition paths to look at; None for those of the options.
            where: Or a condition on the partition columns.
            dry_run: Only return what a plan would take.
        """
        chosen = self.services(options).for_clustering(columns, strategy, partitions, where)
        return chosen.schedule_clustering(dry_run=dry_run)

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
        """Rewrite small file groups into files of a good size, rows in order: run a pending plan, or plan and run.

        Args:
            columns: As for schedule_clustering, as are ``strategy``, ``partitions`` and ``where``; a pending plan has its own.
            instant: Plan to run; None for the oldest pending one.
        """
        return self.services(options).for_clustering(columns, strategy, partitions, where).cluster(instant)

    def clusterings(self) -> list[result.PendingClustering]:
        """Return clusterings on the active timeline, pending and done, oldest first."""
        return self.services().clusterings()

    def clean(
        self, retain_commits: int | None = None, *, options: RawOptions | None = None
    ) -> result.CleanResult:
        """Delete files that no retained commit, savepoint, pending plan or published manifest needs.

        Args:
            retain_commits: Commits whose files stay, and to which time travel goes back; None for that of the options (10).
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

        Args:
            min_commits: Completed commits that stay; None for ``hoodie.keep.min.commits`` (default 20).
            max_commits: Completed commits above which older ones go; None for ``hoodie.keep.max.commits`` (default 30).
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
        """Repair what validate finds; only return what would be done unless ``dry_run`` is false.

        Args:
            kinds: ``partition_metadata``, ``orphan_files``, ``damaged_plans``, ``duplicate_keys``; None for all but the
                last, which reads all keys.
            partitions: Partition paths in which keys are looked at; None for all.
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
