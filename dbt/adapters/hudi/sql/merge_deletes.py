"""Rows of the table that several rows of a MERGE's source delete."""

from __future__ import annotations

from hudi_engine.spark.write.rows.settled import ACTION, DELETE
from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import functions as F

KEPT = "__dbt_hudi_kept"
"""Whether some clause keeps the stored row of a row; null where none is stored."""
_NUMBER = "__dbt_hudi_number"


def deleted_once(rows: DataFrame, matched: Column, places: WindowSpec) -> DataFrame:
    """Return rows without further deletes of a stored row that all clauses delete, and whether one of them keeps it."""
    deletes = F.col(ACTION) == DELETE
    rows = rows.withColumn(KEPT, F.max(matched & ~deletes).over(places))
    rows = rows.withColumn(_NUMBER, F.row_number().over(places.orderBy(~matched)))
    return rows.where(F.col(KEPT) | ~deletes | (F.col(_NUMBER) == 1))
