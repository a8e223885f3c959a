"""Values that a statement sets, in the types of the table's columns: they have to fit, and fields of structs go by name."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T
from pyspark.sql.types import DataType, StructField

from hudi_engine.errors import ConfigError
from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.schema.fit import Overflow, fit_value


def set_value(rows: DataFrame, text: str, field: StructField) -> Column:
    """Return SQL of a value as a column of the table.

    Raises:
        ConfigError: A struct has other fields than the table's.
        pyspark.errors.PySparkException: It cannot be resolved.
    """
    value = expression(text)
    given = rows.select(value).schema.fields[0].dataType
    return by_name(value, given, field.dataType, field.name)


def by_name(value: Column, given: DataType, wanted: DataType, path: str) -> Column:
    """Return a value that was written for a column, in its type; one that does not fit fails the query.

    Raises:
        ConfigError: A struct has other fields than the table's.
    """
    problems = field_problems(given, wanted, path)
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))
    return fit_value(value, given, wanted, path, Overflow.FAIL)


def field_problems(given: DataType, wanted: DataType, path: str) -> list[str]:
    """Say which fields of structs a value has that the table lacks, or lacks itself; empty for none."""
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return field_problems(given.elementType, wanted.elementType, f"{path}.element")
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        return field_problems(given.valueType, wanted.valueType, f"{path}.value")
    if not (isinstance(given, T.StructType) and isinstance(wanted, T.StructType)):
        return []
    has, needs = ({field.name.lower(): field for field in struct.fields} for struct in (given, wanted))
    legal = ", ".join(wanted.names)
    advice = f"its fields: {legal}. Fields go by name, as in named_struct('{wanted.names[0]}', ...)"
    found = [
        f"{path} has no field {field.name!r}; {advice}" for name, field in has.items() if name not in needs
    ]
    found += [
        f"{path} lacks the field {field.name!r}, which the table has ({legal}): give it too, null will do"
        for name, field in needs.items()
        if name not in has
    ]
    for name in has.keys() & needs.keys():
        found += field_problems(has[name].dataType, needs[name].dataType, f"{path}.{needs[name].name}")
    return found
