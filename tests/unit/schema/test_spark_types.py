"""Spark types and their Arrow form; no session is needed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError  # noqa: E402
from hudi_engine.spark.schema.spark_types import arrow_to_spark, spark_to_arrow  # noqa: E402

types = pytest.importorskip("pyspark.sql.types")


def _schema(kind: object) -> object:
    return types.StructType([types.StructField("c", kind)])


def test_every_type_that_hudi_holds_round_trips_with_hudis_narrowings() -> None:
    kinds = {
        types.BooleanType(): types.BooleanType(),
        types.ByteType(): types.IntegerType(),
        types.ShortType(): types.IntegerType(),
        types.IntegerType(): types.IntegerType(),
        types.LongType(): types.LongType(),
        types.FloatType(): types.FloatType(),
        types.DoubleType(): types.DoubleType(),
        types.DecimalType(38, 10): types.DecimalType(38, 10),
        types.StringType(): types.StringType(),
        types.BinaryType(): types.BinaryType(),
        types.DateType(): types.DateType(),
        types.TimestampType(): types.TimestampType(),
        types.ArrayType(types.ByteType()): types.ArrayType(types.IntegerType()),
        types.MapType(types.StringType(), types.ShortType()): types.MapType(
            types.StringType(), types.IntegerType()
        ),
        _schema(types.ByteType()): _schema(types.IntegerType()),
    }
    for given, stored in kinds.items():
        assert arrow_to_spark(spark_to_arrow(_schema(given))) == _schema(stored)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TimestampNTZType", "timestamp_ntz.*write cast\\(... as timestamp\\)"),
        ("DayTimeIntervalType", "interval.*cast it"),
        ("NullType", "void.*cast it"),
        ("VariantType", "variant.*cast it to string"),
        ("TimeType", "time.*cast it to string"),
    ],
)
def test_what_hudi_cannot_hold_is_refused_by_name(name: str, words: str) -> None:
    if not hasattr(types, name):
        pytest.skip(f"this Spark has no {name}")
    with pytest.raises(SchemaError, match=f"'c.element' has type {words}"):
        spark_to_arrow(_schema(types.ArrayType(getattr(types, name)())))


def test_all_problems_come_in_one_message() -> None:
    schema = types.StructType(
        [
            types.StructField("m", types.MapType(types.IntegerType(), types.StringType())),
            types.StructField("s", types.StructType([])),
        ]
    )

    with pytest.raises(SchemaError, match="'m.key'.*strings.*'s'.*at least one field"):
        spark_to_arrow(schema)


def test_an_arrow_type_without_a_spark_type_names_its_column() -> None:
    with pytest.raises(SchemaError, match="'c'.*time64"):
        arrow_to_spark(pa.schema([("c", pa.time64("us"))]))


@pytest.mark.parametrize(
    "wrap", [types.ArrayType, lambda kind: types.StructType([types.StructField("a", kind)])]
)
def test_types_of_too_many_levels_are_refused(wrap: Any) -> None:
    deep = types.IntegerType()
    for _ in range(50):
        deep = wrap(deep)
    assert spark_to_arrow(_schema(deep))
    with pytest.raises(SchemaError, match="'c' nest structs, arrays and maps more than 50 levels deep"):
        spark_to_arrow(_schema(wrap(wrap(deep))))
