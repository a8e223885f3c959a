"""What there is to know about a table, without Spark and without a change to it."""

from __future__ import annotations

from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.spark.front.base import RawOptions, TableBase
from hudi_engine.table.inspect import (
    CommitFacts,
    FileFacts,
    Finding,
    PartitionFacts,
    TableStats,
    commit_facts,
    damaged_files,
    duplicate_keys,
    file_facts,
    partition_facts,
    table_stats,
    validate,
)
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.state import TableState


class Looks(TableBase):
    """What there is to know about a table; none of the calls writes, takes the lock or starts a Spark job."""

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
            keys: Whether all keys are read too, to find those that are there twice.
            deep: Whether every data file is read too, and its pages compared with their checksums.
            options: ``hoodie.*`` options of this call.
        """
        state = TableState.load(self.storage)
        resolved = self._resolved(options)
        return [
            *validate(state),
            *(damaged_files(state, resolved) if deep else []),
            *(duplicate_keys(state, resolved) if keys else []),
        ]
