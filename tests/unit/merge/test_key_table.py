"""Keys of one length found by a table of hashes have the places that a search one by one gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.merge import key_sets
from hudi_engine.format.merge.key_sets import KeyTable, length_of_all
from hypothesis import example, given
from hypothesis import strategies as st


def keys_of_length(length: int) -> st.SearchStrategy[list[str]]:
    """Lists of keys that differ in few bytes, so that many of them are the same or share a hash of some words."""
    return st.lists(st.text("ab\0", min_size=length, max_size=length), max_size=60)


def first_places(keys: list[str], others: list[str]) -> list[int | None]:
    return [others.index(key) if key in others else None for key in keys]


@given(st.integers(8, 35).flatmap(lambda length: st.tuples(keys_of_length(length), keys_of_length(length))))
@example((["a" * 8], ["a" * 8, "b" * 8, "a" * 8]))
@example((["x" * 63 + str(n) for n in range(9)], ["x" * 63 + str(n) for n in range(4, 9)]))
def test_a_key_has_the_first_place_where_the_table_holds_it(given_: tuple[list[str], list[str]]) -> None:
    keys, others = given_
    table = KeyTable.of(pa.array(others, pa.string()))
    if not others:
        assert table is None
        return
    assert table is not None
    if keys:
        found = table.places(pa.array(keys, pa.string()))
        assert found is not None
        assert found.type == pa.int32()
        assert found.to_pylist() == first_places(keys, others)


@pytest.mark.parametrize(
    "form",
    [
        "{:032d}",
        "id:{:07d},dt:2026-01-01",
        "{:08d}" + "z" * 40,
        "z" * 40 + "{:08d}",
        "{0:04d}-{0:04d}-x",
        "\u00e9\u4e16{:06d}",
    ],
)
def test_many_keys_of_many_files_are_found(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_sets, "_MANY", 1)
    stored = [form.format(number) for number in range(0, 9000, 3)]
    batch = pa.array([form.format(number) for number in range(1, 9000, 7)] * 2)
    pieces = pa.chunked_array([stored[:1000], [], stored[1000:]], pa.string())
    places = {key: place for place, key in reversed(list(enumerate(batch.to_pylist())))}
    found = key_sets.places_in(pieces, batch)
    assert found.to_pylist() == [places.get(key) for key in stored]
    # A part of a column begins behind the first byte of its texts.
    assert key_sets.places_in(pieces.slice(700, 800), batch.slice(5, 400)).to_pylist() == first_places(
        stored[700:1500], batch.to_pylist()[5:405]
    )


@pytest.mark.parametrize(
    ("stored", "batch"),
    [
        (["12345678", "123456789"], ["12345678", "123456789"]),
        (["12345678", "87654321"], ["12345678", "123456789"]),
        (["1234", "4321"], ["4321", "1234"]),
        (["12345678"], ["12345678", None]),
        (["12345678", "1234567890"], ["12345678", "12345679"]),
        (["123456789", "1234567"], ["12345678", "12345679"]),
    ],
    ids=["lengths differ", "of the batch", "short", "a null", "of the stored", "the same on average"],
)
def test_other_keys_are_found_as_well(
    stored: list[str], batch: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_sets, "_MANY", 1)
    found = key_sets.places_in(pa.array(stored), pa.array(batch))
    assert found.to_pylist() == [batch.index(key) if key in batch else None for key in stored]


def test_keys_that_all_begin_alike_are_told_apart_by_what_follows() -> None:
    random = np.random.default_rng(3)
    keys = [f"{'same' * 6}{number:016x}" for number in random.integers(0, 2**63, 5000)]
    table = KeyTable.of(pa.array(keys))
    assert table is not None
    assert table.places(pa.array(keys)).to_pylist() == list(range(5000))  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.binary(), pa.binary(8)])
def test_only_plain_text_has_one_length(kind: pa.DataType) -> None:
    assert length_of_all(pa.array([b"12345678"]).cast(pa.binary()).cast(kind)) is None
    assert length_of_all(pa.array(["12345678"])) == 8
