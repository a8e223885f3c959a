"""Keys that are the same as others, found at once or, where memory is limited, part by part."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.format.merge import key_sets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KEYS = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=20)
ONE_AT_A_TIME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["without a limit", "with a limit"], autouse=True)
def _memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = None if request.param == "without a limit" else 2**30
    monkeypatch.setattr(key_sets, "memory_limit", lambda: limit)
    monkeypatch.setattr(key_sets, "AT_ONCE", 3)


@ONE_AT_A_TIME
@given(st.lists(KEYS, max_size=4), st.booleans())
def test_keys_are_distinct_when_none_comes_twice(pieces: list[list[str]], with_null: bool) -> None:
    keys = [key for piece in pieces for key in piece] + ([None] if with_null else [])
    chunks = [pa.array(piece, pa.string()) for piece in [*pieces, [None] * with_null]]
    distinct = len(set(keys)) == len(keys)
    assert key_sets.are_distinct(pa.chunked_array(chunks, pa.string())) == distinct
    assert key_sets.are_distinct(pa.array(keys, pa.string())) == distinct


def test_two_keys_that_are_null_are_the_same() -> None:
    assert not key_sets.are_distinct(pa.array([None, "a", "b", "c", None], pa.string()))


@ONE_AT_A_TIME
@given(KEYS, st.lists(st.none() | st.sampled_from("abcdef"), max_size=20))
def test_a_key_has_the_place_where_it_first_is_among_others(
    keys: list[str], others: list[str | None]
) -> None:
    found = key_sets.places_in(pa.array(keys, pa.string()), pa.array(others, pa.string()))
    assert found.type == pa.int32()
    assert found.to_pylist() == [others.index(key) if key in others else None for key in keys]
