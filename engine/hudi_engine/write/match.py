"""Rows that count as new although their key may be there: the match condition of a MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudi_engine.config.options import Options
from hudi_engine.errors import ConfigError
from hudi_engine.read.spark_read import snapshot_frame
from hudi_engine.read.state import TableState
from hudi_engine.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.write.batch import AlignedBatch
from hudi_engine.write.key_columns import key_columns
from hudi_engine.write.partition_unit import INSERT_FLAG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE, TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"


def flag_unmatched(
    spark: SparkSession, state: TableState, batch: AlignedBatch, condition: str, options: Options
) -> AlignedBatch:
    """Add a flag to rows that have no stored row with their key for which ``condition`` holds.

    Args:
        spark: The session.
        state: The table.
        batch: Incoming rows.
        condition: SQL over the aliases DBT_INTERNAL_SOURCE and DBT_INTERNAL_DEST.
        options: Options of the write.

    Raises:
        ConfigError: Spark cannot resolve the condition.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    if state.data_schema() is None or not state.timeline.completed_writes:
        return AlignedBatch(batch.frame.withColumn(INSERT_FLAG, F.lit(True)), batch.schema, batch.carried)
    names = batch.schema.names
    source = key_columns(
        batch.frame,
        state.config,
        schema=batch.schema,
        options=options,
        complex_single_prefix=state.keys_carry_field_name(),
    )
    source = source.withColumnRenamed(RECORD_KEY, "__key").drop(PARTITION_PATH)
    target = snapshot_frame(spark, state, options).withColumn("__found", F.lit(True))
    try:
        joined = source.alias(SOURCE).join(
            target.alias(TARGET), F.expr(f"{SOURCE}.__key = {TARGET}.{RECORD_KEY} and ({condition})"), "left"
        )
        flagged = joined.select(
            *[F.col(f"{SOURCE}.`{name.replace('`', '``')}`") for name in names],
            F.col("__found").isNull().alias(INSERT_FLAG),
        )
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise ConfigError(
            f"the match condition {condition!r} cannot be resolved: {first}. Use columns of the table as {TARGET}.column and "
            f"of the model as {SOURCE}.column"
        ) from error
    return AlignedBatch(flagged, batch.schema, batch.carried)
