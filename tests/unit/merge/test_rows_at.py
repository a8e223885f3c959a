"""Rows by their numbers, whether they follow each other or not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.merge.rows_at import rows_at, taken
from hypothesis import given
from hypothesis import strategies as st

ROWS = pa.table({"id": pa.chunked_array([[0, 1, 2], [3, 4]]), "word": ["a", "b", None, "d", "e"]})


@pytest.mark.parametrize(
    "numbers", [[], [2], [0, 1, 2, 3, 4], [1, 2, 3], [0, 2, 4], [3, 1, 2], [1, 1, 3], [4, 3]]
)
def test_rows_come_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    found = rows_at(ROWS, np.array(numbers, np.int64))
    assert found.to_pylist() == [ROWS.to_pylist()[number] for number in numbers]
    assert found.schema == ROWS.schema


@given(st.data())
def test_rows_in_many_pieces_come_in_any_order(data: st.DataObject) -> None:
    pieces = data.draw(
        st.lists(st.lists(st.none() | st.text(max_size=3), max_size=9), min_size=1, max_size=9)
    )
    texts = [text for piece in pieces for text in piece]
    words = pa.chunked_array([pa.array(piece, pa.string()) for piece in pieces])
    rows = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "word": words})
    number = st.integers(0, max(0, len(texts) - 1))
    numbers = data.draw(st.lists(number, max_size=12 if texts else 0))
    found = taken(rows, np.array(numbers, np.int64))
    assert found.to_pydict() == {"id": numbers, "word": [texts[each] for each in numbers]}
    assert found.schema == rows.schema
