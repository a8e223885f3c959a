"""A table's rows for programs without Spark: Arrow, pandas, Polars, DuckDB; no JVM."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.base_reader import select_schema
from hudi_engine.format.merge.filters import Filters
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.merge.table_reader import as_its_readers_do
from hudi_engine.format.parallel import run_in_threads
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import RECORD_KEY, meta_fields
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.data_skipping.plan import ReadPlan, plan_read
from hudi_engine.table.data_skipping.predicate import PruningPredicate, pruning_predicate, record_keys_of
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.inspect.files import FileFacts, facts_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import table_storage

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


def read(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    as_of: Moment | None = None,
    options: Mapping[str, object] | None = None,
) -> Rows:
    """Return the rows of a table, for Arrow, pandas, Polars or DuckDB; Spark and a JVM are not needed.

    Partitions and row groups that cannot hold a row are not read, nor are columns that are not selected. Rows of merge-on-read
    tables are merged with their logs first.

    Args:
        path: Base path of the table: a folder or a URI.
        columns: Columns in the wanted order, Hudi's meta columns among the legal ones; None for the table's own.
        filters: Tuples ``(column, operator, value)`` that must all hold, lists of such of which one must, or an expression
            of `pyarrow.compute`. A row without a value passes ``not in`` of values, and ``in`` of values with None among
            them, as with pyarrow, and none of the other operators.
        as_of: Instant, moment such as ``2026-01-01 09:30:00``, comment of a savepoint, or ``latest``: the table as it was then,
            without rows before its first commit.
        options: ``hoodie.*`` read options.

    Raises:
        TableNotFoundError: There is no table.
        ConfigError, SchemaError: Columns or filters that make no sense.
        TimelineError: A clean has deleted files of that time.
        CorruptTableError: Something of the table is damaged, or a file of the newest commit or of an earlier state is lost.
        UnsupportedTableError: A version or feature this engine does not read.
    """
    return filtered(TableState.load(table_storage(os.fspath(path))), columns, filters, as_of, options)


def filtered(
    state: TableState,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    as_of: Moment | None = None,
    options: Mapping[str, object] | None = None,
) -> Rows:
    """Return what `read` does, of a state."""
    resolved = resolve_options(options)
    context = _context(state, resolved, as_of)
    wanted = _wanted(context.schema, columns)
    return Rows(
        state, context, wanted, pruning_predicate(filters, context.schema, state.config, resolved), resolved
    )


def lookup(
    path: str | os.PathLike[str],
    keys: Iterable[Any],
    *,
    columns: Sequence[str] | None = None,
    as_of: Moment | None = None,
    options: Mapping[str, object] | None = None,
) -> Rows:
    """Return the rows of some record keys; keys that the table does not have give none.

    A record index in the table's metadata table names the files that hold them, and no others are opened. Without one, files are
    ruled out by their Bloom filters and key ranges.

    Args:
        path: Base path of the table: a folder or a URI.
        keys: Record keys: texts as in ``_hoodie_record_key``, or values of the key's columns where these are texts or whole
            numbers, for a key of several columns as tuples in the order of ``hoodie.table.recordkey.fields``.
        columns: As `read` takes them.
        as_of: As `read` takes it. The record index shows the newest state alone.
        options: ``hoodie.*`` read options.

    Raises:
        ConfigError: A key that is none, or a table without stored keys. All others as `read` does.
    """
    return looked_up(TableState.load(table_storage(os.fspath(path))), keys, columns, as_of, options)


def looked_up(
    state: TableState,
    keys: Iterable[Any],
    columns: Sequence[str] | None = None,
    as_of: Moment | None = None,
    options: Mapping[str, object] | None = None,
) -> Rows:
    """Return what `lookup` does, of a state."""
    resolved = resolve_options(options)
    context = _context(state, resolved, as_of)
    wanted = _wanted(context.schema, columns)
    if not state.config.populate_meta_fields:
        raise ConfigError(
            f"table {state.config.name!r} keeps no record keys (hoodie.populate.meta.fields is false); read it with a filter on "
            f"its key columns: {', '.join(state.config.record_key_fields) or 'none'}"
        )
    found = record_keys_of(keys, context.schema, state.config, resolved)
    predicate = PruningPredicate(pc.field(RECORD_KEY).isin(found), found, is_lookup=True)
    return Rows(state, context, wanted, predicate, resolved)


@dataclass(frozen=True)
class Rows:
    """Rows of a table; nothing is read before it is needed.

    It can be given to whatever takes Arrow data (``pa.table(rows)``, ``pl.DataFrame(rows)``). The table's files are listed when
    rows or files are first needed; if a clean or a restore may have removed some of them by then, that is a TimelineError.
    """

    _state: TableState
    _context: ReadContext
    _columns: tuple[str, ...]
    _predicate: PruningPredicate
    _options: Options

    @property
    def schema(self) -> pa.Schema:
        """Columns of the result."""
        return select_schema(self._context.schema, self._columns)

    @property
    def full_schema(self) -> pa.Schema:
        """All columns that a filter may name, Hudi's meta columns among them."""
        return self._context.schema

    def files(self) -> list[FileFacts]:
        """Return the files that may hold a row of the result, by partition and file group."""
        return [facts for each in self.slices for facts in facts_of(self._state.storage, each)]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows a file group at a time, so that a table larger than memory can be read."""
        for each in self.slices:
            yield from self.of_slice(each).to_batches()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        tables = run_in_threads(self.of_slice, self.slices)
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a Polars DataFrame; raises ConfigError unless Polars is installed."""
        frame: polars.DataFrame = _optional("polars", "to_polars()").from_arrow(self.to_arrow())
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a DuckDB relation; raises ConfigError unless DuckDB is installed.

        Args:
            connection: Where the relation lives; None for DuckDB's default connection.
        """
        module = _optional("duckdb", "to_duckdb()")
        relation: duckdb.DuckDBPyRelation = (connection or module).from_arrow(self.to_arrow())
        return relation

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows over by Arrow's C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        where = "" if self._predicate.filters is None else f", filters={self._predicate.filters}"
        when = "" if self._context.as_of is None else f", as_of={self._context.as_of!r}"
        return f"hudi_engine.read({self._state.storage.base!r}, columns={list(self._columns)}{where}{when})"

    @cached_property
    def plan(self) -> ReadPlan:
        """Which file slices are read, and what ruled out the others."""
        return plan_read(self._state, self._context, self._predicate, self._options)

    @property
    def slices(self) -> list[FileSlice]:
        """The file slices that may hold a row of the result."""
        return self.plan.slices

    def of_slice(self, file_slice: FileSlice) -> pa.Table:
        """Return the rows of the result in one of `slices`."""
        filters = self._predicate.filters
        keys = self.plan.keys.get((file_slice.partition, file_slice.file_id))
        if keys is not None and filters is not None and self._predicate.is_lookup:
            filters = pc.field(RECORD_KEY).isin(pa.array(keys, pa.string()))  # fewer to compare with
        return read_slice(self._context, file_slice, columns=self._columns, filters=filters)


def _wanted(schema: pa.Schema, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of a result as the table spells them; raises ConfigError or SchemaError."""
    if isinstance(columns, str):
        raise ConfigError(f"columns is {columns!r}; give a list of names, such as [{columns!r}]")
    own = [name for name in schema.names if name not in meta_fields(operation=True)]
    wanted = tuple(own if columns is None else columns)
    if columns is not None and (not wanted or len(set(wanted)) < len(wanted)):
        raise ConfigError(
            f"columns is {list(wanted)}; give at least one name and each once, or None for the table's own"
        )
    exact = spellings(schema.names)
    wanted = tuple(exact.get(str(name), name) for name in wanted)
    select_schema(schema, wanted)
    return wanted


def _context(state: TableState, options: Options, when: Moment | None) -> ReadContext:
    as_of = None if when is None else instant_as_of(state, when)
    state.timeline.check_readable(as_of)
    schema = state.readable_schema(as_of)
    context = state.read_context(pa.schema([]) if schema is None else schema, options, as_of=as_of)
    return as_its_readers_do(context, state.timeline)


def _optional(name: str, call: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"{call} needs the package {name}, which is not installed: pip install {name}"
        ) from error
