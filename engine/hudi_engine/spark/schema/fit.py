"""The columns of a table after a batch, or a refusal; `hudi_engine.spark.write.rows.casts` brings the rows to them.

Names and fields of structs are matched without regard to case and spelled as the table spells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.config.enums import SchemaChange
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.evolution import evolve
from hudi_engine.format.schema.nested import paired_parts
from hudi_engine.format.schema.time_units import in_units_of


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


def quoted(name: str) -> str:
    """Return a column name as Spark's column functions take it whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


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
