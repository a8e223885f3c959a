"""Structs, arrays and maps of a query brought to those of a table, field by field and by name."""

from __future__ import annotations

from collections.abc import Callable

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.spark.write.rows.set_values import field_problems
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def nested_cast(value: Column, given: T.DataType, wanted: T.DataType, path: str) -> Column:
    """Return a value as the table has it: fields by name, those the table lacks go, numbers only widen.

    Args:
        path: Name of the column or field, for messages.

    Raises:
        DbtRuntimeError: A field is missing, or its values may not fit.
    """
    if given == wanted:
        return value
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        return _struct(value, given, wanted, path)
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        element, kind = given.elementType, wanted.elementType
        return F.transform(value, lambda item: nested_cast(item, element, kind, f"{path}.element"))
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        before, after = given.valueType, wanted.valueType
        return F.transform_values(value, lambda _, item: nested_cast(item, before, after, f"{path}.value"))
    if _fits(given, wanted):
        return value.cast(wanted)
    raise DbtRuntimeError(
        f"{path} is {given.simpleString()} in the model and {wanted.simpleString()} in the table; cast it in the model, "
        "or rebuild the table with --full-refresh"
    )


def refuse_other_fields(given: T.DataType, wanted: T.DataType, path: str) -> None:
    """Refuse a value that a statement gives a column, whose structs have other fields than the table's.

    Raises:
        DbtRuntimeError: Names all fields that the table lacks, and those that the value lacks.
    """
    problems = field_problems(given, wanted, path)
    if problems:
        raise DbtRuntimeError("; ".join(problems))


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


def _struct(value: Column, given: T.StructType, wanted: T.StructType, path: str) -> Column:
    fields = AnyCase((field.name, field) for field in given.fields)
    absent = [field.name for field in wanted.fields if field.name not in fields]
    if absent:
        raise DbtRuntimeError(
            f"{path} lacks the field {', '.join(absent)} that the table has ({wanted.simpleString()}); select it, null will "
            "do, or rebuild the table with --full-refresh"
        )
    made = []
    for field in wanted.fields:
        source = fields[field.name]
        item = nested_cast(
            value.getField(source.name), source.dataType, field.dataType, f"{path}.{field.name}"
        )
        made.append(item.alias(field.name))
    return F.when(value.isNotNull(), F.struct(*made))


def _fits(given: T.DataType, wanted: T.DataType) -> bool:
    """Tell whether every value of a type is one of the other, so that the cast of a nested field loses nothing."""
    checks: tuple[Callable[[], bool], ...] = (
        lambda: isinstance(given, T.AtomicType) and isinstance(wanted, T.StringType),
        lambda: isinstance(given, T.NullType),
        lambda: isinstance(given, _INTEGERS) and isinstance(wanted, (T.FloatType, T.DoubleType)),
        lambda: isinstance(given, T.FloatType) and isinstance(wanted, T.DoubleType),
        lambda: (
            isinstance(given, _INTEGERS)
            and isinstance(wanted, _INTEGERS)
            and _INTEGERS.index(type(given)) <= _INTEGERS.index(type(wanted))
        ),
        lambda: (
            isinstance(given, T.DecimalType)
            and isinstance(wanted, T.DecimalType)
            and wanted.scale >= given.scale
            and wanted.precision - wanted.scale >= given.precision - given.scale
        ),
    )
    return any(check() for check in checks)
