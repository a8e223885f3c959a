"""Each of a few buckets gets a task of its own."""

from __future__ import annotations

import pytest
from hudi_engine.spark.write.spread.distributed import _slots, _spark_hash


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 933211791), (1, -559580957), (-1, -1604776387), (-5, 1369497261)]
)
def test_the_hash_is_sparks(value, expected):
    assert _spark_hash(value) == expected


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_every_slot_lands_in_its_own_task(count):
    assert [_spark_hash(slot) % count for slot in _slots(count)] == list(range(count))
