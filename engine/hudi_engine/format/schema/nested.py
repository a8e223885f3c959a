"""One way through nested types: the parts of structs, lists and maps, in Arrow types, in Arrow arrays and in Avro schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TypePair = tuple[str, pa.DataType | None, pa.DataType | None]


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is a list of any form."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def type_parts(kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Return the fields of a struct, the ``element`` of a list, ``key`` and ``value`` of a map; nothing for other types."""
    if pa.types.is_struct(kind):
        return [(field.name, field.type) for field in kind]
    if is_list(kind):
        return [("element", kind.value_type)]
    if pa.types.is_map(kind):
        return [("key", kind.key_type), ("value", kind.item_type)]
    return []


def type_of_parts(kind: pa.DataType, parts: Sequence[pa.DataType]) -> pa.DataType:
    """Return a nested type with other parts; every list becomes a plain one."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, part) for field, part in zip(kind, parts, strict=True)])
    if is_list(kind):
        return pa.list_(pa.field("element", parts[0]))
    return pa.map_(parts[0], parts[1])


def map_leaf_types(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with every type in it that has no parts changed."""
    parts = type_parts(kind)
    if not parts:
        return change(kind)
    return type_of_parts(kind, [map_leaf_types(part, change) for _, part in parts])


def paired_parts(one: pa.DataType, other: pa.DataType) -> list[TypePair] | None:
    """Return the parts of two types of the same form side by side, fields of structs by name.

    Returns:
        Name and both types, in the order of the first one and then what only the second one has, with None for a field that one
        of them lacks; None for types that are not both structs, lists or maps.
    """
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        firsts, seconds = dict(type_parts(one)), dict(type_parts(other))
        return [(name, firsts.get(name), seconds.get(name)) for name in {**firsts, **seconds}]
    if (is_list(one) and is_list(other)) or (pa.types.is_map(one) and pa.types.is_map(other)):
        return [
            (name, first, second) for (name, first), (_, second) in zip(type_parts(one), type_parts(other))
        ]
    return None


def array_parts(array: pa.Array) -> list[pa.Array]:
    """Return the values of the parts of a nested array as `type_parts` names them; of null lists and maps nothing counts."""
    kind = array.type
    if pa.types.is_struct(kind):
        # StructArray.field() keeps no offset of a slice, flatten() does and also applies the parent's nulls.
        children = [array.field(place) for place in range(kind.num_fields)]
        as_stored = not (array.offset or array.null_count) and all(
            len(each) == len(array) for each in children
        )
        return children if as_stored else list(array.flatten())
    if is_list(kind):
        return [array.flatten()]
    return array_parts(_entries(array).flatten()) if pa.types.is_map(kind) else []


def array_of_parts(array: pa.Array, parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Return an array of the rows of a nested one with other values in its parts.

    Args:
        parts: One array a part of ``kind``, each as long as those of `array_parts`.
    """
    mask = pc.is_null(array) if array.null_count else None
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(list(parts), fields=list(kind), mask=mask)
    rows = _entries(array) if pa.types.is_map(kind) else array
    lengths = pc.fill_null(pc.list_value_length(rows), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    if pa.types.is_map(kind):
        build: Callable[..., pa.Array] = pa.MapArray.from_arrays
        return build(offsets, *parts, type=kind, mask=mask)
    return pa.ListArray.from_arrays(offsets, parts[0], type=kind, mask=mask)


def map_leaves(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return an array in which the values that have no parts are changed; it itself where none is."""
    if not type_parts(array.type):
        return change(array)
    old = array_parts(array)
    new = [map_leaves(part, change) for part in old]
    if all(one is other for one, other in zip(new, old, strict=True)):
        return array
    return array_of_parts(array, new, array.type)


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values of a column as one array; one chunk is not copied."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def nested_values(table: pa.Table, steps: Sequence[str]) -> pa.ChunkedArray:
    """Return the values of a column, or of a field inside structs; a field of a null struct is null.

    Args:
        steps: Name of the column, and those of the fields on the way.
    """
    values = table.column(steps[0])
    for step in steps[1:]:
        values = pc.struct_field(values, step)
    return values


def field_type(schema: pa.Schema, steps: Sequence[str]) -> pa.DataType:
    """Return the type of a column, or of a field inside structs, as `nested_values` names it."""
    kind = schema.field(steps[0]).type
    for step in steps[1:]:
        kind = kind.field(step).type
    return kind


def walk_avro(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each type that an Avro schema defines, at every level; names that refer to one are not followed."""
    if isinstance(schema, list):
        for branch in schema:
            yield from walk_avro(branch)
    elif isinstance(schema, Mapping):
        yield schema
        for part in ("type", "items", "values"):
            yield from walk_avro(schema.get(part))
        for field in schema.get("fields") or ():
            yield from walk_avro(field["type"])


def _entries(array: pa.MapArray) -> pa.ListArray:
    """Return a map as a list of structs of key and value."""
    entry = pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)])
    return array.cast(pa.list_(entry))
