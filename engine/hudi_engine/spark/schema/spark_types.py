"""Spark SQL types and their Arrow form in a Hudi table.

Hudi stores less than Spark has: ``byte`` and ``short`` become ``int``; what Avro cannot express is refused by name.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.types import DataType, StructField, StructType

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.avro import MAX_DIGITS, check_avro_names

# Hudi has no 8 and 16 bit integers and no bounded text: the table holds the wider type.
_TOKEN = re.compile(r"(?i)(?:(?<=[:<,])|^)(?:tinyint|smallint|byte|short|(?:var)?char\(\d+\))(?=[,>]|$)")
_STORED = {"tinyint": "int", "smallint": "int", "byte": "int", "short": "int"}
_SIMPLE: dict[str, pa.DataType] = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int32(),
    "ShortType": pa.int32(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "StringType": pa.string(),
    "VarcharType": pa.string(),
    "CharType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
}
_NEXT_STEP: dict[str, str] = {
    "TimestampNTZType": "write cast(... as timestamp)",
    "DayTimeIntervalType": "cast it to bigint or string",
    "YearMonthIntervalType": "cast it to int or string",
    "CalendarIntervalType": "cast it to string",
    "NullType": "all its values are null, so it has no type; cast it, as in cast(null as string), in pandas astype('string')",
    "VariantType": "cast it to string",
    "TimeType": "cast it to string",
}


def stored_type(dtype: str) -> str:
    """Return the type a Hudi table holds for a Spark type name, also inside structs, arrays and maps."""
    return _TOKEN.sub(lambda found: _STORED.get(found[0].lower(), "string"), dtype.strip())


def spark_to_arrow(schema: StructType) -> pa.Schema:
    """Return Arrow schema that a Hudi table has for a Spark schema."""
    problems: list[str] = []
    fields = [
        pa.field(field.name, _to_arrow(field.dataType, field.name, problems)) for field in schema.fields
    ]
    if problems:
        raise SchemaError("; ".join(problems))
    arrow = pa.schema(fields)
    check_avro_names(arrow)
    return arrow


def arrow_to_spark(
    schema: pa.Schema, *, otherwise: str = "read it with the Arrow reader instead"
) -> StructType:
    """Return Spark schema of an Arrow schema, all fields nullable."""
    return StructType(
        [StructField(field.name, _to_spark(field.type, field.name, otherwise), True) for field in schema]
    )


def _to_arrow(kind: DataType, path: str, problems: list[str]) -> pa.DataType:
    """Return the Arrow type of a Spark type; a refusal is noted and null takes its place, so that one error has all."""
    name = type(kind).__name__
    simple = _SIMPLE.get(name)
    if simple is not None:
        return simple
    part: Any = kind
    if name == "DecimalType":
        return pa.decimal128(part.precision, part.scale)
    if name == "ArrayType":
        return pa.list_(pa.field("element", _to_arrow(part.elementType, f"{path}.element", problems)))
    if name == "MapType":
        if type(part.keyType).__name__ not in ("StringType", "VarcharType", "CharType"):
            problems.append(_refusal(f"{path}.key", part.keyType, "map keys must be strings: cast the keys"))
        return pa.map_(pa.string(), _to_arrow(part.valueType, f"{path}.value", problems))
    if name == "StructType":
        if not part.fields:
            problems.append(_refusal(path, part, "a struct needs at least one field"))
        return pa.struct(
            [pa.field(f.name, _to_arrow(f.dataType, f"{path}.{f.name}", problems)) for f in part.fields]
        )
    problems.append(_refusal(path, kind, _NEXT_STEP.get(name, "cast it to string or binary")))
    return pa.null()


def _refusal(path: str, kind: DataType, next_step: str) -> str:
    return f"column {path!r} has type {kind.simpleString()}, which a Hudi table cannot hold: {next_step}"


def _to_spark(kind: pa.DataType, path: str, otherwise: str) -> DataType:
    """Return the Spark type of an Arrow type; a message names the path of a nested field."""
    simple: dict[pa.DataType, DataType] = {
        pa.bool_(): spark.BooleanType(),
        pa.int8(): spark.ByteType(),
        pa.int32(): spark.IntegerType(),
        pa.int64(): spark.LongType(),
        pa.float32(): spark.FloatType(),
        pa.float64(): spark.DoubleType(),
        pa.string(): spark.StringType(),
        pa.binary(): spark.BinaryType(),
        pa.date32(): spark.DateType(),
        pa.null(): spark.NullType(),
    }
    if kind in simple:
        return simple[kind]
    if pa.types.is_timestamp(kind):
        return spark.TimestampType() if kind.tz is not None else spark.TimestampNTZType()
    if pa.types.is_decimal(kind) and kind.precision <= MAX_DIGITS and kind.scale >= 0:
        return spark.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return spark.ArrayType(_to_spark(kind.value_type, f"{path}.element", otherwise), True)
    if pa.types.is_map(kind):
        return spark.MapType(
            _to_spark(kind.key_type, f"{path}.key", otherwise),
            _to_spark(kind.item_type, f"{path}.value", otherwise),
            True,
        )
    if pa.types.is_struct(kind):
        fields = [
            spark.StructField(child.name, _to_spark(child.type, f"{path}.{child.name}", otherwise), True)
            for child in kind
        ]
        return spark.StructType(fields)
    raise SchemaError(f"column {path!r} has the Arrow type {kind}, which has no Spark type; {otherwise}")
