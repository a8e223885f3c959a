"""Other values in some columns of a table."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hudi_engine.format.schema.casting import cast_batch, with_values


def test_columns_keep_their_places_and_metadata():
    fields = [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("b", pa.string()),
        pa.field("c", pa.int64()),
    ]
    rows = pa.table([[1, 2], ["x", "y"], [3, 4]], schema=pa.schema(fields, {"of": "rows"}))
    found = with_values(rows, {"b": pa.chunked_array([[5.0, 6.0]])})
    assert found.to_pydict() == {"a": [1, 2], "b": [5.0, 6.0], "c": [3, 4]}
    assert found.schema.equals(rows.schema.set(1, pa.field("b", pa.float64())), check_metadata=True)


@pytest.mark.parametrize("columns", [8000])
def test_the_time_of_many_columns_is_that_of_each(columns):
    rows = pa.table({f"c{number}": pa.chunked_array([[number]]) for number in range(columns)})
    begun = time.thread_time()
    assert with_values(rows, {name: rows.column(0) for name in rows.column_names}).num_columns == columns
    assert cast_batch(rows, rows.schema).num_columns == columns
    # six seconds and more where each column looks at all of them
    assert time.thread_time() - begun < 2
