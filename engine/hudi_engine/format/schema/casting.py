"""Reading columns as another type than they were stored with: Hudi's promotions, at every level of nesting.

Source: Hudi table format, snapshot read (missing columns are null; int, long, float, double widen; numbers,
dates, decimals and binary become text) and the type changes of schema on read.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.number_text import java_float_text

_UNITS = ("s", "ms", "us", "ns")
_UNIT_NAMES = {"s": "second", "ms": "millisecond", "us": "microsecond"}


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give ``table`` the columns, order and types of ``schema``.

    Args:
        table: Rows as a file holds them; columns are matched by name, those not in ``schema`` are left out.
        schema: Wanted columns. One that ``table`` lacks is filled with nulls.

    Raises:
        SchemaError: A stored type cannot be read as the wanted one.
    """
    if table.schema.equals(schema):
        return table
    positions = {name: index for index, name in reversed(list(enumerate(table.column_names)))}
    columns = []
    for field in schema:
        position = positions.get(field.name)
        if position is None:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
        else:
            columns.append(cast_column(table.column(position), field.type, field.name))
    if not columns:
        return table.select([])
    return pa.Table.from_arrays(columns, schema=schema)


def cast_column(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Cast one column, chunk by chunk.

    Raises:
        SchemaError: There is no cast, or a value does not fit.
    """
    if column.type.equals(kind, check_metadata=True):
        return column
    return pa.chunked_array([cast_array(chunk, kind, name) for chunk in column.chunks], type=kind)


def cast_array(array: pa.Array, kind: pa.DataType, name: str = "") -> pa.Array:
    """Cast one array; nulls stay null, nested values are cast field by field by name.

    Raises:
        SchemaError: There is no cast, or a value does not fit.
    """
    stored = array.type
    if stored.equals(kind, check_metadata=True):
        return array
    if pa.types.is_null(stored):
        return pa.nulls(len(array), kind)
    if pa.types.is_dictionary(stored):
        return cast_array(array.dictionary_decode(), kind, name)
    if pa.types.is_struct(kind) and pa.types.is_struct(stored):
        return _cast_struct(array, kind, name)
    if pa.types.is_list(kind) and _is_any_list(stored):
        return _cast_list(array, kind, name)
    if pa.types.is_map(kind) and pa.types.is_map(stored):
        return _cast_map(array, kind, name)
    try:
        return _cast_plain(array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"column {name!r} is stored as {stored} and cannot be read as {kind}: {str(error)[:200]}. "
            "Change the table schema back, or rewrite the column"
        ) from error


def _cast_plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast values that hold no other values, as Hudi promotes them."""
    stored = array.type
    if pa.types.is_floating(stored) and pa.types.is_string(kind):
        return java_float_text(array)
    if pa.types.is_float32(stored) and pa.types.is_float64(kind):
        # Hudi widens a float through its decimal text, so that 1.1 stays 1.1.
        return array.cast(pa.string()).cast(kind)
    if pa.types.is_integer(stored) and pa.types.is_decimal(kind):
        # Arrow wants room for the widest integer; only the values need to fit.
        return array.cast(pa.decimal256(76, kind.scale)).cast(kind)
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(kind):
        array = _floored(array, kind.unit)
    return array.cast(kind, safe=not _may_lose_digits(stored, kind))


def _floored(array: pa.Array, unit: str) -> pa.Array:
    """Return times that a coarser unit holds: the one before, as in Hudi, where Arrow's cast goes towards 1970."""
    stored = array.type
    if _UNITS.index(stored.unit) <= _UNITS.index(unit):
        return array
    # Without its zone, for which Arrow asks the system's data base of zones.
    plain = array.view(pa.int64()).view(pa.timestamp(stored.unit))
    floored = pc.floor_temporal(plain, unit=_UNIT_NAMES[unit])
    return floored.view(pa.int64()).view(stored)


def _is_any_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _may_lose_digits(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Tell whether Hudi promotes these types although the last digits can change."""
    if pa.types.is_timestamp(stored) or pa.types.is_floating(kind):
        return True
    return bool(pa.types.is_floating(stored) and pa.types.is_decimal(kind))


def _validity(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None


def _cast_struct(array: pa.StructArray, kind: pa.StructType, name: str) -> pa.Array:
    children = []
    for field in kind:
        index = array.type.get_field_index(field.name)
        if index < 0:
            children.append(pa.nulls(len(array), field.type))
        else:
            # StructArray.field() keeps no offset of a slice, flatten() does and also applies
            # the parent's nulls.
            children.append(cast_array(_child(array, index), field.type, f"{name}.{field.name}"))
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=_validity(array))


def _child(array: pa.StructArray, index: int) -> pa.Array:
    return (
        array.field(index)
        if array.offset == 0 and len(array.field(index)) == len(array)
        else array.flatten()[index]
    )


def list_offsets(array: pa.Array) -> pa.Array:
    """Return where the values of each list begin and the last one's end, for lists of which the flattened values are used."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _cast_list(array: pa.Array, kind: pa.ListType, name: str) -> pa.Array:
    values = cast_array(array.flatten(), kind.value_type, f"{name}.element")
    return pa.ListArray.from_arrays(list_offsets(array), values, type=kind, mask=_validity(array))


def _cast_map(array: pa.MapArray, kind: pa.MapType, name: str) -> pa.Array:
    entries = pa.list_(
        pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)])
    )
    pairs = array.cast(entries)
    flat = pairs.flatten()
    keys = cast_array(_child(flat, 0), kind.key_type, f"{name}.key")
    items = cast_array(_child(flat, 1), kind.item_type, f"{name}.value")
    return _map_from(list_offsets(pairs), keys, items, kind, _validity(array))


def with_leaves(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return an array in which the values that hold no others are changed; it itself where none is.

    Args:
        change: Returns the values of one leaf as they are to be, of the same type, or the array it was given.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        old = [_child(array, number) for number in range(kind.num_fields)]
        new = [with_leaves(child, change) for child in old]
        if all(one is other for one, other in zip(new, old, strict=True)):
            return array
        return pa.StructArray.from_arrays(new, fields=list(kind), mask=_validity(array))
    if pa.types.is_list(kind):
        values = array.flatten()
        changed = with_leaves(values, change)
        if changed is values:
            return array
        return pa.ListArray.from_arrays(list_offsets(array), changed, type=kind, mask=_validity(array))
    if pa.types.is_map(kind):
        pairs = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        flat = pairs.flatten()
        parts = [_child(flat, 0), _child(flat, 1)]
        keys, items = (with_leaves(part, change) for part in parts)
        if keys is parts[0] and items is parts[1]:
            return array
        return _map_from(list_offsets(pairs), keys, items, kind, _validity(array))
    return change(array)


def _map_from(
    offsets: pa.Array, keys: pa.Array, items: pa.Array, kind: pa.MapType, mask: pa.Array | None
) -> pa.Array:
    build: Callable[..., pa.Array] = pa.MapArray.from_arrays
    return build(offsets, keys, items, type=kind, mask=mask)


def cast_batch(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return Spark's Arrow form of rows in the table's Arrow types; columns outside ``schema`` follow unchanged."""
    data = cast_table(table.select(schema.names), schema)
    for name in table.column_names:
        if name not in schema.names:
            data = data.append_column(name, table.column(name))
    return data
