"""Bringing the rows of a bucket to one task, evenly."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hudi_engine.table.lookup.unit import BUCKET

MAX_EVEN_BUCKETS = 512


def shuffle_by_bucket(frame: DataFrame, buckets: Sequence[str], tasks: int) -> DataFrame:
    """Shuffle so that each bucket is in one task; few buckets get a task each instead of colliding by hash.

    Args:
        frame: Rows with column ``__hudi_bucket``.
        tasks: Tasks wanted when there are many buckets; 0 lets the session's setting decide.
    """
    if not buckets:
        return frame
    if len(buckets) > MAX_EVEN_BUCKETS:
        wanted = tasks or int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
        return frame.repartition(wanted, BUCKET)
    count = len(buckets)
    # One literal: a call of Java for each bucket would take a second where they are many.
    slots = json.dumps(dict(zip(buckets, _slots(count), strict=True)))
    slot = F.from_json(F.lit(slots), "map<string,int>")[F.col(BUCKET)]
    return frame.withColumn("__hudi_slot", slot).repartition(count, "__hudi_slot").drop("__hudi_slot")


def _slots(count: int) -> list[int]:
    """Return integers that Spark's hash partitioning sends to the tasks 0, 1, ... count - 1."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(_spark_hash(candidate) % count, candidate)
        candidate += 1
    return [found[task] for task in range(count)]


def _spark_hash(value: int, seed: int = 42) -> int:
    """Return Spark's hash of one int (Murmur3, 32 bit), signed."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = (seed ^ k) & mask
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & mask
    h ^= h >> 13
    h = h * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
