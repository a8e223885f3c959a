"""A change of a table's columns: what is allowed, and a write that brings it in its own commit."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudi_engine.errors import SchemaError, WriteConflictError
from hudi_engine.format.config.enums import TableType, WriteOperation
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.merge.log_scanner import scan_slice
from hudi_engine.format.schema.avro import check_avro_names
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.format.schema.time_units import schema_in_units_of
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, Content
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.table.snapshot.native import refuse_reserved
from hudi_engine.table.state import TableState, commit_schema_text
from hudi_engine.table.txn.metadata_conflicts import same_schema
from hudi_engine.table.write.fit import definition_columns, refuse_false_marks, spelled_columns
from hudi_engine.table.write.metadata_only import Change, commit_without_files
from hudi_engine.table.write.operation import NOTHING, WHOLE_TABLE, write_action
from hudi_engine.table.write.request import WriteRequest
from hudi_engine.table.write.result import WriteResult
from hudi_engine.table.write.stored_rows import check_fixed_columns, check_returning


def columns_to_be(state: TableState, wanted: pa.Schema) -> pa.Schema:
    """Return columns that a table is to get, spelled as it spells those it has, times in their units.

    Files know a column by its name, so that another spelling would be another column to some readers, and the same to others.

    Args:
        wanted: All its data columns to be, spelled in any way.
    """
    check_avro_names(wanted)
    known = state.data_schema()
    return schema_in_units_of(spelled_columns(wanted, known, definition_columns(state.config)), known)


def check_schema_change(state: TableState, new: pa.Schema, replaces: str = NOTHING) -> None:
    """Refuse columns that a table cannot get.

    Args:
        new: All its data columns to be, spelled as the table spells them.
        replaces: Which file groups the write that brings them takes out.
    """
    old, config = state.data_schema(), state.config
    had = frozenset(() if old is None else old.names)
    refuse_reserved(name for name in new.names if name not in had)
    refuse_false_marks(new, old)
    if old is None:
        return
    refuse_new_columns(state, new, replaces)
    known = {name.lower() for name in new.names}
    dropped = sorted(
        name for name in set(definition_columns(config)) if name.partition(".")[0].lower() not in known
    )
    problems = [
        f"column {name!r} is a key, ordering or partition column and cannot be dropped; select it under its name, or rebuild "
        "the table (in dbt with --full-refresh)"
        for name in dropped
    ]
    for field in new:
        place = old.get_field_index(field.name)
        if place >= 0 and not can_change(old.field(place).type, field.type):
            problems.append(
                f"column {field.name!r} cannot change from {spark_name(old.field(place).type)} to {spark_name(field.type)}; only "
                "widening is allowed (int to bigint, float or double, bigint to double, any number to string, decimals to more "
                "digits, new fields at the end of a struct). Cast it to the type it has, or rebuild the table (in dbt with "
                "--full-refresh)"
            )
    if problems:
        raise SchemaError("; ".join(problems))
    check_fixed_columns(config, old, new, replaces)
    check_returning(state, old, new, replaces)


def refuse_new_columns(state: TableState, new: pa.Schema, replaces: str = NOTHING) -> None:
    """Refuse other columns where stored rows do not allow them; nothing is looked at where they are the table's.

    Args:
        replaces: Which file groups the write that brings them takes out.
    """
    old = state.data_schema()
    if old is None or _columns(old) == _columns(new):
        return
    if load_schema_history(state.storage, state.timeline) is None:
        if replaces != WHOLE_TABLE:
            _refuse_over_partial_updates(state, old, new)
        return
    changed = [name for name, _ in _columns(old) ^ _columns(new)]
    raise SchemaError(
        f"the columns of table {state.config.name!r} have ids, since ALTER TABLE changed them with hoodie.schema.on.read.enable; "
        f"this engine writes rows to such a table, but gives it no other columns ({', '.join(sorted(set(changed)))} differ). "
        "Give the batch the table's columns, change them with Apache Hudi's ALTER TABLE, or rebuild the table here (in dbt with "
        "--full-refresh)"
    )


def _refuse_over_partial_updates(state: TableState, old: pa.Schema, new: pa.Schema) -> None:
    """Refuse another type of a column while logs hold updates of some columns.

    Apache Hudi 1.2.0 reads, and compacts, their values in the new type without a conversion: -2 is 4294967294 as a ``bigint``, and
    a new field of a struct has bytes of other memory.
    """
    config, types = state.config, dict(_columns(old))
    changed = [(name, kind) for name, kind in _columns(new) if types.get(name, kind) != kind]
    if (
        not changed
        or config.table_type is TableType.COPY_ON_WRITE
        or not config.table_version.has_partial_blocks
    ):
        return
    context = state.read_context(old, resolve_options(None))
    for each in state.view().latest_slices():
        if each.log_files and scan_slice(context, each).has_partial:
            name, kind = min(changed, key=str)
            raise SchemaError(
                f"column {name!r} cannot change from {spark_name(types[name])} to {spark_name(kind)} now: logs of table "
                f"{config.name!r} hold updates of some columns, which Apache Hudi would read with wrong values afterwards. Compact "
                "the table first (hudi_compact, hudi-engine TABLE compact or HudiTable.compact())"
            )


def _columns(schema: pa.Schema) -> set[tuple[str, pa.DataType]]:
    return {(field.name, field.type) for field in schema}


def with_columns(state: TableState, request: WriteRequest) -> TableState:
    """Return the table as a write finds it, with the columns that the write gives it."""
    if request.columns is None:
        return state
    if request.columns_of is not None:
        check_same_columns(request.columns_of, state)
    columns = columns_to_be(state, request.columns)
    check_schema_change(state, columns, request.operation.replaces)
    return replace(state, columns=columns)


def with_same_columns(before: TableState, now: TableState) -> TableState:
    """Return the table as of the begin of a write that gives it other columns."""
    if before.columns is None:
        return now
    check_same_columns(before, now)
    return replace(now, columns=before.columns)


def check_same_columns(before: TableState, now: TableState) -> None:
    """Refuse to give a table all its columns where another writer has changed them: they would undo what that one did."""
    if not same_schema(before.schema_json(), now.schema_json()):
        raise WriteConflictError(
            f"another writer changed the columns of table {now.config.name!r} while this write was about to: run it again"
        )


def alter_schema(
    storage: Storage, schema: pa.Schema, options: Options, seen: TableState | None = None
) -> WriteResult:
    """Give the table another set of columns in one commit; data files stay as they are.

    Columns may be added (null in old rows), dropped (hidden; adding one of that name again brings its old values back)
    and widened. They are spelled as the table spells them.

    Args:
        seen: The table as the caller has read it, None to read it.
    """
    before = seen or TableState.load(storage)

    def change(state: TableState) -> Change:
        check_same_columns(before, state)
        columns = columns_to_be(state, schema)
        check_schema_change(state, columns)
        text = commit_schema_text(state.avro_schema(columns))

        def metadata(now: TableState) -> CommitMetadata:
            # The columns are all of the table's, so they would take back what another writer has changed of them.
            check_same_columns(before, now)
            check_schema_change(now, columns)
            return CommitMetadata(
                extra_metadata={**now.schema_texts(), "schema": text}, content=Content(0, 0)
            )

        return Change(WriteOperation.ALTER_SCHEMA, write_action(state.config.table_type), metadata)

    return commit_without_files(storage, options, change)
