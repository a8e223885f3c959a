"""The front of the engine: a Hudi table as an object."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hudi_engine.catalog.session import sidecar_runner
from hudi_engine.changes.as_of import instant_as_of
from hudi_engine.changes.changelog import changes_frame
from hudi_engine.changes.columns import CHANGE_TYPE, COMMITTED
from hudi_engine.changes.read import changes_between
from hudi_engine.changes.window import Moment
from hudi_engine.config.options import Options, resolve_options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.config.trusted_rules import SESSION_SETTING, trust_rules
from hudi_engine.errors import ConfigError
from hudi_engine.read.published import published_snapshot
from hudi_engine.read.session import prepare_session
from hudi_engine.read.spark_read import (
    LOG_ONLY,
    READ_OPTIMIZED,
    SKIP_MERGE,
    SNAPSHOT,
    UNMERGED_LOGS,
    snapshot_frame,
)
from hudi_engine.schema.meta_fields import META_FIELDS
from hudi_engine.schema.spark_types import arrow_to_spark, spark_to_arrow
from hudi_engine.services import (
    ArchiveResult,
    CleanResult,
    CompactionResult,
    PendingCompaction,
    run_in_spark,
    run_in_threads,
)
from hudi_engine.storage.base import Storage
from hudi_engine.storage.factory import open_storage
from hudi_engine.table_services import TableServices
from hudi_engine.table_state import TableState
from hudi_engine.timeline.active import Timeline
from hudi_engine.timeline.clock import query_instant
from hudi_engine.timeline.instant import Instant
from hudi_engine.txn.restore_steps import RestoreResult
from hudi_engine.txn.rollback import RollbackResult
from hudi_engine.txn.savepoint import Savepoint
from hudi_engine.txn.swap import recover_swap, table_storage
from hudi_engine.write import operation as operations
from hudi_engine.write.define.create_table import create_table, table_properties
from hudi_engine.write.metadata_only import alter_schema, delete_partitions
from hudi_engine.write.operation import Operation
from hudi_engine.write.pipeline import write
from hudi_engine.write.request import WriteRequest
from hudi_engine.write.result import WriteResult
from hudi_engine.write.rows.arguments import check_frame, column_names, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)

RawOptions = Mapping[str, object]


class HudiTable:
    """A Hudi table at a path.

    Made by :meth:`create` or :meth:`open`. Every call looks at the table anew, so several objects, processes and writers
    may work on one path.

    Attributes:
        spark: The session that runs queries and writes.
        path: Base path as given.
        storage: The table's storage.
    """

    def __init__(
        self, spark: SparkSession, path: str, storage: Storage, options: RawOptions | None = None
    ) -> None:
        self.spark = spark
        self.path = path
        self.storage = storage
        self._options = dict(options or {})
        trust_rules(spark.conf.get(SESSION_SETTING, None))

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        path: str,
        *,
        name: str,
        record_key: Sequence[str] | None = None,
        precombine_field: str | Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        table_type: str | None = None,
        schema: StructType | str | None = None,
        options: RawOptions | None = None,
    ) -> HudiTable:
        """Make an empty table (table version 6).

        Args:
            spark: The session.
            path: Base path: absolute, relative or a URI.
            name: Table name.
            record_key: Columns of the record key; None lets the writer generate keys (append-only tables).
            precombine_field: Ordering column: of two rows with a key the one with the larger value wins. Without it the
                row written last wins.
            partition_by: Partition columns; ``column:timestamp`` uses the timestamp key generator for that column.
            table_type: ``cow`` (copy-on-write, the default) or ``mor`` (merge-on-read).
            schema: Columns when they are known, also as text (``id int, name string``); otherwise the first write brings them.
            options: ``hoodie.*`` options. Those that define the table are stored with it, and may take the place of the
                arguments above (``hoodie.datasource.write.recordkey.field`` and so on); the others are defaults of this
                object's calls.

        Raises:
            ConfigError: The definition makes no sense; all problems in one message.
            TableExistsError: A table, or another folder with files, is there.
        """
        path = os.fspath(path) if isinstance(path, os.PathLike) else path
        arrow = None if schema is None else spark_to_arrow(struct_of(spark, schema))
        config = table_properties(
            name=name,
            record_key=column_names(record_key, "record_key"),
            precombine_field=column_names(precombine_field, "precombine_field"),
            partition_by=column_names(partition_by, "partition_by"),
            table_type=table_type,
            schema=arrow,
            options=options,
        )
        recover_swap(path)
        storage = open_storage(path)
        create_table(storage, config)
        return cls(spark, path, storage, options)

    @classmethod
    def open(cls, spark: SparkSession, path: str, *, options: RawOptions | None = None) -> HudiTable:
        """Open a table, also one that Apache Hudi wrote (table versions 6, 8, 9).

        Args:
            spark: The session.
            path: Base path.
            options: ``hoodie.*`` defaults of this object's calls.

        Raises:
            TableNotFoundError: There is none.
            CorruptTableError: Its properties cannot be read.
            UnsupportedTableError: A version or feature this engine does not read.
        """
        resolve_options(options)
        path = os.fspath(path) if isinstance(path, os.PathLike) else path
        storage = table_storage(path)
        TableConfig.load(storage)
        return cls(spark, path, storage, options)

    @property
    def config(self) -> TableConfig:
        """The table's properties, read anew."""
        return TableConfig.load(self.storage)

    @property
    def schema(self) -> StructType | None:
        """Data columns (without meta columns), None for a table that never had any."""
        arrow = TableState.load(self.storage).data_schema()
        return None if arrow is None else arrow_to_spark(arrow)

    # -- writing ---------------------------------------------------------------------------------------------------

    def upsert(
        self,
        df: DataFrame,
        *,
        options: RawOptions | None = None,
        update_columns: Sequence[str] | None = None,
        match_condition: str | None = None,
    ) -> WriteResult:
        """Update the rows whose key is in the table and insert the others.

        Args:
            df: Rows; columns the table lacks are added to it.
            options: ``hoodie.*`` options of this call.
            update_columns: Columns of existing rows to replace; None replaces whole rows.
            match_condition: SQL over the aliases DBT_INTERNAL_SOURCE and DBT_INTERNAL_DEST: only stored rows that fulfil it
                are updated, other rows of the batch are inserted, as in SQL MERGE.

        Raises:
            InvalidKeyError, SchemaError, PathEscapeError, DataError: Rows that cannot be written; nothing was.
            ConfigError: Options or arguments that make no sense.
            WriteConflictError: Another writer committed to the same file groups first.
            UnsupportedTableError: A table version or feature this engine does not write.
        """
        return self.write(
            operations.UPSERT,
            df,
            options,
            update_columns=None if update_columns is None else self._known_columns(df, update_columns),
            match_condition=match_condition,
        )

    def insert(self, df: DataFrame, *, options: RawOptions | None = None) -> WriteResult:
        """Add rows, small files first; keys are not looked up. Raises as upsert does."""
        return self.write(operations.INSERT, df, options)

    def bulk_insert(self, df: DataFrame, *, options: RawOptions | None = None) -> WriteResult:
        """Add rows in one streaming pass to new files; the fastest way for large loads. Raises as upsert does."""
        return self.write(operations.BULK_INSERT, df, options)

    def insert_overwrite(self, df: DataFrame, *, options: RawOptions | None = None) -> WriteResult:
        """Replace the partitions that the rows belong to, in one replace instant. Raises as upsert does."""
        return self.write(operations.INSERT_OVERWRITE, df, options)

    def insert_overwrite_table(self, df: DataFrame, *, options: RawOptions | None = None) -> WriteResult:
        """Replace all rows of the table, in one replace instant. Raises as upsert does."""
        return self.write(operations.INSERT_OVERWRITE_TABLE, df, options)

    def delete(self, df: DataFrame, *, options: RawOptions | None = None) -> WriteResult:
        """Delete the rows whose keys are in ``df``.

        Args:
            df: The record key columns, and the partition columns if there are any; without these a key is deleted
                wherever it is. Other columns are ignored.
            options: ``hoodie.*`` options of this call.
        """
        return self.write(operations.DELETE, df, options)

    def delete_partitions(
        self, partitions: Sequence[str], *, options: RawOptions | None = None
    ) -> WriteResult:
        """Delete whole partitions, in one replace instant.

        Args:
            partitions: Partition paths, such as ``["dt=2026-01-01"]``.
            options: ``hoodie.*`` options of this call.
        """
        resolved = self._resolved(options)
        return self._published(delete_partitions(self.storage, partitions, resolved), resolved)

    def delete_where(self, condition: str, *, options: RawOptions | None = None) -> WriteResult:
        """Delete the rows that fulfil a SQL condition over the table's columns."""
        base = TableState.load(self.storage)
        rows = self._rows_where(base, condition)
        return self.write(operations.DELETE, rows, options, prepped=True, base=base)

    def update_where(
        self, condition: str, assignments: Mapping[str, str], *, options: RawOptions | None = None
    ) -> WriteResult:
        """Set columns of the rows that fulfil a SQL condition.

        Args:
            condition: SQL over the table's columns.
            assignments: Column to SQL expression.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: An assignment to a key or partition column, or to one the table does not have.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F

        base = TableState.load(self.storage)
        self._check_assignments(base, assignments)
        rows = self._rows_where(base, condition)
        lowered = {name.lower(): expression for name, expression in assignments.items()}
        columns = []
        try:
            for field in rows.schema.fields:
                expression = lowered.get(field.name.lower())
                column = F.col("`" + field.name.replace("`", "``") + "`")
                if expression is not None:
                    column = F.expr(str(expression)).cast(field.dataType).alias(field.name)
                columns.append(column)
            updated = rows.select(*columns)
        except PySparkException as error:
            raise ConfigError(
                f"the assignments {dict(assignments)!r} cannot be resolved: {str(error).splitlines()[0]}"
            ) from error
        return self.write(operations.UPSERT, updated, options, prepped=True, base=base)

    def alter_schema(self, schema: StructType | str, *, options: RawOptions | None = None) -> WriteResult:
        """Give the table another set of columns in one commit: added, dropped (hidden) or widened ones.

        Args:
            schema: All columns, also as text (``id int, name string``).
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: ``schema`` is no list of columns.
            SchemaError: A change Hudi refuses, or dropping a key, ordering or partition column.
        """
        resolved = self._resolved(options)
        columns = spark_to_arrow(struct_of(self.spark, schema))
        return self._published(alter_schema(self.storage, columns, resolved), resolved)

    # -- reading ---------------------------------------------------------------------------------------------------

    def snapshot(self, *, as_of: str | None = None, options: RawOptions | None = None) -> DataFrame:
        """The table's rows, Hudi's five meta columns first; a table without a commit is empty.

        Args:
            as_of: Instant time, or a moment such as ``2026-01-01 09:30:00``; the table as it was with the instants up to it.
            options: ``hoodie.*`` read options.
        """
        return self._read(SNAPSHOT, as_of, options)

    def as_of(self, when: Moment, *, options: RawOptions | None = None) -> DataFrame:
        """The table's rows as they were, Hudi's five meta columns first.

        Args:
            when: Instant, moment (``2026-01-01``, ``2026-01-01 09:30:00``, a datetime), comment of a savepoint, or ``latest``.
            options: ``hoodie.*`` read options.

        Raises:
            TimelineError: It is none of these, or a clean has deleted files of that state.
        """
        return self._read(SNAPSHOT, instant_as_of(TableState.load(self.storage), when), options)

    def read_optimized(self, *, as_of: str | None = None, options: RawOptions | None = None) -> DataFrame:
        """Rows of the base files only: merge-on-read tables as of their last compaction."""
        return self._read(READ_OPTIMIZED, as_of, options)

    def skip_merge(self, *, options: RawOptions | None = None) -> DataFrame:
        """Base rows and log rows side by side, not merged."""
        return self._read(SKIP_MERGE, None, options)

    def log_only(self, *, merge: bool = True, options: RawOptions | None = None) -> DataFrame:
        """Rows of the logs only.

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
        options: RawOptions | None = None,
    ) -> DataFrame:
        """The rows that changed after ``start`` up to ``end``, told by comparing the files of then and now.

        The columns are those of the table, ``_change_type`` (``insert``, ``update_before``, ``update_after``, ``delete``)
        and ``_commit_time``. Only file groups that commits of the window wrote or took out are opened.

        Args:
            start: Instant or moment, excluded; None for all rows as inserts.
            end: Instant or moment, included; None for now.
            mode: ``net`` tells one change a key, ``all`` every commit's with the rows before updates, ``latest`` the rows
                written and still there, without deletes and without a look at what was before.
            on_gap: What to do when clean, archive or a restore took what the window needs: ``fail``, or ``snapshot`` for
                all rows as inserts.
            options: ``hoodie.*`` read options.

        Raises:
            HistoryGapError: The changes cannot be told in full any more.
            ConfigError: A mode or choice that is none.
            TimelineError: A point in time that is none, or an end before the start.
        """
        state, resolved = TableState.load(self.storage), self._resolved(options)
        frame = changes_between(self.spark, state, resolved, start, end, mode=mode, on_gap=on_gap)
        if frame is None:
            return self.spark.createDataFrame([], f"{CHANGE_TYPE} string, {COMMITTED} string")
        return frame

    def changelog(
        self, start: str | None = None, end: str | None = None, *, options: RawOptions | None = None
    ) -> DataFrame:
        """What the writes did, in the order of the commits: a table in changelog mode, ``_hoodie_operation`` says what.

        ``I`` is a new row, ``-U`` and ``U`` a row before and after an update, ``D`` a deleted row as it was. Changes are
        told as long as clean keeps their files; what a compaction collapsed before is given as rows, with a warning.
        Overwrites and deletes of whole partitions leave no records.

        Args:
            start: Instant time or moment; changes after it. None for all.
            end: Instant time or moment; changes up to it. None for all.
            options: ``hoodie.*`` read options.

        Raises:
            UnsupportedTableError: The table is not in changelog mode.
        """
        state = TableState.load(self.storage)
        return changes_frame(
            self.spark,
            state,
            self._resolved(options),
            start=None if start is None else query_instant(start),
            end=None if end is None else query_instant(end),
        )

    def timeline(self) -> list[Instant]:
        """Completed and pending instants of the active timeline, newest last."""
        return list(Timeline.load(self.storage, self.config).instants)

    # -- going back ------------------------------------------------------------------------------------------------

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
            comments: Why.
            options: ``hoodie.*`` options of this call.

        Raises:
            TimelineError: There is no such write, or a clean has been at its files.
        """
        saved = None if instant is None else str(instant)
        return self.services(options).savepoint(saved, user=user, comments=comments)

    def savepoints(self) -> list[Savepoint]:
        """Savepoints of the table, oldest first."""
        return self.services().savepoints()

    def delete_savepoint(self, instant: str, *, options: RawOptions | None = None) -> None:
        """Give a saved commit free to clean; raises TimelineError when it is not saved."""
        self.services(options).delete_savepoint(str(instant))

    def restore(self, instant: str, *, options: RawOptions | None = None) -> RestoreResult:
        """Take the table back to a commit; every later write goes for good, with its files.

        Args:
            instant: A completed write, best one with a savepoint.
            options: ``hoodie.*`` options of this call.

        Raises:
            TimelineError: There is no such write, a later one has a savepoint, or a clean has been at its files.
        """
        return self.services(options).restore(str(instant))

    # -- table services ----------------------------------------------------------------------------------------

    def schedule_compaction(self, *, options: RawOptions | None = None) -> CompactionResult:
        """Plan a compaction of the slices that have logs; ``instant`` of the result is None when none has.

        Raises:
            ConfigError: A copy-on-write table, or options that make no sense.
        """
        return self.services(options).schedule_compaction()

    def compact(self, *, instant: str | None = None, options: RawOptions | None = None) -> CompactionResult:
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

    def compactions(self) -> list[PendingCompaction]:
        """Compactions on the active timeline, pending and done, oldest first."""
        return self.services().compactions()

    def clean(self, retain_commits: int | None = None, *, options: RawOptions | None = None) -> CleanResult:
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
    ) -> ArchiveResult:
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

    def publish(self) -> None:
        """Publish the snapshot manifest that plain Spark SQL reads; nothing happens when it is current."""
        self.services().publish()

    # -- what the calls above share ------------------------------------------------------------------------------------------------

    def write(
        self,
        operation: Operation,
        df: DataFrame,
        options: RawOptions | None,
        *,
        update_columns: Sequence[str] | None = None,
        match_condition: str | None = None,
        prepped: bool = False,
        new_schema: bool = False,
        base: TableState | None = None,
    ) -> WriteResult:
        """Run one operation, publish what it wrote and run the services that are due; what every write method calls.

        Args:
            operation: The operation, one of `hudi_engine.write.operation`.
            df: The rows, or the keys to delete.
            options: Options of this call.
            update_columns: As in upsert.
            match_condition: As in upsert.
            prepped: Rows carry ``_hoodie_record_key`` and ``_hoodie_partition_path`` of the table.
            new_schema: The rows' columns become the table's.
            base: The table as it was before ``df`` was made from its rows: what others commit after that to the partitions
                of the rows is a conflict. None when the rows come from elsewhere.
        """
        check_frame(df)
        request = WriteRequest(
            operation,
            df,
            self._resolved(options),
            None if update_columns is None else tuple(update_columns),
            match_condition,
            prepped,
            new_schema,
            base,
        )
        return self._published(write(self.spark, self.storage, request), request.options)

    def _published(self, result: WriteResult, options: Options) -> WriteResult:
        """After a commit: publish it, then run the services that are due; the commit stands whatever happens here."""
        self._services(options).after_commit()
        return result

    def services(self, options: RawOptions | None = None) -> TableServices:
        """Return the table's services, which need no session, with the session's executors as their hands.

        Args:
            options: ``hoodie.*`` options of the calls.
        """
        return self._services(self._resolved(options))

    def _services(self, options: Options) -> TableServices:
        local = str(self.spark.sparkContext.master).startswith("local")
        run_tasks = run_in_threads if local else run_in_spark(self.spark)
        return TableServices(self.storage, options, run_tasks, sidecar_runner(self.spark))

    def _resolved(self, options: RawOptions | None) -> Options:
        given = resolve_options(options)
        return resolve_options({**self._options, **given.raw}) if self._options else given

    def rows_to_change(self) -> tuple[DataFrame, TableState]:
        """Return the table's data columns, to make a batch for it of them, and the ``base`` to give `write` with that."""
        base = TableState.load(self.storage)
        return self._read_state(base, SNAPSHOT, None, None).drop(*META_FIELDS), base

    def _read(self, merge_type: str, as_of: str | None, options: RawOptions | None) -> DataFrame:
        return self._read_state(TableState.load(self.storage), merge_type, as_of, options)

    def _read_state(
        self, state: TableState, merge_type: str, as_of: str | None, options: RawOptions | None
    ) -> DataFrame:
        as_of = None if as_of is None else query_instant(as_of)
        resolved = self._resolved(options)
        if merge_type == SNAPSHOT and as_of is None:
            published = published_snapshot(self.spark, state)
            if published is not None:
                return published
        return snapshot_frame(self.spark, state, resolved, as_of=as_of, merge_type=merge_type)

    def _rows_where(self, base: TableState, condition: str) -> DataFrame:
        from pyspark.errors import PySparkException

        try:
            return self._read_state(base, SNAPSHOT, None, None).where(condition)
        except PySparkException as error:
            raise ConfigError(
                f"the condition {condition!r} cannot be resolved: {str(error).splitlines()[0]}"
            ) from error

    def _check_assignments(self, base: TableState, assignments: Mapping[str, str]) -> None:
        if not isinstance(assignments, Mapping) or not assignments:
            raise ConfigError(
                f"assignments is {assignments!r}; it must be a dictionary such as {{'price': 'price * 2'}}"
            )
        config, schema = base.config, base.data_schema()
        known = set() if schema is None else {name.lower() for name in schema.names}
        fixed = {
            name.lower()
            for name in (*config.record_key_fields, *(field.name for field in config.partition_fields))
        }
        problems = [
            f"column {name!r} is not in the table" for name in assignments if name.lower() not in known
        ]
        problems += [
            f"column {name!r} is part of the key or the partition and cannot be set; delete the rows and insert them anew"
            for name in assignments
            if name.lower() in fixed
        ]
        if problems:
            raise ConfigError("; ".join(problems), tuple(problems))

    def _known_columns(self, df: DataFrame, given: Sequence[str]) -> list[str]:
        check_frame(df)
        names = column_names(given, "update_columns") or []
        known = {name.lower() for name in df.columns}
        missing = [name for name in names if name.lower() not in known]
        if missing:
            raise ConfigError(f"update_columns {missing} are not in the data; it has {df.columns}")
        return names
