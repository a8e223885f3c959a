"""Values of a batch in the table's types, fields of structs by name: Spark's own cast goes by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def fitted(value: Column, given: DataType, wanted: DataType) -> Column:
    """Return a value in the type of the table's column; fields that it lacks are null.

    Args:
        value: The value.
        given: Its type.
        wanted: The table's type, which has every field of ``given``.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if given == wanted:
        return value
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        fields = {field.name.lower(): field for field in given.fields}
        parts = []
        for field in wanted.fields:
            source = fields.get(field.name.lower())
            part = F.lit(None).cast(field.dataType)
            if source is not None:
                part = fitted(value.getField(source.name), source.dataType, field.dataType)
            parts.append(part.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        element, kind = given.elementType, wanted.elementType
        return value if element == kind else F.transform(value, lambda each: fitted(each, element, kind))
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        before, after = given.valueType, wanted.valueType
        if before == after and given.keyType == wanted.keyType:
            return value
        fit = F.transform_values(value, lambda _, each: fitted(each, before, after))
        return (
            fit
            if given.keyType == wanted.keyType
            else F.transform_keys(fit, lambda key, _: key.cast("string"))
        )
    return value.cast(wanted)


def spelled_type(given: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return a type with the fields of its structs spelled as in another one, matched without regard to case.

    Args:
        given: Type of a batch's column.
        known: Type of the table's column.
    """
    if pa.types.is_struct(given) and pa.types.is_struct(known):
        fields = {field.name.lower(): field for field in known}
        spelled = []
        for field in given:
            same = fields.get(field.name.lower())
            if same is not None:
                field = pa.field(same.name, spelled_type(field.type, same.type))
            spelled.append(field)
        return pa.struct(spelled)
    if pa.types.is_list(given) and pa.types.is_list(known):
        return pa.list_(pa.field("element", spelled_type(given.value_type, known.value_type)))
    if pa.types.is_map(given) and pa.types.is_map(known):
        return pa.map_(given.key_type, spelled_type(given.item_type, known.item_type))
    return given
