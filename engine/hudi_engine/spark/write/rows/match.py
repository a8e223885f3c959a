"""Rows that count as new although their key may be there: the match condition of a MERGE."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hudi_engine.format.config.options import Options
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.spark.write.rows.batch import AlignedBatch
from hudi_engine.spark.write.rows.key_columns import with_keys_of
from hudi_engine.spark.write.rows.sides import Said, Sides
from hudi_engine.table.lookup.unit import INSERT_FLAG
from hudi_engine.table.state import TableState

SOURCE, TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"
_KEY, _PARTITION, _FOUND = "__hudi_key", "__hudi_partition", "__hudi_found"


def flag_unmatched(
    spark: SparkSession,
    state: TableState,
    batch: AlignedBatch,
    condition: str,
    options: Options,
    *,
    everywhere: bool,
) -> AlignedBatch:
    """Add a flag to rows that have no stored row with their key for which ``condition`` holds.

    Args:
        condition: SQL over the aliases DBT_INTERNAL_SOURCE and DBT_INTERNAL_DEST.
        everywhere: Whether keys count in all partitions (global index), not only in the row's own.

    Raises:
        ConfigError: Spark cannot resolve the condition.
    """
    if state.data_schema() is None or not state.timeline.completed_writes:
        return AlignedBatch(batch.frame.withColumn(INSERT_FLAG, F.lit(True)), batch.schema, batch.carried)
    names = batch.schema.names
    source = with_keys_of(state, batch.frame, batch.schema, options)
    source = source.withColumnsRenamed({RECORD_KEY: _KEY, PARTITION_PATH: _PARTITION})
    stored = snapshot_frame(spark, state, options)
    same = f"{SOURCE}.{_KEY} = {TARGET}.{RECORD_KEY}"
    if not everywhere:
        same += f" and {SOURCE}.{_PARTITION} = {TARGET}.{PARTITION_PATH}"
    sides = Sides(SOURCE, TARGET)
    said = Said(None, f"the match condition {condition!r}", partial(expression, condition))
    plain = source.drop(_KEY, _PARTITION).alias(SOURCE)
    with sides.explained(lambda: [said], stored.alias(TARGET), plain):
        target = stored.alias(TARGET).withColumn(_FOUND, F.lit(True))
        joined = source.alias(SOURCE).join(target, F.expr(same) & expression(condition), "left")
        flagged = joined.select(
            *[F.col(f"{SOURCE}.`{name.replace('`', '``')}`") for name in (*names, *batch.marks)],
            F.col(_FOUND).isNull().alias(INSERT_FLAG),
        )
    return AlignedBatch(flagged, batch.schema, batch.carried)
