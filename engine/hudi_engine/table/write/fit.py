"""The columns of a table after a batch, or a refusal; whoever has the rows brings them to these.

Names and fields of structs are matched without regard to case and spelled as the table spells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import SchemaChange
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.evolution import evolve
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.format.schema.nested import paired_parts
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.format.schema.time_units import in_units_of
from hudi_engine.table.snapshot.native import refuse_reserved

DELETE_MARKS = (IS_DELETED, DELETES)
"""Mark a row as deleted in an upsert. A table may have the first as a column; the other is never stored."""


class Missing(Enum):
    """What becomes of columns and fields of the table that a batch lacks."""

    NULL = "null"
    REFUSE = "refuse"


@dataclass(frozen=True)
class FitPolicy:
    """How strictly a batch is fitted.

    Args:
        missing: Columns of the table that the batch lacks.
        fixed: Columns whose type changes only when any change is allowed: keys, ordering and partition columns.
    """

    missing: Missing = Missing.NULL
    change: SchemaChange = SchemaChange.WIDEN
    fixed: tuple[str, ...] = ()


def fit_schema(
    incoming: pa.Schema, table: pa.Schema | None, policy: FitPolicy, *, spelling: Sequence[str] = ()
) -> pa.Schema:
    """Return the table's data columns after a batch of these columns.

    Args:
        table: Data columns of the table, None for a table without a schema.
    """
    spelled = spelled_columns(incoming, table, spelling)
    if table is None:
        return spelled
    merged = evolve(table, spelled, allow_missing=policy.missing is Missing.NULL)
    if policy.change is not SchemaChange.ANY:
        _check_changes(table, merged, policy)
    return merged


def spelled_columns(incoming: pa.Schema, table: pa.Schema | None, spelling: Sequence[str] = ()) -> pa.Schema:
    """Return columns spelled as a table spells them, fields of structs too; new ones as they are.

    Args:
        table: Data columns of the table, None for a table without a schema.
    """
    if table is None:
        return _spelled(incoming, spelling)
    known = {field.name: field.type for field in table}
    return pa.schema(
        [
            field.with_type(spelled_type(field.type, known.get(field.name, field.type)))
            for field in _spelled(incoming, table.names)
        ]
    )


def spelled_type(given: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return a type with the fields of its structs spelled as in another one, matched without regard to case, and its units."""
    if pa.types.is_struct(given) and pa.types.is_struct(known):
        fields = AnyCase((field.name, field) for field in known)
        spelled = []
        for field in given:
            same = fields.get(field.name)
            if same is not None:
                field = pa.field(same.name, spelled_type(field.type, same.type))
            spelled.append(field)
        return pa.struct(spelled)
    if pa.types.is_list(given) and pa.types.is_list(known):
        return pa.list_(pa.field("element", spelled_type(given.value_type, known.value_type)))
    if pa.types.is_map(given) and pa.types.is_map(known):
        return pa.map_(given.key_type, spelled_type(given.item_type, known.item_type))
    return in_units_of(given, known)


def marks_to_rename(names: Sequence[str], known: pa.Schema | None) -> dict[str, str]:
    """Return the delete marks that came in another case, each with the name that Hudi looks for.

    Args:
        known: Data columns of the table; a column that is spelled as the table spells it is the table's.
    """
    taken = set(known.names if known is not None else ())
    return {
        name: name.lower()
        for name in names
        if name.lower() in DELETE_MARKS and name not in DELETE_MARKS and name not in taken
    }


def fit_batch(incoming: pa.Schema, known: pa.Schema | None, policy: FitPolicy) -> pa.Schema:
    """Return the table's data columns after a batch, refusing names that are not free.

    Args:
        incoming: Data columns of the batch, in the types of a table.
        known: Data columns of the table so far, None for a table without a schema.
    """
    refuse_reserved(incoming.names)
    refuse_false_marks(incoming, known)
    return fit_schema(incoming, known, policy, spelling=policy.fixed)


def refuse_other_marks(kind: str) -> None:
    """Refuse a column of delete marks that is of another type than boolean; raises SchemaError."""
    if kind not in ("boolean", "bool"):
        raise SchemaError(
            f"column {DELETES!r} is {kind}; it marks rows that delete and has to be boolean: cast it"
        )


def fit_policy(config: TableConfig, options: Options) -> FitPolicy:
    """Return how strictly a batch is fitted to the table."""
    allows = options[WriteOptions.NULL_FOR_MISSING_COLUMNS]
    return FitPolicy(
        Missing.NULL if allows else Missing.REFUSE,
        options[EngineOptions.SCHEMA_EVOLUTION],
        tuple(definition_columns(config)),
    )


def definition_columns(config: TableConfig) -> list[str]:
    """Return the columns that the table's definition names; its other readers find them in the spelling it has."""
    fields = [*config.record_key_fields, *config.ordering_fields]
    return [*fields, *(field.name for field in config.partition_fields)]


def refuse_false_marks(wanted: pa.Schema, known: pa.Schema | None) -> None:
    """Refuse a new column that looks like the mark of deletes and would be stored as any other value.

    Args:
        known: Data columns that the table has, None for a new one: what it has already stays what Hudi takes it for.
    """
    had = spellings(known.names if known is not None else ()).get(IS_DELETED)
    for field in wanted:
        if field.name.lower() != IS_DELETED or had in (field.name, IS_DELETED):
            continue
        boolean = pa.types.is_boolean(field.type)
        if had is None and not boolean:
            raise SchemaError(
                f"column {field.name!r} is {spark_name(field.type)}; it marks rows that delete and has to be boolean: cast it, or "
                "give it another name"
            )
        if had is None and field.name != IS_DELETED:
            raise SchemaError(
                f"column {field.name!r} marks rows that delete only where it is spelled {IS_DELETED!r}; rename it"
            )
        if had is not None and boolean:
            raise SchemaError(
                f"column {field.name!r} marks rows that delete, but the table has {had!r}, a value like any other, as Hudi looks "
                f"for {IS_DELETED!r} only; mark them with {DELETES!r}, or rebuild the table without that column"
            )


def _check_changes(table: pa.Schema, merged: pa.Schema, policy: FitPolicy) -> None:
    """Refuse changes of types beyond what the option allows; key, ordering and partition columns never change."""
    fixed = {name.partition(".")[0].lower() for name in policy.fixed}
    problems: list[str] = []
    for field in table:
        change = policy.change
        if field.name.lower() in fixed:
            change = SchemaChange.COLUMNS
        for path, old, new in _changed(field.name, field.type, merged.field(field.name).type):
            if change is SchemaChange.WIDEN and not (pa.types.is_string(new) or pa.types.is_binary(new)):
                continue
            role = " and a key, ordering or partition column" if field.name.lower() in fixed else ""
            problems.append(
                f"column {path!r} is {old} in the table{role}, and {new} in the batch: cast it to {old}"
            )
    if problems:
        raise SchemaError(
            "the batch does not fit the table: "
            + "; ".join(problems)
            + f". hoodie.engine.schema.evolution={SchemaChange.ANY.value} lets the table's type change for good"
        )


def _changed(path: str, old: pa.DataType, new: pa.DataType) -> list[tuple[str, pa.DataType, pa.DataType]]:
    """Leaves of a type that another one has in another type."""
    if old.equals(new):
        return []
    pairs = paired_parts(old, new)
    if pairs is None:
        return [(path, old, new)]
    both = [(name, one, other) for name, one, other in pairs if one is not None and other is not None]
    return [change for name, one, other in both for change in _changed(f"{path}.{name}", one, other)]


def _spelled(incoming: pa.Schema, names: Sequence[str]) -> pa.Schema:
    spelled = spellings(names)
    return pa.schema([field.with_name(spelled.get(field.name, field.name)) for field in incoming])
