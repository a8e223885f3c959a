"""Partitions by a condition on their columns, in Spark's SQL; no file of the table is read."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.partition_path import split_partition_path
from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.snapshot.layout import inferred_columns
from hudi_engine.table.state import TableState

_PATH = "__hudi_partition"


def partitions_where(spark: SparkSession, state: TableState, condition: str) -> list[str]:
    """Return the partition paths that meet a condition in SQL over the partition columns, such as ``day >= '2024-01-01'``.

    Raises:
        ConfigError: The condition cannot be evaluated on partition columns alone, or the paths do not have their values.
    """
    config, schema = state.config, state.data_schema()
    names = [field.name for field in config.partition_fields]
    if not names or schema is None:
        raise ConfigError(
            f"the condition {condition!r} is about partition columns, and table {config.name!r} has none"
        )
    paths = sorted({each.partition for each in state.view().latest_slices()})
    values = {path: _values(config, path) for path in paths}
    inferred = inferred_columns(config, schema, values.values())
    if paths and not inferred:
        raise ConfigError(_missing_values(paths[0], names))
    rows = [(path, *(values[path][name] for name in inferred)) for path in paths]
    if not rows:
        return []
    texts = pa.schema([(_PATH, pa.string()), *((name, pa.string()) for name in inferred)])
    frame = spark.createDataFrame(rows, arrow_to_spark(texts))
    kinds = {field.name: field.dataType for field in arrow_to_spark(schema)}
    typed = frame.select(_PATH, *[F.col(f"`{name}`").cast(kinds[name]).alias(name) for name in inferred])
    try:
        found = typed.where(expression(condition)).select(_PATH).collect()
    except PySparkException as error:
        said = str(error).partition("\n")[0]
        others = [name for name in names if name not in inferred]
        if others and "UNRESOLVED_COLUMN" in said:
            raise ConfigError(
                f"the condition {condition!r} cannot be evaluated: {_missing_values(paths[0], others)}"
            ) from error
        hint = f". The {_missing_values(paths[0], others)}" if others else ""
        raise ConfigError(
            f"the condition {condition!r} cannot be evaluated on the partition columns {', '.join(inferred)}: {said}{hint}"
        ) from error
    return sorted(row[0] for row in found)


def _values(config: TableConfig, path: str) -> dict[str, str | None]:
    """Return the text of each partition column in a path; raises ConfigError where the path does not have them."""
    names = [field.name for field in config.partition_fields]
    values = split_partition_path(path, names, hive_style=config.hive_style, url_encode=config.url_encode)
    if values is None:
        raise ConfigError(_missing_values(path, names))
    return values


def _missing_values(path: str, names: list[str]) -> str:
    return (
        f"partition path {path!r} does not have the values of {', '.join(names)}; name the partitions instead"
    )
