"""Record key and partition path as Spark columns.

The rules are those of `hudi_engine.keygen`; this is their second form, so that a large batch gets its keys
inside Spark's JVM. Where Spark has no exact form of a value's text (floats, doubles, fine decimals, texts of
timestamps) that one column goes through Python. Nothing here depends on ``spark.sql.ansi.enabled`` or the
session time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.keygen.complex_key import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from hudi_engine.keygen.generator import KeyGenerator, build_key_generator, field_type, resolve_field
from hudi_engine.keygen.partition_path import DEFAULT_PARTITION_VALUE, ESCAPED_CHARACTERS
from hudi_engine.keygen.text import key_text
from hudi_engine.schema.fit import quoted
from hudi_engine.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.table_state import TableState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Below this scale a decimal never has an exponent in its text, whatever spark.sql.ansi.enabled says.
_PLAIN_DECIMAL_SCALE = 6
_TEXT_PREFIX = "__hudi_key_text_"
_SOURCE_PREFIX = "__hudi_key_source_"
_ESCAPABLE = "[\\x01-\\x1f\\x7f\"#%'*/:=?\\\\{\\[\\]^]"


@dataclass(frozen=True)
class _FieldText:
    """How the text of one field comes about; picklable.

    Args:
        name: The field as the table's settings name it.
        steps: Names from the column down to the field.
        kind: Arrow type of the field in the table.
        dated: Whether it is a ``timestamp`` partition field.
        generator: The table's key rules.
    """

    name: str
    steps: tuple[str, ...]
    kind: pa.DataType
    dated: bool
    generator: KeyGenerator

    def column(self) -> Column:
        """Return the field's values in Spark."""
        from pyspark.sql import functions as F

        return F.col(".".join(map(quoted, self.steps)))

    def convert(self, values: pa.Array) -> pa.Array:
        """Return the text of the values, by the rules of `hudi_engine.keygen`."""
        typed = values if values.type == self.kind else pc.cast(values, self.kind, safe=False)
        consistent = self.generator.consistent_logical_timestamp
        if self.dated and self.generator.timestamp_format is not None:
            return self.generator.timestamp_format.partition_values(
                typed, self.name, consistent_logical_timestamp=consistent
            )
        return key_text(typed, consistent_logical_timestamp=consistent)


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
) -> DataFrame:
    """Add ``_hoodie_record_key`` and ``_hoodie_partition_path`` to rows.

    A row without a key gets a null record key, and partition paths are not checked: the caller does that, once for each
    path (`check_new_partition`). A table whose keys the writer generates gets no record key column.

    Args:
        df: The rows.
        config: The table's settings.
        schema: Arrow schema of the rows in the table.
        options: Options of the write.
        complex_single_prefix: See `hudi_engine.keygen.generator.build_key_generator`.

    Raises:
        ConfigError: The table's key settings make no sense.
        SchemaError: A key or partition column is missing or of a type that cannot be one. (A value that is no
            time by the table's timestamp settings fails when Spark runs.)
    """
    generator = build_key_generator(config, options=options, complex_single_prefix=complex_single_prefix)
    keys = [_field(generator, schema, name, False) for name in generator.record_key_fields]
    parts = [
        _field(generator, schema, name, kind == "timestamp") for name, kind in generator.partition_fields
    ]
    names = df.columns
    df, texts = _with_texts(df, [*keys, *parts])
    if keys:
        df = df.withColumn(RECORD_KEY, _record_key(generator, texts[: len(keys)]))
    df = df.withColumn(PARTITION_PATH, _partition_path(generator, texts[len(keys) :]))
    kept = [name for name in names if name not in (RECORD_KEY, PARTITION_PATH)]
    added = [RECORD_KEY, PARTITION_PATH] if keys or RECORD_KEY in names else [PARTITION_PATH]
    return df.select(*map(quoted, [*kept, *added]))


def _field(generator: KeyGenerator, schema: pa.Schema, name: str, dated: bool) -> _FieldText:
    steps = resolve_field(schema, name)
    found = _FieldText(name, steps, field_type(schema, steps), dated, generator)
    # Refuses a type or timestamp setting that cannot serve before Spark runs.
    found.convert(pa.array([], found.kind))
    return found


def _with_texts(df: DataFrame, fields: list[_FieldText]) -> tuple[DataFrame, list[Column]]:
    """Give every field a column of its text, and the rows the columns these need."""
    from pyspark.sql import functions as F

    texts = [_native_text(field) for field in fields]
    foreign = [number for number, text in enumerate(texts) if text is None]
    if foreign:
        df = _with_python_texts(df, [(f"{_TEXT_PREFIX}{number}", fields[number]) for number in foreign])
    return df, [F.col(f"{_TEXT_PREFIX}{i}") if text is None else text for i, text in enumerate(texts)]


def _native_text(field: _FieldText) -> Column | None:
    """Return the field's text as a Spark expression, None where Spark has no exact one."""
    from pyspark.sql import functions as F

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


def _with_python_texts(df: DataFrame, wanted: list[tuple[str, _FieldText]]) -> DataFrame:
    from pyspark.sql import functions as F

    if hasattr(F, "arrow_udf"):
        for name, field in wanted:
            df = df.withColumn(name, F.arrow_udf(_converter(field), "string")(field.column()))
        return df
    return _with_mapped_texts(df, wanted)


def _converter(field: _FieldText) -> Callable[[pa.Array], pa.Array]:
    def convert(values: pa.Array) -> pa.Array:
        return field.convert(values)

    convert.__annotations__ = {"values": pa.Array, "return": pa.Array}
    return convert


def _with_mapped_texts(df: DataFrame, wanted: list[tuple[str, _FieldText]]) -> DataFrame:
    """Pass whole rows through Python, as Spark 3.5 has no scalar functions over Arrow."""
    from pyspark.sql.types import StringType, StructField, StructType

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


def _record_key(generator: KeyGenerator, texts: list[Column]) -> Column:
    from pyspark.sql import functions as F

    if not generator.field_names_in_key:
        return F.when(texts[0] != "", texts[0])
    pieces: list[Column] = []
    for name, text in zip(generator.record_key_fields, texts, strict=True):
        value = F.when(text.isNull(), F.lit(NULL_PLACEHOLDER)).when(text == "", F.lit(EMPTY_PLACEHOLDER))
        pieces += [F.lit(f"{',' if pieces else ''}{name}:"), value.otherwise(text)]
    usable = reduce(lambda one, other: one | other, [F.coalesce(text != "", F.lit(False)) for text in texts])
    return F.when(usable, F.concat(*pieces))


def _partition_path(generator: KeyGenerator, texts: list[Column]) -> Column:
    from pyspark.sql import functions as F

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
    from pyspark.sql import functions as F

    # A fold over the characters keeps the generated code small; so many nested calls would be too large for
    # the JVM to compile, and hardly any row needs one. As text they are one call to Java instead of hundreds.
    codes = [ord(each) for each in sorted(ESCAPED_CHARACTERS, key=lambda character: character != "%")]
    pairs = ", ".join(f"struct(char({code}) plain, '%{code:02X}' code)" for code in codes)
    folded = F.aggregate(
        F.expr(f"array({pairs})"), text, lambda done, pair: F.replace(done, pair["plain"], pair["code"])
    )
    return F.when(text.rlike(_ESCAPABLE), folded).otherwise(text)
