"""The types of nested columns once a query's fields have joined those of a table."""

from __future__ import annotations

from hudi_engine.format.schema.any_case import AnyCase
from pyspark.sql import types as T


def with_new_fields(old: T.DataType, new: T.DataType) -> T.DataType:
    """Return a table's type with the fields that structs of a query have besides; everything else stays as it is."""
    if isinstance(old, T.StructType) and isinstance(new, T.StructType):
        found = AnyCase((field.name, field.dataType) for field in new.fields)
        known = {field.name.lower() for field in old.fields}
        kept = [
            T.StructField(field.name, with_new_fields(field.dataType, found.get(field.name, field.dataType)))
            for field in old.fields
        ]
        return T.StructType([*kept, *(field for field in new.fields if field.name.lower() not in known)])
    if isinstance(old, T.ArrayType) and isinstance(new, T.ArrayType):
        return T.ArrayType(with_new_fields(old.elementType, new.elementType))
    if isinstance(old, T.MapType) and isinstance(new, T.MapType):
        return T.MapType(old.keyType, with_new_fields(old.valueType, new.valueType))
    return old


def in_order_of(old: T.DataType, new: T.DataType) -> T.DataType:
    """Return a query's type with the fields of its structs named and ordered as the table's, new ones last."""
    if isinstance(old, T.StructType) and isinstance(new, T.StructType):
        found = {field.name.lower(): field for field in new.fields}
        kept = [
            T.StructField(field.name, in_order_of(field.dataType, found.pop(field.name.lower()).dataType))
            for field in old.fields
            if field.name.lower() in found
        ]
        return T.StructType([*kept, *found.values()])
    if isinstance(old, T.ArrayType) and isinstance(new, T.ArrayType):
        return T.ArrayType(in_order_of(old.elementType, new.elementType))
    if isinstance(old, T.MapType) and isinstance(new, T.MapType):
        return T.MapType(new.keyType, in_order_of(old.valueType, new.valueType))
    return new
