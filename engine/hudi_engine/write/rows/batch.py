"""The incoming rows: aligned to the table's schema, and fetched to the driver when they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_engine.config.options import Options
from hudi_engine.errors import SchemaError
from hudi_engine.schema.casting import cast_batch
from hudi_engine.schema.evolution import evolve
from hudi_engine.schema.meta_fields import META_FIELDS, OPERATION
from hudi_engine.schema.spark_types import arrow_to_spark, spark_to_arrow
from hudi_engine.write.rows.fitting import fitted, spelled_type
from hudi_engine.write.rows.source_plan import estimated_bytes, estimated_rows, is_parquet_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNKNOWN_SIZE = 1 << 60
RESERVED_PREFIX = "__hudi_"


@dataclass(frozen=True)
class AlignedBatch:
    """Incoming rows with the table's columns.

    Args:
        frame: The rows; columns are those of ``schema`` in order, then ``carried`` meta columns.
        schema: Data columns of the table after this write.
        carried: Meta columns the caller asked to keep (rows that were read from the table itself).
    """

    frame: DataFrame
    schema: pa.Schema
    carried: tuple[str, ...] = ()


def align(
    frame: DataFrame,
    table_schema: pa.Schema | None,
    options: Options,
    *,
    carry: Sequence[str] = (),
    spelling: Sequence[str] = (),
) -> AlignedBatch:
    """Bring a DataFrame to the table's columns; meta columns it carries along are dropped.

    Args:
        frame: Incoming rows.
        table_schema: Data columns of the table so far, None for a table without a schema.
        options: Options of the write.
        carry: Meta columns to keep.
        spelling: Names as a table without a schema spells them.

    Raises:
        SchemaError: A type or name Hudi cannot hold, two columns that differ by case only, or a change Hudi refuses.
    """
    from pyspark.sql import functions as F

    names = [name for name in frame.columns if name not in META_FIELDS and name != OPERATION]
    _check_unique(names)
    incoming = spark_to_arrow(frame.select(*[F.col(_quoted(name)) for name in names]).schema)
    schema = fitted_schema(incoming, table_schema, options, spelling=spelling)
    kept = tuple(name for name in carry if name in frame.columns)
    return AlignedBatch(fit_frame(frame, names, schema, kept), schema, kept)


def fitted_schema(
    incoming: pa.Schema, table_schema: pa.Schema | None, options: Options, *, spelling: Sequence[str] = ()
) -> pa.Schema:
    """Return the table's data columns after a batch of these columns; arguments and errors as in `align`."""
    if table_schema is None:
        return _table_spelling(incoming, spelling)
    incoming = _table_spelling(incoming, table_schema.names)
    known = {field.name: field.type for field in table_schema}
    spelled = [
        field.with_type(spelled_type(field.type, known.get(field.name, field.type))) for field in incoming
    ]
    allow_missing = options.bool("hoodie.write.set.null.for.missing.columns")
    return evolve(table_schema, pa.schema(spelled), allow_missing=allow_missing)


def fit_frame(frame: DataFrame, names: Sequence[str], schema: pa.Schema, kept: Sequence[str]) -> DataFrame:
    """Return a frame with the columns of ``schema``, null where it has none, and those of ``kept`` after them.

    Args:
        frame: The rows.
        names: Its columns that are data.
        schema: Columns wanted, matched without regard to case.
        kept: Columns that follow as they are.
    """
    from pyspark.sql import functions as F

    given = {name.lower(): name for name in names}
    source_types = {field.name.lower(): field.dataType for field in frame.schema.fields}
    columns = []
    for field in arrow_to_spark(schema).fields:
        name = given.get(field.name.lower())
        if name is None:
            column = F.lit(None).cast(field.dataType)
        else:
            column = fitted(F.col(_quoted(name)), source_types[name.lower()], field.dataType)
        columns.append(column.alias(field.name))
    return frame.select(*columns, *[F.col(_quoted(name)) for name in kept])


def select_columns(frame: DataFrame, names: Sequence[str], what: str) -> DataFrame:
    """Pick columns by name without regard to case; raises SchemaError naming what is missing."""
    from pyspark.sql import functions as F

    given = {name.lower(): name for name in frame.columns}
    missing = [name for name in names if name.lower() not in given]
    if missing:
        raise SchemaError(f"{what}: column(s) {missing} are not in the data; it has {frame.columns}")
    return frame.select(*[F.col(_quoted(given[name.lower()])).alias(name) for name in names])


def fetch_small(batch: AlignedBatch, options: Options) -> pa.Table | None:
    """Return the rows as an Arrow table when they are within the small-batch limits, else None; one Spark job at most."""
    rows_limit = options.int("hoodie.engine.small.batch.rows")
    bytes_limit = options.int("hoodie.engine.small.batch.bytes")
    estimate = estimated_bytes(batch.frame)
    if rows_limit == 0 or (bytes_limit < estimate < UNKNOWN_SIZE):
        return None
    if estimate < UNKNOWN_SIZE and is_parquet_scan(batch.frame) and estimated_rows(batch.frame) > rows_limit:
        return None
    table = to_arrow(batch.frame.limit(rows_limit + 1))
    if table.num_rows > rows_limit:
        return None
    return cast_batch(table, batch.schema)


def to_arrow(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame as an Arrow table (one Spark job)."""
    collected: Any = frame
    batches = collected._collect_as_arrow()
    if batches:
        return pa.Table.from_batches(batches)
    return spark_to_arrow(frame.schema).empty_table()


def _check_unique(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.lower().startswith(RESERVED_PREFIX):
            raise SchemaError(
                f"column {name!r}: names that begin with {RESERVED_PREFIX} are this engine's own; rename it"
            )
        if name.lower() in seen:
            raise SchemaError(
                f"columns {seen[name.lower()]!r} and {name!r} have the same name; rename one before writing"
            )
        seen[name.lower()] = name


def _table_spelling(incoming: pa.Schema, names: Sequence[str]) -> pa.Schema:
    spelled = {name.lower(): name for name in names}
    return pa.schema([field.with_name(spelled.get(field.name.lower(), field.name)) for field in incoming])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
