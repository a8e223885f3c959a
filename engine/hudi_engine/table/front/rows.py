"""Arrow rows for a write: fitted to the table's columns and given their keys, in the memory of this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.config.enums import SchemaChange
from hudi_engine.format.config.options import Options
from hudi_engine.format.schema.any_case import refuse_same_names, spellings
from hudi_engine.format.schema.casting import cast_array, cast_table
from hudi_engine.format.schema.meta_fields import DELETES, META_FIELDS, OPERATION, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.nested import array_of_parts, array_parts, map_leaf_types, type_parts
from hudi_engine.table.front.arrow import known_types, plain_types
from hudi_engine.table.handles.changelog import check_operations
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.reader import Rows, filtered
from hudi_engine.table.snapshot.derive import RunTasks, make_in_threads
from hudi_engine.table.state import TableState
from hudi_engine.table.write.fit import (
    FitPolicy,
    fit_batch,
    fit_policy,
    marks_to_rename,
    refuse_other_marks,
    spelled_columns,
)
from hudi_engine.table.write.incoming import Incoming
from hudi_engine.table.write.keys import keys_to_look_up, text_may_differ, with_keys
from hudi_engine.table.write.request import Source, WriteRequest, check_columns, names_changes
from hudi_engine.table.write.stored_rows import check_fixed_columns, check_returning

_UTC = pa.timestamp("us", "UTC")
_LEAVES = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    _UTC,
)
_WIDEST = pa.decimal256(76, 37)


class _Uncommitted(TableState):
    """A table as a write would leave it: its timeline is no state that others see."""

    def check_still(self, as_of: str | None = None) -> None:
        """Refuse nothing: files that go meanwhile are a conflict of the write."""


@dataclass(frozen=True)
class ArrowRows(Source):
    """Rows of an Arrow table.

    Args:
        table: The rows as they came.
        from_pandas: Whether they came from pandas, which makes floats of whole numbers among which there is a null.
    """

    table: pa.Table
    from_pandas: bool = False

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns as they came."""
        return list(self.table.column_names)

    @property
    def run_sidecars(self) -> RunTasks:
        """Threads of this process make them."""
        return make_in_threads

    def snapshot(self, state: TableState, options: Options) -> Rows:
        """Return the rows of a state as `hudi_engine.read` does."""
        return filtered(_Uncommitted(state.storage, state.config, state.timeline), options=options.raw)

    def incoming(self, request: WriteRequest, state: TableState, index: IndexKind) -> Incoming:
        """Fit the rows to the table and give them their keys."""
        if request.match_condition is not None or request.changes is not None:
            raise ConfigError(
                "a condition in SQL and the clauses of a merge need Spark, and this table is open without it; use "
                "HudiTable.open(spark, path)"
            )
        known = None if request.new_schema else state.data_schema()
        if request.operation.delete_only:
            rows, columns, index = self._keys(request, state, index)
            schema = columns if known is None else known
        else:
            carry: tuple[str, ...] = (RECORD_KEY, PARTITION_PATH) if request.prepped else ()
            if names_changes(state.config, request):
                carry = (OPERATION,)
            rows, schema = self._fitted(self.table, known, fit_policy(state.config, request.options), carry)
            columns = schema
            check_columns(state.config, self.columns, schema, index)
            check_fixed_columns(state.config, known, schema, request.operation.replaces)
            check_returning(state, known, schema, request.operation.replaces)
            if OPERATION in carry:
                rows = check_operations(rows)
        if request.prepped:
            # The rows know their places: there is nothing left to look up beyond their partitions.
            index = replace(index, is_global=False)
        return Incoming(schema, columns, with_keys(rows, request, state, index), index)

    def _keys(
        self, request: WriteRequest, state: TableState, index: IndexKind
    ) -> tuple[pa.Table, pa.Schema, IndexKind]:
        """Return only the key and partition columns of rows to delete, and their data columns."""
        config = state.config
        if request.prepped:
            return self.table.select([RECORD_KEY, PARTITION_PATH]), pa.schema([]), index
        wanted, index = keys_to_look_up(config, self.columns, index)
        given = spellings(self.columns)
        missing = [name for name in wanted if name not in given]
        if missing:
            raise SchemaError(
                f"delete from {config.name!r} needs the record key: column(s) {missing} are not in the data; it has {self.columns}"
            )
        rows = self.table.select([given[name] for name in wanted]).rename_columns(wanted)
        schema = state.data_schema()
        if schema is None:
            return *self._fitted(rows, None, FitPolicy(change=SchemaChange.ANY)), index
        stored = pa.schema([schema.field(name) for name in schema.names if name in set(wanted)])
        rows, columns = self._fitted(rows, stored, FitPolicy(change=SchemaChange.ANY))
        for field in columns:
            if (place := stored.get_field_index(field.name)) >= 0 and text_may_differ(
                field, stored.field(place).type
            ):
                rows = _held_by(rows, field.name, stored.field(place).type)
        return rows, pa.schema([field for field in rows.schema if field.name in columns.names]), index

    def _fitted(
        self, rows: pa.Table, known: pa.Schema | None, policy: FitPolicy, carry: Sequence[str] = ()
    ) -> tuple[pa.Table, pa.Schema]:
        """Return rows in the columns that the table has after them, with the columns to carry along, and these columns.

        Args:
            known: Data columns of the table so far, None for a table without a schema.
        """
        renamed = marks_to_rename(rows.column_names, known)
        rows = rows.rename_columns([renamed.get(name, name) for name in rows.column_names])
        own = [name for name in rows.column_names if name not in (*META_FIELDS, OPERATION)]
        refuse_same_names(own)
        data = plain_types(
            known_types(rows.select([name for name in own if name != DELETES]), known, self.from_pandas)
        )
        data = _stored_types(data, known)
        schema = fit_batch(data.schema, known, policy)
        fitted = cast_table(_spelled(data, spelled_columns(data.schema, known, policy.fixed)), schema)
        for name in (each for each in (*carry, DELETES) if each in rows.column_names):
            if name == DELETES:
                refuse_other_marks(str(rows.schema.field(name).type))
            fitted = fitted.append_column(name, rows.column(name))
        return fitted, schema


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return columns in the types of a new table; raises SchemaError for a type that none holds."""
    empty = plain_types(known_types(schema.empty_table(), None, False))
    lost = set(schema.names) - set(empty.column_names)
    if lost:
        raise SchemaError(f"column(s) {', '.join(sorted(lost))} have type null; give them a type")
    return _stored_types(empty, None).schema


def _stored_types(table: pa.Table, known: pa.Schema | None) -> pa.Table:
    """Return rows in types that a Hudi table holds: times are moments, of a column without a zone taken as UTC."""
    types = {} if known is None else {field.name.lower(): field.type for field in known}
    columns, problems = {}, []
    for field, column in zip(table.schema, table.columns, strict=True):
        stored = types.get(field.name.lower())
        kind = field.type if field.type == stored else map_leaf_types(field.type, _stored_leaf)
        if kind != stored:
            problems += _refusals(kind, field.name)
        columns[field.name] = column if kind == field.type or problems else column.cast(kind)
    if problems:
        raise SchemaError("; ".join(problems))
    return pa.table(columns)


def _stored_leaf(kind: pa.DataType) -> pa.DataType:
    return _UTC if pa.types.is_timestamp(kind) else kind


def _refusals(kind: pa.DataType, path: str) -> list[str]:
    """Return a message for each part of a type that a Hudi table does not hold."""
    if pa.types.is_map(kind) and not pa.types.is_string(kind.key_type):
        return [f"column {path!r} is {kind}; map keys must be strings: cast the keys"]
    if pa.types.is_struct(kind) and not kind.num_fields:
        return [f"column {path!r} is {kind}; a struct needs at least one field"]
    parts = type_parts(kind)
    if parts:
        return [text for name, part in parts for text in _refusals(part, f"{path}.{name}")]
    if kind in _LEAVES or pa.types.is_decimal128(kind):
        return []
    return [f"column {path!r} has type {kind}, which a Hudi table cannot hold: cast it to string or binary"]


def _spelled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in the same columns by their places, named as in a schema, fields of structs too."""
    columns = [
        column
        if column.type == field.type
        else pa.chunked_array([_in_places(each, field.type) for each in column.chunks], type=field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _in_places(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not type_parts(kind):
        return cast_array(array, kind)
    parts = zip(array_parts(array), type_parts(kind), strict=True)
    return array_of_parts(array, [_in_places(part, inner) for part, (_, inner) in parts], kind)


def _held_by(rows: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    """Return rows whose value a decimal type holds, in that type, and those without one; others are no keys of the table."""
    exact = rows.column(name).cast(_WIDEST)
    whole = pc.less(pc.abs(exact), pa.scalar(10 ** (kind.precision - kind.scale), pa.int64()).cast(_WIDEST))
    held = pc.and_(whole, pc.equal(pc.round(exact, kind.scale), exact))
    rows = rows.filter(pc.fill_null(held, True))
    place = rows.column_names.index(name)
    return rows.set_column(place, pa.field(name, kind), rows.column(name).cast(_WIDEST).cast(kind))
