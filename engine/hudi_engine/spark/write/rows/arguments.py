"""Arguments of the front, checked before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from hudi_engine.errors import ConfigError
from hudi_engine.format.schema.meta_fields import META_FIELDS, meta_fields
from hudi_engine.format.spelling import no_such_column
from hudi_engine.spark.read.reason import reason_of
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.table.state import TableState


def struct_of(spark: SparkSession, schema: StructType | str) -> StructType:
    """Return columns given as a StructType or as text."""
    if isinstance(schema, StructType):
        return schema
    if not isinstance(schema, str):
        raise ConfigError(f"schema is {schema!r}; give a StructType, or text such as 'id int, name string'")
    with resolving(f"schema is {schema!r}, which is no list of columns"):
        return spark.createDataFrame([], schema).schema


def own_columns(spark: SparkSession, schema: StructType | str) -> pa.Schema:
    """Return the columns that a table is to have, given as its snapshot shows them, with all meta columns, or without any."""
    columns = spark_to_arrow(struct_of(spark, schema))
    if set(META_FIELDS) <= set(columns.names):
        columns = pa.schema([each for each in columns if each.name not in meta_fields(operation=True)])
    return columns


def check_assignments(base: TableState, assignments: Mapping[str, str]) -> None:
    """Refuse assignments that no row could take, all in one error: unknown columns, key and partition columns."""
    if not isinstance(assignments, Mapping) or not assignments:
        raise ConfigError(
            f"assignments is {assignments!r}; it must be a dictionary such as {{'price': 'price * 2'}}"
        )
    config, schema = base.config, base.data_schema()
    columns = [] if schema is None else schema.names
    known = {name.lower() for name in columns}
    fields = (*config.record_key_fields, *(field.name for field in config.partition_fields))
    # a struct is set as a whole, with the field in it
    fixed = {name.partition(".")[0].lower(): name for name in fields}
    problems = [no_such_column(name, columns) for name in assignments if name.lower() not in known]
    for name in assignments:
        field = fixed.get(name.lower())
        if field is not None:
            holds = f", with its field {field!r}," if "." in field else ""
            problems.append(
                f"column {name!r}{holds} is part of the key or the partition and cannot be set; "
                "delete the rows and insert them again"
            )
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))


@contextmanager
def resolving(what: str, advice: str = "") -> Iterator[None]:
    """Turn Spark's refusal of what a caller wrote into ConfigError.

    Args:
        what: What is wrong then; Spark's first line follows.
    """
    try:
        yield
    except PySparkException as error:
        reason = reason_of(error)
        raise ConfigError(f"{what}: {reason}. {advice}" if advice else f"{what}: {reason}") from error
