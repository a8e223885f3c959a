"""Tables without Spark: rows of Arrow, pandas, Polars and DuckDB in, Arrow out, in this process and without a JVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

import pyarrow as pa

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.filters import Filters
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.changes.read import Wanted, changes_between
from hudi_engine.table.changes.window import span_of
from hudi_engine.table.front.arrow import ArrowStream, is_pandas, to_arrow
from hudi_engine.table.front.handle import RawOptions
from hudi_engine.table.front.operations import TableOperations
from hudi_engine.table.front.rows import ArrowRows, stored_schema
from hudi_engine.table.front.writes import TableWrites, known_columns
from hudi_engine.table.reader import Rows, filtered
from hudi_engine.table.snapshot.native import refuse_reserved
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import recover_swap, table_storage
from hudi_engine.table.write import operation as operations
from hudi_engine.table.write.define.create_table import create_table as make_table
from hudi_engine.table.write.define.definition import TableArguments, check_arguments, defined_table
from hudi_engine.table.write.fit import refuse_false_marks
from hudi_engine.table.write.request import WriteRequest
from hudi_engine.table.write.result import WriteResult
from hudi_engine.table.write.schema_change import alter_schema

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

ArrowData = Union["pandas.DataFrame", ArrowStream]
"""What a write takes as rows."""


class Table(TableWrites[ArrowData], TableOperations):
    """A Hudi table at a path, without Spark; made by `open_table` or `create_table`.

    Every call reads the table again, so several objects, processes and writers, on Spark too, may work on one path. A write
    holds its rows in memory; see ``hoodie.engine.local.batch.bytes``.
    """

    @property
    def schema(self) -> pa.Schema | None:
        """Data columns (without meta columns), None for a table that never had any."""
        return (self._held or TableState.load(self.storage)).data_schema()

    def read(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        as_of: Moment | None = None,
        options: RawOptions | None = None,
    ) -> Rows:
        """Return the rows; arguments and errors as of `hudi_engine.read`."""
        given = options if options is not None else self._options
        return filtered(TableState.load(self.storage), columns, filters, as_of, given)

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        return self.read().to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame."""
        return self.read().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand all rows over by Arrow's C stream interface."""
        return self.read().__arrow_c_stream__(requested_schema)

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
    ) -> pa.Table:
        """Return the rows that changed after ``start`` up to ``end``, with ``_change_type`` and ``_commit_time``.

        Args:
            start: Instant or moment, excluded unless ``include_start``; None or ``earliest`` for all rows as inserts.
            end: Instant or moment, included; None for now.
            mode: ``net`` gives one change per key, ``all`` those of every commit with the rows before updates, ``latest`` the
                rows written that still exist.
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
        state = TableState.load(self.storage)
        wanted = Wanted(mode, on_gap, skip_insert_overwrite=skip_insert_overwrite)
        span = span_of(state, start, end, include_start=include_start)
        return changes_between(state, self._resolved(options), span, wanted)

    def upsert(
        self,
        df: ArrowData,
        *,
        options: RawOptions | None = None,
        update_columns: Sequence[str] | None = None,
        batch_id: int | None = None,
    ) -> WriteResult:
        """Update the rows whose key is in the table and insert the others.

        Args:
            df: Rows: a pandas or Polars DataFrame, an Arrow table or reader, a DuckDB relation, or anything else with
                ``__arrow_c_stream__``; columns the table lacks are added to it.
            options: ``hoodie.*`` options of this call.
            update_columns: Columns of existing rows to replace; None replaces whole rows.
            batch_id: Number of the batch, noted in the commit. If the table has this or a later batch of
                ``hoodie.datasource.write.streaming.checkpoint.identifier``, nothing is written: the rows are there.

        Raises:
            InvalidKeyError, SchemaError, PathEscapeError, DataError: Rows that cannot be written; nothing was.
            ConfigError: Options or arguments that make no sense.
            WriteConflictError: Another writer committed to the same file groups first.
            UnsupportedTableError: A table version or feature this engine does not write.
        """
        resolved = self._resolved(self._of_batch(options, batch_id))
        rows = self._source(df, resolved)
        taken = None if update_columns is None else known_columns(rows.columns, update_columns)
        return self._write(WriteRequest(operations.UPSERT, rows, resolved, taken))

    def delete_where(self, filters: Filters, *, options: RawOptions | None = None) -> WriteResult:
        """Delete the rows that meet a filter.

        Args:
            filters: As `hudi_engine.read` takes them.
            options: ``hoodie.*`` options of this call.

        Raises:
            ConfigError: No filter, or one that makes no sense.
            WriteConflictError: Another writer changed the partitions of these rows meanwhile.
            RepeatedKeyError: Other rows have the key of one that meets the filter, and would go with it.
        """
        if filters is None:
            raise ConfigError(
                "delete_where has no filter; give one, such as [('amount', '>', 28)]. To delete all rows call "
                "insert_overwrite_table with none"
            )
        base = TableState.load(self.storage)
        resolved = self._resolved(options)
        found = filtered(base, (RECORD_KEY, PARTITION_PATH), filters, None, resolved.raw)
        rows = ArrowRows(found.to_arrow())
        return self._write(WriteRequest(operations.DELETE, rows, resolved, prepped=True, base=base))

    def alter_schema(self, schema: pa.Schema, *, options: RawOptions | None = None) -> WriteResult:
        """Give the table another set of columns in one commit: added, dropped (hidden) or widened ones.

        Args:
            schema: All columns: an Arrow schema, or what `pyarrow.schema` takes.
            options: ``hoodie.*`` options of this call.

        Raises:
            SchemaError: A change Hudi refuses, or dropping a key, ordering or partition column.
            WriteConflictError: Another writer changed the columns first.
        """
        resolved = self._resolved(options)
        columns = stored_schema(pa.schema(schema))
        return self._published(alter_schema(self.storage, columns, resolved, self._held), resolved)

    def _source(self, rows: ArrowData, options: Options) -> ArrowRows:
        return ArrowRows(to_arrow(rows, options[EngineOptions.LOCAL_BATCH_BYTES]), is_pandas(rows))

    def _check_sync(self, options: Options) -> None:
        raise ConfigError(
            f"{SyncOptions.ENABLED} is {options[SyncOptions.ENABLED]}, and entries of a Hive metastore are made with Spark; legal "
            "value without it: False. Leave the option out and call HudiTable.open(spark, path).sync_hive() afterwards, or write "
            "with HudiTable"
        )

    def _sync(self, options: Options, instant: str) -> None:
        """Do nothing: a write with sync is refused."""


def open_table(path: str | os.PathLike[str], *, options: RawOptions | None = None) -> Table:
    """Open a table for reads and writes without Spark and a JVM, also one that Apache Hudi wrote.

    Args:
        path: Base path of the table: a folder or a URI.
        options: ``hoodie.*`` defaults of this object's calls.

    Raises:
        TableNotFoundError: There is no table.
        CorruptTableError: Its properties cannot be read.
        UnsupportedTableError: A version or feature this engine does not read.
    """
    resolve_options(options)
    location = public_location(os.fspath(path))
    storage = table_storage(location)
    TableConfig.load(storage)
    return Table(location, storage, options)


def create_table(
    path: str | os.PathLike[str], *, schema: pa.Schema | None = None, **definition: Unpack[TableArguments]
) -> Table:
    """Make an empty table (table version 6), for reads and writes without Spark and a JVM.

    Args:
        path: Base path: absolute, relative or a URI.
        schema: Columns when they are known: an Arrow schema, or what `pyarrow.schema` takes; otherwise the first write brings
            them.
        definition: ``name``, ``record_key``, ``precombine_field``, ``partition_by``, ``table_type`` and ``options`` as of
            `HudiTable.create`; only ``name`` is needed.

    Raises:
        ConfigError: The definition makes no sense; all problems in one message.
        SchemaError: A column of a name that is not free, or of a type that a Hudi table cannot hold.
        TypeError: An argument of another name, or no ``name``.
        TableExistsError: A table, or another folder with files, is there.
    """
    check_arguments(definition, "create_table", "path")
    columns = None if schema is None else stored_schema(pa.schema(schema))
    if columns is not None:
        refuse_reserved(columns.names)
        refuse_false_marks(columns, None)
    config = defined_table(columns, **definition)
    location = public_location(os.fspath(path))
    recover_swap(location)
    storage = open_storage(location)
    make_table(storage, config, definition.get("options"))
    return Table(location, storage, definition.get("options"))
