"""Rows by their numbers, whether they follow each other or not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.merge.rows_at import rows_at

ROWS = pa.table({"id": pa.chunked_array([[0, 1, 2], [3, 4]]), "word": ["a", "b", None, "d", "e"]})


@pytest.mark.parametrize(
    "numbers", [[], [2], [0, 1, 2, 3, 4], [1, 2, 3], [0, 2, 4], [3, 1, 2], [1, 1, 3], [4, 3]]
)
def test_rows_come_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    found = rows_at(ROWS, np.array(numbers, np.int64))
    assert found.to_pylist() == [ROWS.to_pylist()[number] for number in numbers]
    assert found.schema == ROWS.schema
