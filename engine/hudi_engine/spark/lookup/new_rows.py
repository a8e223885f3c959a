"""Spreading the new rows of a partition over tasks, as many as the files they fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.lookup.unit import BUCKET

NEW_ROWS = "i:"
"""What the bucket of new rows begins with, before the partition path."""
_PARTS, _OF = "__hudi_parts", "__hudi_of"


def new_row_buckets(partition: str, parts: int) -> list[str]:
    """Return the buckets that the new rows of a partition are spread over."""
    return [f"{NEW_ROWS}{partition}|{number}" for number in range(parts)]


def spread_new_rows(
    frame: DataFrame, parts: Mapping[str, Sequence[str]], spread: Column | None = None
) -> DataFrame:
    """Give rows whose bucket is that of a partition's new rows one of several; rows of a key get the same.

    Args:
        frame: Rows with their bucket; other buckets stay.
        parts: The buckets by partition path; one that is named several times takes as many shares of the rows. However many
            partitions there are, the plan stays small: they are joined.
        spread: A number of each row that decides where it goes, modulo the shares; None for a hash of the key, and any number
            where a row has none yet.
    """
    columns = frame.columns
    own = [
        (f"{NEW_ROWS}{name}", list(found))
        for name, found in parts.items()
        if list(found) != new_row_buckets(name, 1)
    ]
    target = F.concat(F.col(BUCKET), F.lit("|0"))
    if own:
        targets = frame.sparkSession.createDataFrame(own, f"{_OF} string, {_PARTS} array<string>")
        frame = frame.join(F.broadcast(targets), F.col(BUCKET) == F.col(_OF), "left")
        if spread is None:
            spread = F.monotonically_increasing_id()
            if RECORD_KEY in columns:
                # null is the key of rows that get theirs when they are written
                spread = F.when(F.col(RECORD_KEY).isNotNull(), F.xxhash64(RECORD_KEY)).otherwise(spread)
        place = F.pmod(spread.cast("long"), F.size(_PARTS).cast("long")).cast("int")
        target = F.coalesce(F.col(_PARTS)[place], target)
    bucket = F.when(F.col(BUCKET).startswith(NEW_ROWS), target).otherwise(F.col(BUCKET))
    return frame.select(*[bucket.alias(name) if name == BUCKET else f"`{name}`" for name in columns])
