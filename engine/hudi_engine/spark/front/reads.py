"""What every call on a table shares, and reading it: snapshots, earlier states, changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import SESSION_SETTING, trust_rules
from hudi_engine.format.merge.filters import Filters
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import query_instant
from hudi_engine.format.timeline.continuity import LOOKS, look_until_still
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.changes.cdc import cdc_frame
from hudi_engine.spark.changes.changelog import changes_frame
from hudi_engine.spark.changes.read import changes_between
from hudi_engine.spark.read.filtered import filtered_frame, filtered_plan
from hudi_engine.spark.read.partition_filter import partitions_where
from hudi_engine.spark.read.published import ListMovedError, published_snapshot
from hudi_engine.spark.read.spark_read import (
    LOG_ONLY,
    READ_OPTIMIZED,
    SKIP_MERGE,
    SNAPSHOT,
    UNMERGED_LOGS,
    snapshot_frame,
)
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.spark.services.clustering import run_large_in_spark, service_runner
from hudi_engine.table.changes.read import Wanted
from hudi_engine.table.changes.window import CHANGE_TYPE, COMMITTED, span_of, start_of
from hudi_engine.table.data_skipping.plan import ReadPlan
from hudi_engine.table.front.handle import RawOptions, TableHandle
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

if TYPE_CHECKING:
    pass


class Reads(TableHandle):
    """A table at a path, with the session that works on it.

    Attributes:
        spark: The session that runs queries and writes.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        storage: Storage,
        options: RawOptions | None = None,
        held: TableState | None = None,
    ) -> None:
        super().__init__(path, storage, options, held)
        self.spark = spark
        trust_rules(spark.conf.get(SESSION_SETTING, None))

    @property
    def schema(self) -> StructType | None:
        """Data columns (without meta columns), None for a table that never had any."""
        arrow = (self._held or TableState.load(self.storage)).data_schema()
        return None if arrow is None else arrow_to_spark(arrow)

    def _services(self, options: Options) -> TableServices:
        return replace(
            super()._services(options),
            run_tasks=service_runner(self.spark),
            run_sidecars=sidecar_runner(self.spark),
            run_large=run_large_in_spark(self.spark),
            find_partitions=lambda condition: partitions_where(
                self.spark, TableState.load(self.storage), condition
            ),
        )

    def snapshot(
        self,
        *,
        filters: Filters | None = None,
        as_of: Moment | None = None,
        options: RawOptions | None = None,
    ) -> DataFrame:
        """Return the table's rows, Hudi's five meta columns first; a table without a commit is empty.

        Args:
            filters: Only rows that meet these tuples, as `hudi_engine.read` takes them. Files that cannot hold one are left out,
                by the indexes of the table's metadata table; a `where` of Spark does not know these.
            as_of: As `as_of` takes it; the table as it was with the instants up to it.
            options: ``hoodie.*`` read options.
        """
        if filters is None:
            return self._read(SNAPSHOT, as_of, options)
        resolved = self._resolved(options)
        instant = None if as_of is None else instant_as_of(TableState.load(self.storage), as_of)

        def look() -> tuple[TableConfig, Timeline, DataFrame]:
            state = TableState.load(self.storage)
            frame = filtered_frame(self.spark, state, resolved, filters, as_of=instant)
            return state.config, state.timeline, frame

        return look_until_still(self.storage, look, instant)

    def explain(
        self, filters: Filters, *, as_of: Moment | None = None, options: RawOptions | None = None
    ) -> ReadPlan:
        """Return which files `snapshot` with these filters reads and what each index skips, without reading rows or a Spark job.

        Args:
            filters: As `snapshot` takes them.
            as_of: As `as_of` takes it.
            options: ``hoodie.*`` read options.
        """
        state = TableState.load(self.storage)
        instant = None if as_of is None else instant_as_of(state, as_of)
        return filtered_plan(state, self._resolved(options), filters, as_of=instant)

    def as_of(self, when: Moment, *, options: RawOptions | None = None) -> DataFrame:
        """Return the table's rows as they were, Hudi's five meta columns first.

        Args:
            when: Instant, moment (``2026-01-01``, ``2026-01-01 09:30:00``, a datetime), comment of a savepoint, or ``latest``.
                Before its first commit a table has no rows.
            options: ``hoodie.*`` read options.

        Raises:
            TimelineError: It is none of these, or a clean has deleted files of that state.
        """
        return self._read(SNAPSHOT, when, options)

    def read_optimized(self, *, as_of: Moment | None = None, options: RawOptions | None = None) -> DataFrame:
        """Return rows of the base files only: merge-on-read tables as of their last compaction."""
        return self._read(READ_OPTIMIZED, as_of, options)

    def skip_merge(self, *, options: RawOptions | None = None) -> DataFrame:
        """Return base rows and log rows side by side, not merged."""
        return self._read(SKIP_MERGE, None, options)

    def log_only(self, *, merge: bool = True, options: RawOptions | None = None) -> DataFrame:
        """Return rows of the logs only.

        Args:
            merge: One row a key, deleted keys left out; False gives every record as it was written.
            options: ``hoodie.*`` read options.
        """
        return self._read(LOG_ONLY if merge else UNMERGED_LOGS, None, options)

    def changes(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        mode: str = "net",
        *,
        on_gap: str = "fail",
        include_start: bool = False,
        skip_insert_overwrite: bool = False,
        options: RawOptions | None = None,
    ) -> DataFrame:
        """Return the rows that changed after ``start`` up to ``end``, computed by comparing the files of both states.

        The columns are those of the table, ``_change_type`` (``insert``, ``update_before``, ``update_after``, ``delete``)
        and ``_commit_time``. Only file groups that commits of the window wrote or took out are opened.

        Args:
            start: Instant or moment, excluded unless ``include_start``; None or ``earliest`` for all rows as inserts.
            end: Instant or moment, included; None for now.
            mode: ``net`` gives one change per key, ``all`` those of every commit with the rows before updates, ``latest`` the
                rows written that still exist, without deletes and without reading earlier files.
            on_gap: What to do when clean, archive or a restore took what the window needs: ``fail``, or ``snapshot`` for
                all rows as inserts.
            include_start: Whether the changes of the commit ``start`` are among them.
            skip_insert_overwrite: Leave out what overwrites of partitions or the table did.
            options: ``hoodie.*`` read options.

        Raises:
            HistoryGapError: Files or commits that the changes need no longer exist.
            ConfigError: A mode or choice that is none.
            TimelineError: A point in time that is none, or an end before the start.
        """
        state, resolved = TableState.load(self.storage), self._resolved(options)
        wanted = Wanted(mode, on_gap, skip_insert_overwrite=skip_insert_overwrite)
        span = span_of(state, start, end, include_start=include_start)
        frame = changes_between(self.spark, state, resolved, span, wanted)
        if frame is None:
            return self.spark.createDataFrame([], f"{CHANGE_TYPE} string, {COMMITTED} string")
        return frame

    def cdc(
        self, start: Moment | None = None, end: Moment | None = None, *, options: RawOptions | None = None
    ) -> DataFrame:
        """Return the changes after ``start`` up to ``end`` in the columns of Hudi's CDC query.

        ``op`` is ``i``, ``u`` or ``d``, ``ts_ms`` the commit, ``before`` and ``after`` are the row as JSON. Every commit's
        changes are given, including rows that it wrote without a change if the table keeps change data
        (``hoodie.table.cdc.enabled``); other tables' files are compared.

        Args:
            start: Instant or moment, excluded; None or ``earliest`` for every commit from the first one on.
            end: Instant or moment, included; None for now.
            options: ``hoodie.*`` read options.

        Raises:
            HistoryGapError: Files or commits that the changes need no longer exist.
            TimelineError: A point in time that is none, or an end before the start.
        """
        state = TableState.load(self.storage)
        return cdc_frame(self.spark, state, self._resolved(options), span_of(state, start, end))

    def changelog(
        self, start: str | None = None, end: str | None = None, *, options: RawOptions | None = None
    ) -> DataFrame:
        """Return what the writes did, in the order of the commits, by ``_hoodie_operation`` (changelog mode).

        ``I`` is a new row, ``-U`` and ``U`` a row before and after an update, ``D`` a deleted row as it was. Changes are
        available as long as clean keeps their files; what a compaction collapsed before is given as rows, with a warning.
        Overwrites and deletes of whole partitions leave no records.

        Args:
            start: Instant time or moment; changes after it. None or ``earliest`` for all.
            end: Instant time or moment; changes up to it. None for all.
            options: ``hoodie.*`` read options.

        Raises:
            UnsupportedTableError: The table is not in changelog mode.
        """
        state, begin = TableState.load(self.storage), start_of(start)
        return changes_frame(
            self.spark,
            state,
            self._resolved(options),
            start=None if begin is None else query_instant(begin),
            end=None if end is None else query_instant(end),
        )

    def rows_to_change(self) -> tuple[DataFrame, TableState]:
        """Return the table's data columns, to make a batch for it of them, and the ``base`` to give `write` with that."""
        base = TableState.load(self.storage)
        return self._snapshot_of(base).drop(*META_FIELDS), base

    def _snapshot_of(self, base: TableState) -> DataFrame:
        """Return the rows of a state that a write starts from, whatever others commit meanwhile."""
        try:
            return self._read_state(base, SNAPSHOT, None, None)
        except ListMovedError:
            return self._listed(base, SNAPSHOT, None, None)

    def _read(self, merge_type: str, as_of: Moment | None, options: RawOptions | None) -> DataFrame:
        instant = None if as_of is None else instant_as_of(TableState.load(self.storage), as_of)

        def look() -> tuple[TableConfig, Timeline, DataFrame]:
            for _ in range(LOOKS):
                state = TableState.load(self.storage)
                with suppress(ListMovedError):
                    frame = self._read_state(state, merge_type, instant, options)
                    return state.config, state.timeline, frame
            state = TableState.load(self.storage)
            return state.config, state.timeline, self._listed(state, merge_type, instant, options)

        return look_until_still(self.storage, look, instant)

    def _read_state(
        self, state: TableState, merge_type: str, as_of: str | None, options: RawOptions | None
    ) -> DataFrame:
        if merge_type == SNAPSHOT and as_of is None:
            published = published_snapshot(self.spark, state)
            if published is not None:
                return published
        return self._listed(state, merge_type, as_of, options)

    def _listed(
        self, state: TableState, merge_type: str, as_of: str | None, options: RawOptions | None
    ) -> DataFrame:
        resolved = self._resolved(options)
        return snapshot_frame(self.spark, state, resolved, as_of=as_of, merge_type=merge_type)
