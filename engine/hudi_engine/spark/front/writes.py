"""Writing to a table: rows, partitions, the schema."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hudi_engine.errors import ConfigError, RepeatedKeyError
from hudi_engine.format.config.options import Options
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.meta_fields import META_FIELDS, OPERATION
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.front.reads import Reads
from hudi_engine.spark.hive_sync import check_sync, sync_after_commit
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.frames import under_name
from hudi_engine.spark.read.conditions import plan_of_condition
from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import slices_frame
from hudi_engine.spark.write.rows.arguments import check_assignments, own_columns, resolving
from hudi_engine.spark.write.rows.casts import never_older, set_value
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.spark.write.rows.frames import Frame, as_frame
from hudi_engine.spark.write.rows.partial_update_nulls import refuse_nulls, reject_null_overwrite
from hudi_engine.spark.write.rows.replacement import EventWindow, Replacement, outside_rows
from hudi_engine.spark.write.rows.settled import Decided, Keys
from hudi_engine.spark.write.source import FrameRows
from hudi_engine.table.front.handle import RawOptions
from hudi_engine.table.front.writes import TableWrites, known_columns
from hudi_engine.table.state import TableState
from hudi_engine.table.write import operation as operations
from hudi_engine.table.write.define.definition import column_names
from hudi_engine.table.write.define.table_options import for_write
from hudi_engine.table.write.operation import Operation
from hudi_engine.table.write.request import WriteRequest
from hudi_engine.table.write.result import WriteResult
from hudi_engine.table.write.schema_change import alter_schema

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)


class Writes(Reads, TableWrites[Frame]):
    """Writing: rows, partitions, the schema. Conditions are read with `Reads`."""

    def upsert(
        self,
        df: Frame,
        *,
        options: RawOptions | None = None,
        update_columns: Sequence[str] | None = None,
        match_condition: str | None = None,
        batch_id: int | None = None,
    ) -> WriteResult:
        """Update the rows whose key is in the table and insert the others.

        Args:
            df: Rows: a Spark, pandas or Polars DataFrame or an Arrow table; columns the table lacks are added to it.
            options: ``hoodie.*`` options of this call.
            update_columns: Columns of existing rows to replace; None replaces whole rows.
            match_condition: SQL over the aliases DBT_INTERNAL_SOURCE and DBT_INTERNAL_DEST: only stored rows that fulfil it
                are updated, other rows of the batch are inserted, as in SQL MERGE.
            batch_id: Number of the batch, as ``foreachBatch`` gives it, noted in the commit. If the table has this or a later
                batch of ``hoodie.datasource.write.streaming.checkpoint.identifier``, nothing is written: the rows are there.

        Raises:
            InvalidKeyError, SchemaError, PathEscapeError, DataError: Rows that cannot be written; nothing was.
            ConfigError: Options or arguments that make no sense.
            WriteConflictError: Another writer committed to the same file groups first.
            UnsupportedTableError: A table version or feature this engine does not write.
        """
        rows = self._frame(df)
        return self.write(
            operations.UPSERT,
            rows,
            self._of_batch(options, batch_id),
            update_columns=None if update_columns is None else known_columns(rows.columns, update_columns),
            match_condition=match_condition,
        )

    def replace(
        self,
        df: Frame,
        *,
        keys: str | Sequence[str] | None = None,
        where: str | None = None,
        window: EventWindow | None = None,
        partitions: Sequence[str] | None = None,
        options: RawOptions | None = None,
        named: Sequence[str] = (),
    ) -> WriteResult:
        """Delete rows and insert others in one instant; every row of ``df`` is inserted as it is, also two with one key.

        ``partitions``, or one or more of the other arguments, which narrow each other down, choose the rows to delete.
        Without ``keys`` the rows that come have to be among those that the write replaces: writing them again would leave
        them in the table twice.

        Args:
            df: Rows: a Spark, pandas or Polars DataFrame or an Arrow table; columns the table lacks are added to it.
            keys: Columns: rows go whose values in them are those of a row of ``df``. They need not be unique.
            where: SQL over the table's columns.
            window: A window of time.
            partitions: Partition paths, such as ``["dt=2026-01-01"]``, replaced whole also where ``df`` has no row for them.
            options: ``hoodie.*`` options of this call. With ``hoodie.write.num.retries.on.conflict.failures`` a write that
                lost a conflict reads the table again and starts over.
            named: As in delete_where, for ``where``, in which the table is DBT_INTERNAL_DEST otherwise.

        Raises:
            ConfigError: No argument chooses the rows to delete, or it cannot be resolved.
            DataError: Rows of ``df`` that are not among those that the write replaces.
            InvalidKeyError, SchemaError, PathEscapeError: Rows that cannot be written; nothing was.
            WriteConflictError: Another writer changed what this write depends on first.
        """
        parts = tuple(column_names(named, "named") or ())
        by = tuple(column_names(keys, "keys") or ())
        paths = tuple(column_names(partitions, "partitions") or ()) if partitions != [""] else ("",)
        chosen = Replacement(by, where, window)
        rest = chosen != Replacement()
        if rest == bool(paths):
            raise ConfigError(
                "replace() needs to know which rows go: give partitions, or keys, where and window"
                if not rest
                else "partitions are replaced whole; leave keys, where and window out, or name the partitions in where"
            )
        rows = self._frame(df)
        operation = operations.INSERT_OVERWRITE if paths else operations.REPLACE
        request = WriteRequest(
            operation,
            FrameRows(rows),
            self._resolved(options),
            changes=None if paths else replace(chosen, named=parts or chosen.named),
            partitions=paths,
        )
        with outside_rows():
            return self._run(request)

    def merge(
        self,
        df: Frame,
        clauses: MergeClauses,
        *,
        options: RawOptions | None = None,
        batch_id: int | None = None,
    ) -> WriteResult:
        """Update, insert and delete by the clauses of a MERGE, in one instant.

        A row whose key is stored is matched, and never inserted as a second row because a condition keeps it from being
        updated. Of several rows of ``df`` with one key the newest counts.

        Args:
            df: Rows, as in upsert.
            clauses: What becomes of rows that match and of those that do not.
            options: ``hoodie.*`` options of this call, as in replace.
            batch_id: As in upsert.

        Raises:
            ConfigError: A clause that cannot be resolved, or that sets a key column.
            InvalidKeyError, SchemaError, PathEscapeError: Rows that cannot be written; nothing was.
            WriteConflictError: Another writer changed the table first.
        """
        rows = self._frame(df)
        resolved = self._resolved(self._of_batch(options, batch_id))
        return self._run(WriteRequest(operations.UPSERT, FrameRows(rows), resolved, changes=clauses))

    def merge_rows(
        self,
        decide: Callable[[DataFrame], DataFrame],
        *,
        inserts: bool = True,
        test: Callable[[DataFrame, Column], DataFrame] | None = None,
        check: Callable[[DataFrame, DataFrame, bool], DataFrame] | None = None,
        assigns: Sequence[str] | None = None,
        keys: Keys | None = None,
        options: RawOptions | None = None,
    ) -> WriteResult:
        """Update, insert and delete what the caller decides of the table's rows, in one instant.

        Args:
            decide: Makes of the table's rows those that change, see `hudi_engine.spark.write.rows.settled.Decided`.
            inserts: Whether any of these rows may be new.
            test: As in `hudi_engine.spark.write.rows.clauses.MergeClauses`.
            check: Looks at the decided rows once they have keys, see `hudi_engine.spark.write.rows.settled.Decided`.
            assigns: Columns in which a stored row that stays may get another value; None for all.
            keys: Which record keys these rows can have, see `hudi_engine.spark.write.rows.settled.Decided`; None for any.
            options: ``hoodie.*`` options of this call, as in replace.

        Raises:
            InvalidKeyError, PathEscapeError: Rows that cannot be written; nothing was.
            WriteConflictError: Another writer changed the table first.
        """
        struct = self.schema
        if struct is None:
            raise ConfigError(f"table {self.config.name!r} has no columns yet; write rows to it first")
        nothing = self.spark.createDataFrame([], struct)
        changes = Decided(decide, inserts, test, check, None if assigns is None else tuple(assigns), keys)
        rows = FrameRows(nothing)
        return self._run(WriteRequest(operations.UPSERT, rows, self._resolved(options), changes=changes))

    def delete_where(
        self, condition: str, *, options: RawOptions | None = None, named: Sequence[str] = ()
    ) -> WriteResult:
        """Delete the rows that fulfil a SQL condition over the table's columns.

        Args:
            condition: SQL over the table's columns.
            options: ``hoodie.*`` options of this call.
            named: Parts of the table's name in the condition, such as ``["o"]``: a subquery calls a column of the row ``o.id``.
        """
        base, parts = self._before_reading(), tuple(column_names(named, "named") or ())
        rows = self._rows_where(base, condition, parts)
        try:
            return self.write(operations.DELETE, rows, options, prepped=True, base=base)
        except RepeatedKeyError:
            # Files lose rows by key: the others of the key have to be inserted again.
            nothing = rows.drop(*META_FIELDS, OPERATION).limit(0)
            changes = Replacement(where=condition, brings_back=True, named=parts)
            return self._run(
                WriteRequest(operations.REPLACE, FrameRows(nothing), self._resolved(options), changes=changes)
            )

    def update_where(
        self,
        condition: str,
        assignments: Mapping[str, str],
        *,
        options: RawOptions | None = None,
        named: Sequence[str] = (),
        test: Callable[[DataFrame], DataFrame] | None = None,
    ) -> WriteResult:
        """Set columns of the rows that fulfil a SQL condition.

        Args:
            condition: SQL over the table's columns.
            assignments: Column to SQL expression.
            options: ``hoodie.*`` options of this call.
            named: As in delete_where.
            test: Gets the rows as they will be; returns them so that reading one that must not be fails.

        Raises:
            ConfigError: An assignment to a key or partition column, or to one the table does not have; null where that changes
                nothing (partial updates in a merge-on-read table).
            RepeatedKeyError: Other rows have the key of one that fulfils the condition, and would become like it.
            Exception: Spark's, with a sentence, for a row that would stay as it is: one that would become older by the ordering
                field, or null where the table's merge takes that for no value.
        """
        base = self._before_reading()
        check_assignments(base, assignments)
        rows, config = self._rows_where(base, condition, named), for_write(base.config)
        given = AnyCase(assignments.items())
        with resolving(f"the assignments {dict(assignments)!r} cannot be resolved"):
            refuse_nulls(rows, assignments, config)
            new = {
                (name := field.name): reject_null_overwrite(
                    set_value(rows, str(given[name]), field), F.col(quoted(name)), name, config
                )
                for field in rows.schema.fields
                if field.name in given
            }
            fields, spelled = config.ordering_fields, spellings(rows.columns)
            if merge_rule(config).compares and any(name in given for name in fields):
                ordering = [spelled[name] for name in fields]
                stored = [F.col(quoted(name)) for name in ordering]
                set_to = [new.get(name, held) for name, held in zip(ordering, stored, strict=True)]
                new[ordering[0]] = never_older(set_to, stored, ordering)
            updated = rows.withColumns(new)
        updated = updated if test is None else test(updated)
        columns = tuple(assignments)
        return self.write(
            operations.UPSERT, updated, options, update_columns=columns, prepped=True, base=base
        )

    def soft_delete_where(self, condition: str, *, options: RawOptions | None = None) -> WriteResult:
        """Set all columns of the rows that fulfil a SQL condition to null, except key, ordering and partition columns.

        The rows stay, so that whoever reads the table or its changes sees that they were there.

        Args:
            condition: SQL over the table's columns.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: The table has no other columns, the condition cannot be resolved, or null changes nothing (partial
                updates in a merge-on-read table).
        """
        config, schema = self.config, self.schema
        partitions = (field.name for field in config.partition_fields)
        kept = {
            each.split(".")[0].lower()
            for each in (*config.record_key_fields, *config.ordering_fields, *partitions)
        }
        given = [] if schema is None else schema.names
        cleared = [name for name in given if name.lower() not in kept]
        if not cleared or not config.record_key_fields:
            raise ConfigError(
                f"table {config.name!r} has no columns besides key, ordering and partition, or no key, so there is nothing that a "
                "soft delete could clear; remove the rows (delete_where, or DELETE FROM in SQL)"
            )
        return self.update_where(condition, dict.fromkeys(cleared, "null"), options=options)

    def alter_schema(self, schema: StructType | str, *, options: RawOptions | None = None) -> WriteResult:
        """Give the table another set of columns in one commit: added, dropped (hidden) or widened ones.

        Args:
            schema: All columns, also as text (``id int, name string``).
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: ``schema`` is no list of columns.
            SchemaError: A change Hudi refuses, or dropping a key, ordering or partition column.
            WriteConflictError: Another writer changed the columns first.
        """
        resolved = self._resolved(options)
        columns = own_columns(self.spark, schema)
        return self._published(alter_schema(self.storage, columns, resolved, self._held), resolved)

    def with_schema(self, schema: StructType | str) -> Self:
        """Return this table, whose writes give it another set of columns in their own commit.

        What ``alter_schema`` does in a commit before the rows comes with them: both are there, or neither is. Rows are fitted to
        the new columns::

            table.with_schema("id int, name string, city string").upsert(df)

        Args:
            schema: All columns, also as text, as in alter_schema.

        Raises:
            ConfigError: ``schema`` is no list of columns. The writes raise SchemaError for a change that Hudi refuses.
        """
        table = copy.copy(self)
        table._columns = own_columns(self.spark, schema)
        return table

    def write_anew(self, operation: Operation, df: Frame, *, base: TableState | None = None) -> WriteResult:
        """Run one operation that leaves nothing of the table as it was: the rows' columns become the table's.

        Args:
            operation: Bulk insert into an empty table, or the overwrite of a whole one.
            df: All rows of the table.
            base: A state of the table that the write depends on: whatever others commit after it is a conflict.
        """
        rows = FrameRows(as_frame(self.spark, df))
        return self._run(WriteRequest(operation, rows, self._resolved(None), new_schema=True, base=base))

    def _source(self, rows: Frame, _options: Options) -> FrameRows:
        return FrameRows(self._frame(rows))

    def _check_sync(self, options: Options) -> None:
        check_sync(self.spark, self.storage, self.config, options)

    def _sync(self, options: Options, instant: str) -> None:
        sync_after_commit(self.spark, self.storage, options, instant)

    def _frame(self, df: Frame) -> DataFrame:
        """Return rows for this table as a DataFrame; only for those of other libraries the table is looked at."""
        if isinstance(df, DataFrame):
            return df
        schema = self._columns or (self._held or TableState.load(self.storage)).data_schema()
        return as_frame(self.spark, df, schema)

    def _before_reading(self) -> TableState:
        """Return the table that conditions are evaluated on: as of `as_read`, or as it is now."""
        return self._rows_read or TableState.load(self.storage)

    def _rows_where(self, base: TableState, condition: str, named: Sequence[str]) -> DataFrame:
        parts = column_names(named, "named") or ()
        with resolving(f"the condition {condition!r} cannot be resolved"):
            stored = self._stored_where(base, condition, parts)
            return under_name(stored, parts).where(expression(condition))

    def _stored_where(self, base: TableState, condition: str, named: Sequence[str]) -> DataFrame:
        """Return the rows of a state without those of files that, by the metadata table, have none for a condition."""
        if base.config.metadata_partitions:
            parsed = plans.parse_expression(self.spark, condition)
            options = self._resolved(None)
            found = plan_of_condition(self.spark, base, parsed, "".join(named[-1:]), options)
            if found is not None and found[1].skips:
                prepare_session(self.spark)
                return slices_frame(self.spark, base, found[0], found[1].slices)
        return self._snapshot_of(base)
