"""Record key and partition path as Spark columns.

The rules are those of `hudi_engine.format.keygen`; this second form computes the keys of a large batch inside Spark's JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import KeyGenerator, build_key_generator, resolve_field
from hudi_engine.format.keygen.partition_path import DEFAULT_PARTITION_VALUE, ESCAPED_CHARACTERS
from hudi_engine.format.keygen.text import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER, key_text
from hudi_engine.format.schema.casting import cast_array
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.nested import field_type
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.table.state import TableState

_ESCAPABLE = "[\\x01-\\x1f\\x7f\"#%'*/:=?\\\\{\\[\\]^]"


# Up to this scale the text of a decimal never has an exponent, for both values of spark.sql.ansi.enabled.
_PLAIN_DECIMAL_SCALE = 6
TEXT_PREFIX = "__hudi_key_text_"
_SOURCE_PREFIX = "__hudi_key_source_"


def rows_by_partition(
    df: DataFrame,
    config: TableConfig,
    *,
    schema: pa.Schema | None,
    options: Options,
) -> DataFrame:
    """Count rows by partition path.

    They are counted by the values that paths and keys are made of where Spark makes them, so that it makes those for each count
    and not for each row.

    Args:
        schema: Arrow schema of the rows in the table; None for rows that came with their key columns, and to have a path once.

    Returns:
        One row or several for a partition path: ``rows``, ``keyless`` (those of them without a record
        key) and ``_hoodie_partition_path``.
    """
    generator = build_key_generator(config, options=options)
    keys, parts = (None, None)
    if schema is not None:
        keys, parts = (_native_texts(fields) for fields in _fields(generator, schema))
    has_key = F.lit(True)
    if RECORD_KEY in df.columns and config.record_key_fields:
        has_key = _has_key(keys) if keys else F.col(RECORD_KEY).isNotNull()
    measures = (F.count(F.lit(1)).alias("rows"), F.count(F.when(~has_key, 1)).alias("keyless"))
    if not parts:
        return df.groupBy(PARTITION_PATH).agg(*measures)
    names = [f"{TEXT_PREFIX}{number}" for number in range(len(parts))]
    named = [text.alias(name) for text, name in zip(parts, names, strict=True)]
    path = _partition_path(generator, [F.col(name) for name in names])
    return df.groupBy(*named).agg(*measures).withColumn(PARTITION_PATH, path).drop(*names)


def with_keys_of(state: TableState, df: DataFrame, schema: pa.Schema, options: Options) -> DataFrame:
    """Add record key and partition path by the rules of a table, spelled as in the rows that it has; see `with_key_columns`."""
    return with_key_columns(
        df,
        state.config,
        schema=schema,
        options=options,
        complex_single_prefix=state.keys_carry_field_name(),
    )


def with_key_columns(
    df: DataFrame,
    config: TableConfig,
    *,
    schema: pa.Schema,
    options: Options | None = None,
    complex_single_prefix: bool | None = None,
    keyed: bool = True,
) -> DataFrame:
    """Add ``_hoodie_record_key`` and ``_hoodie_partition_path`` to rows.

    A row without a key gets a null record key, and partition paths are not checked: the caller does that, once for each
    path (`check_new_partition`). A table whose keys the writer generates gets no record key column.

    Args:
        keyed: Whether there is to be a record key; without one its fields are checked all the same.
    """
    generator = build_key_generator(config, options=options, complex_single_prefix=complex_single_prefix)
    keys, parts = _fields(generator, schema)
    if not keyed:
        keys = []
    names, given = df.columns, df
    df, texts = with_texts(df, [*keys, *parts])
    is_plain = df is given and not {RECORD_KEY, PARTITION_PATH} & set(names)
    if keys:
        df = df.withColumn(RECORD_KEY, _record_key(generator, texts[: len(keys)]))
    df = df.withColumn(PARTITION_PATH, _partition_path(generator, texts[len(keys) :]))
    if is_plain:
        return df  # Each plan of Spark's is work of milliseconds, however small it is.
    kept = [name for name in names if name not in (RECORD_KEY, PARTITION_PATH)]
    added = [RECORD_KEY, PARTITION_PATH] if keys or RECORD_KEY in names else [PARTITION_PATH]
    return df.select(*map(quoted, [*kept, *added]))


def _fields(generator: KeyGenerator, schema: pa.Schema) -> tuple[list[FieldText], list[FieldText]]:
    """Return the key and the partition fields."""
    keys = [field_text(generator, schema, name, False) for name in generator.record_key_fields]
    parts = [
        field_text(generator, schema, name, kind == "timestamp") for name, kind in generator.partition_fields
    ]
    return keys, parts


def _native_texts(fields: Sequence[FieldText]) -> list[Column] | None:
    """Return the fields' texts as Spark expressions, None where one has none."""
    found = [native_text(field) for field in fields]
    texts = [text for text in found if text is not None]
    return texts if len(texts) == len(found) else None


def _record_key(generator: KeyGenerator, texts: list[Column]) -> Column:
    if not generator.field_names_in_key:
        return F.when(texts[0] != "", texts[0])
    pieces: list[Column] = []
    for name, text in zip(generator.record_key_fields, texts, strict=True):
        value = F.when(text.isNull(), F.lit(NULL_PLACEHOLDER)).when(text == "", F.lit(EMPTY_PLACEHOLDER))
        pieces += [F.lit(f"{',' if pieces else ''}{name}:"), value.otherwise(text)]
    return F.when(_has_key(texts), F.concat(*pieces))


def _has_key(texts: list[Column]) -> Column:
    """Tell whether one of the fields has a text at all."""
    return reduce(lambda one, other: one | other, [F.coalesce(text != "", F.lit(False)) for text in texts])


def _partition_path(generator: KeyGenerator, texts: list[Column]) -> Column:
    if not texts:
        return F.lit("")
    pieces: list[Column] = []
    for (name, _), text in zip(generator.partition_fields, texts, strict=True):
        value = F.when(text != "", _escaped(text) if generator.url_encode else text)
        head = ("/" if pieces else "") + (f"{name}=" if generator.hive_style else "")
        if head:
            pieces.append(F.lit(head))
        pieces.append(value.otherwise(F.lit(DEFAULT_PARTITION_VALUE)))
    return pieces[0] if len(pieces) == 1 else F.concat(*pieces)


def _escaped(text: Column) -> Column:
    # A fold over the characters keeps the generated code small; so many nested calls would be too large for
    # the JVM to compile, and hardly any row needs one. As text they are one call to Java instead of hundreds.
    codes = [ord(each) for each in sorted(ESCAPED_CHARACTERS, key=lambda character: character != "%")]
    pairs = ", ".join(f"struct(char({code}) plain, '%{code:02X}' code)" for code in codes)
    folded = F.aggregate(
        F.expr(f"array({pairs})"), text, lambda done, pair: F.replace(done, pair["plain"], pair["code"])
    )
    return F.when(text.rlike(_ESCAPABLE), folded).otherwise(text)


@dataclass(frozen=True)
class FieldText:
    """How the text of one field comes about; picklable.

    Args:
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
        dated: Whether it is a ``timestamp`` partition field.
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
