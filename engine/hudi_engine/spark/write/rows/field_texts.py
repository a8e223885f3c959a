"""The text of key and partition fields as Spark columns, by the rules of `hudi_engine.format.keygen`.

Where Spark has no exact form of a value's text (floats, doubles, fine decimals, texts of timestamps) that one column goes
through Python. Nothing here depends on ``spark.sql.ansi.enabled`` or the session time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from hudi_engine.format.keygen.generator import KeyGenerator, field_type, resolve_field
from hudi_engine.format.keygen.text import key_text
from hudi_engine.format.schema.casting import cast_array
from hudi_engine.spark.schema.fit import quoted

# Below this scale a decimal never has an exponent in its text, whatever spark.sql.ansi.enabled says.
_PLAIN_DECIMAL_SCALE = 6
TEXT_PREFIX = "__hudi_key_text_"
_SOURCE_PREFIX = "__hudi_key_source_"


@dataclass(frozen=True)
class FieldText:
    """How the text of one field comes about; picklable.

    Args:
        name: The field as the table's settings name it.
        steps: Names from the column down to the field.
        kind: Arrow type of the field in the table.
        dated: Whether it is a ``timestamp`` partition field.
    """

    name: str
    steps: tuple[str, ...]
    kind: pa.DataType
    dated: bool
    generator: KeyGenerator

    def column(self) -> Column:
        """Return the field's values in Spark."""
        return F.col(".".join(map(quoted, self.steps)))

    def convert(self, values: pa.Array) -> pa.Array:
        """Return the text of the values, by the rules of `hudi_engine.format.keygen`."""
        typed = cast_array(values, self.kind, self.name)
        consistent = self.generator.consistent_logical_timestamp
        if self.dated and self.generator.timestamp_format is not None:
            return self.generator.timestamp_format.partition_values(
                typed, self.name, consistent_logical_timestamp=consistent
            )
        return key_text(typed, consistent_logical_timestamp=consistent)


def field_text(generator: KeyGenerator, schema: pa.Schema, name: str, dated: bool) -> FieldText:
    """Return how the text of a key or partition field comes about.

    Args:
        schema: Arrow schema of the rows in the table.
        dated: Whether it is a ``timestamp`` partition field.

    Raises:
        ConfigError, SchemaError: A timestamp setting makes no sense; the field is missing or of a type that cannot be one.
    """
    steps = resolve_field(schema, name)
    found = FieldText(name, steps, field_type(schema, steps), dated, generator)
    # Refuses a type or timestamp setting that cannot serve before Spark runs.
    found.convert(pa.array([], found.kind))
    return found


def with_texts(df: DataFrame, fields: list[FieldText]) -> tuple[DataFrame, list[Column]]:
    """Give every field a column of its text, and the rows the columns these need."""
    texts = [native_text(field) for field in fields]
    foreign = [number for number, text in enumerate(texts) if text is None]
    if foreign:
        df = _with_python_texts(df, [(f"{TEXT_PREFIX}{number}", fields[number]) for number in foreign])
    return df, [F.col(f"{TEXT_PREFIX}{i}") if text is None else text for i, text in enumerate(texts)]


def native_text(field: FieldText) -> Column | None:
    """Return the field's text as a Spark expression, None where Spark has no exact one."""
    if field.dated:
        return None
    kind, column = field.kind, field.column()
    if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.cast("string")
    if pa.types.is_date32(kind):
        return column.cast("string")
    if pa.types.is_decimal(kind) and kind.scale <= _PLAIN_DECIMAL_SCALE:
        return column.cast("string")
    if pa.types.is_binary(kind):
        return F.lower(F.hex(column))
    if pa.types.is_timestamp(kind) and not field.generator.consistent_logical_timestamp:
        raw = {"us": F.unix_micros, "ms": F.unix_millis}.get(kind.unit)
        return None if raw is None else raw(column).cast("string")
    return None


def _with_python_texts(df: DataFrame, wanted: list[tuple[str, FieldText]]) -> DataFrame:
    if hasattr(F, "arrow_udf"):
        for name, field in wanted:
            df = df.withColumn(name, F.arrow_udf(_converter(field), "string")(field.column()))
        return df
    return _with_mapped_texts(df, wanted)


def _converter(field: FieldText) -> Callable[[pa.Array], pa.Array]:
    def convert(values: pa.Array) -> pa.Array:
        return field.convert(values)

    convert.__annotations__ = {"values": pa.Array, "return": pa.Array}
    return convert


def _with_mapped_texts(df: DataFrame, wanted: list[tuple[str, FieldText]]) -> DataFrame:
    """Pass whole rows through Python, as Spark 3.5 has no scalar functions over Arrow."""
    fields = [field for _, field in wanted]
    outputs = [StructField(name, StringType()) for name, _ in wanted]
    target = StructType([*df.schema.fields, *outputs])
    for number, field in enumerate(fields):
        df = df.withColumn(f"{_SOURCE_PREFIX}{number}", field.column())
    count = len(fields)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kept = batch.columns[: batch.num_columns - count]
            sources = batch.columns[batch.num_columns - count :]
            texts = [field.convert(source) for field, source in zip(fields, sources, strict=True)]
            yield pa.RecordBatch.from_arrays([*kept, *texts], names=target.names)

    return df.mapInArrow(run, target)
