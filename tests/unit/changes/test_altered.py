"""Readers of changes refuse columns that are others by now; planned and read without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.spark.changes.source import ChangeSource

from tests.helpers.handmade import HandmadeTable, file_id

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int32())])


@pytest.mark.parametrize(
    ("now", "values", "said"),
    [
        ([*SCHEMA, ("extra", pa.int32())], ["b", 2, 7], "'extra' is new"),
        ([("id", pa.string()), ("n", pa.string())], ["b", "007"], "'n' was int and is string"),
        ([("id", pa.string()), ("n", pa.int64())], ["b", 5_000_000_000], "'n' was int and is bigint"),
        ([("id", pa.string())], ["b"], "'n' was renamed or dropped"),
    ],
)
def test_a_reader_of_other_columns_is_refused_until_it_is_made_anew(
    tmp_path: Path, now: list[object], values: list[object], said: str
) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA)
    start = table.commit({"": {file_id(): pa.table([["a"], pa.array([1], pa.int32())], schema=SCHEMA)}})
    source = ChangeSource({"path": str(table.path)})
    stale = source.columns()
    table.schema = pa.schema(now)
    end = table.commit({"": {file_id(): pa.table([[each] for each in values], schema=table.schema)}})
    for begin in (start, ""):
        with pytest.raises(SchemaError, match=f"other columns since the reader was made: {said}; load it"):
            list(source.pieces(begin, end, stale))
        rows = [
            row for piece in source.pieces(begin, end, source.columns()) for row in piece.rows().to_pylist()
        ]
        assert [*values, "insert", end] in [[*row.values()] for row in rows]
