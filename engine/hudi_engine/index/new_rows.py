"""Spreading the new rows of a partition over tasks, as many as the files they fill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hudi_engine.index.lookup.unit import BUCKET
from hudi_engine.schema.meta_fields import RECORD_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEW_ROWS = "i:"
"""What the bucket of new rows begins with, before the partition path."""
_PARTS, _OF = "__hudi_parts", "__hudi_of"


def new_row_buckets(partition: str, parts: int) -> list[str]:
    """Return the buckets that the new rows of a partition are spread over."""
    return [f"{NEW_ROWS}{partition}|{number}" for number in range(parts)]


def spread_new_rows(frame: DataFrame, parts: Mapping[str, int]) -> DataFrame:
    """Give rows whose bucket is that of a partition's new rows one of `new_row_buckets`; rows of a key get the same.

    Args:
        frame: Rows with their bucket; other buckets stay.
        parts: Number of buckets by partition path. However many there are, the plan stays small: they are joined.
    """
    from pyspark.sql import functions as F

    columns = frame.columns
    several = [(f"{NEW_ROWS}{partition}", count) for partition, count in parts.items() if count > 1]
    number = F.lit(0)
    if several:
        sizes = frame.sparkSession.createDataFrame(several, f"{_OF} string, {_PARTS} int")
        frame = frame.join(F.broadcast(sizes), F.col(BUCKET) == F.col(_OF), "left")
        spread = F.xxhash64(RECORD_KEY) if RECORD_KEY in columns else F.monotonically_increasing_id()
        number = F.coalesce(F.pmod(spread, F.col(_PARTS).cast("long")), F.lit(0))
    bucket = F.when(
        F.col(BUCKET).startswith(NEW_ROWS), F.concat(F.col(BUCKET), F.lit("|"), number.cast("string"))
    ).otherwise(F.col(BUCKET))
    return frame.select(*[bucket.alias(name) if name == BUCKET else f"`{name}`" for name in columns])
