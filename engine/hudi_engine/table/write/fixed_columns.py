"""Types of key, partition and ordering columns: what stored rows are found, placed and compared by has to stay as it is.

A record key and a folder are the text of values. In a type whose values have another text, no stored row would be found by
its key again, and a partition would have two folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import field_type, resolve_field
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.format.schema.time_units import in_units_of
from hudi_engine.format.timeline.active import newest_first
from hudi_engine.table.state import TableState
from hudi_engine.table.write.operation import NOTHING, WHOLE_TABLE

_Harmless = Callable[[pa.DataType, pa.DataType], bool]
_PLAIN_SCALE = 6
"""Decimals with more digits after the point have a text with an exponent for some readers, and one without for others."""
_ORDERS_ALIKE = {(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())}


def check_fixed_columns(
    config: TableConfig, before: pa.Schema | None, after: pa.Schema, replaces: str = NOTHING
) -> None:
    """Refuse key, partition and ordering columns in a type in which stored values would count as others.

    Of a write that replaces the whole table nothing is left to be found or compared.

    Args:
        before: Its data columns now; None when they do not count.
        replaces: Which file groups the write takes out.

    Raises:
        SchemaError: There are such columns.
    """
    if before is None or replaces == WHOLE_TABLE:
        return
    problems = []
    for name, role, is_harmless, harm in _roles(config):
        old, new = _type_of(before, name), _type_of(after, name)
        if old is None or new is None or old.equals(new) or is_harmless(old, new):
            continue
        problems.append(
            f"column {name!r} is {role} column and cannot change from {spark_name(old)} to {spark_name(new)}: {harm}. "
            f"Cast it to {spark_name(old)}, or rebuild the table (in dbt with --full-refresh)"
        )
    if problems:
        raise SchemaError("; ".join(problems))


def _roles(config: TableConfig) -> Iterator[tuple[str, str, _Harmless, str]]:
    """Return columns with what they are, which changes do no harm, and what the others do."""
    for name in config.record_key_fields:
        yield (
            name,
            "a key",
            _keeps_text,
            "keys would have another text, and stored rows would not be found by theirs",
        )
    for field in config.partition_fields:
        # A formatted time is read from the value, and of a text in another way than of a number.
        harmless = _is_wider_integer if field.kind == "timestamp" else _keeps_text
        yield (
            field.name,
            "a partition",
            harmless,
            "its values would name other folders than those of stored rows",
        )
    for name in config.ordering_fields:
        yield name, "an ordering", _compares_alike, "its values would not compare as those of stored rows do"


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    try:
        return field_type(schema, resolve_field(schema, name))
    except SchemaError:
        return None


def _is_wider_integer(old: pa.DataType, new: pa.DataType) -> bool:
    return bool(pa.types.is_int32(old) and pa.types.is_int64(new))


def _keeps_text(old: pa.DataType, new: pa.DataType) -> bool:
    """Tell whether a value has the text in the new type that it has in the old one, of types that a column may change to."""
    if pa.types.is_string(new):
        plain = pa.types.is_decimal(old) and old.scale <= _PLAIN_SCALE
        return bool(pa.types.is_integer(old) or pa.types.is_date(old) or plain)
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale == new.scale)
    return _is_wider_integer(old, new)


def _compares_alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Tell whether values differ in the new type as they do in the old one, and in the same order."""
    decimals = pa.types.is_decimal(old) and pa.types.is_decimal(new)
    return bool(decimals or (old, new) in _ORDERS_ALIKE)


def check_returning(
    state: TableState, before: pa.Schema | None, after: pa.Schema, replaces: str = NOTHING
) -> None:
    """Refuse a new column whose name older files have in another spelling, or with a type that cannot be read as its own.

    Only a write that adds columns looks back, until the newest one that replaced all rows.

    Args:
        before: Its data columns now; None when they do not count.
        replaces: Which file groups the write takes out; of the whole table nothing is left to be read.

    Raises:
        SchemaError: There is such a column; the message names both spellings or types.
    """
    if before is None or replaces == WHOLE_TABLE:
        return
    added = {field.name.lower(): field for field in after if field.name not in before.names}
    problems = []
    writes = newest_first(state.timeline, attrgetter("requested_time")) if added else ()
    for _, metadata in writes:
        for field in avro_to_arrow(metadata.schema_json) if metadata.schema_json else ():
            wanted = added.get(field.name.lower())
            problem = None if wanted is None else _problem(field, wanted)
            if problem is not None:
                del added[field.name.lower()]
                problems.append(problem)
        if metadata.operation_type == WriteOperation.INSERT_OVERWRITE_TABLE:
            break
    if problems:
        raise SchemaError(f"{'; '.join(problems)}. Give it another name, or rebuild the table")


def _problem(dropped: pa.Field, wanted: pa.Field) -> str | None:
    """Say why a column cannot come back; None where it can."""
    if dropped.name != wanted.name:
        return (
            f"column {wanted.name!r} was dropped as {dropped.name!r}, and files written before have its values under that "
            "spelling, in which it may come back"
        )
    if not can_change(dropped.type, wanted.type):
        return (
            f"column {dropped.name!r} was dropped as {dropped.type} and would come back as {wanted.type}, which files "
            "written before cannot be read as"
        )
    if not in_units_of(wanted.type, dropped.type).equals(wanted.type):
        # files of older Hudi are read by the unit that the table says
        return (
            f"column {dropped.name!r} was dropped with times in another unit, as {dropped.type}, and would come back as "
            f"{wanted.type}, by which the times in files written before could be taken for others"
        )
    return None
