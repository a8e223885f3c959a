"""Hashes of keys are found where they are, and nowhere else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hudi_engine.spark.lookup.joins import KeyHashes, hashes_of
from hypothesis import given
from hypothesis import strategies as st

EDGES = [0, 1, 2**63, 2**64 - 1, 2**64 - 2]
HASHES = st.lists(
    st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1), st.integers(0, 40)), max_size=60
)


@given(HASHES, HASHES)
def test_places_are_those_of_a_dictionary(held, asked):
    keys = KeyHashes.of(np.array(held, np.uint64))
    by_value = {value: place for place, value in enumerate(sorted(set(held)))}
    found = keys.places(np.array(asked, np.uint64))
    assert found.tolist() == [by_value.get(value, -1) for value in asked]


TEXTS = st.lists(st.tuples(st.text(max_size=20), st.sampled_from(["", "a", "dt=b/x"])), max_size=40)


@given(TEXTS, st.randoms())
def test_a_hash_is_that_of_key_and_partition_wherever_the_row_stands(rows, chance):
    def hashed(pairs):
        keys, partitions = ([pair[part] for pair in pairs] for part in (0, 1))
        return hashes_of(pa.array(keys, pa.string()), pa.array(partitions, pa.string())).tolist()

    told = dict(zip(rows, hashed(rows), strict=True))
    mixed = chance.sample(rows, len(rows))
    assert hashed(mixed) == [told[pair] for pair in mixed]
    assert len(set(told.values())) == len(told)
