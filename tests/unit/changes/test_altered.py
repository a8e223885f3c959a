"""What is said of columns that are others than those of a reader of changes, planned and read without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.spark.changes.source import ChangeSource
from hudi_engine.table.changes.altered import alterations

from tests.helpers.handmade import HandmadeTable, file_id

POINT = pa.struct([("x", pa.int32()), ("y", pa.int32())])
MADE = pa.struct(
    [("id", pa.string()), ("at", POINT), ("all", pa.list_(POINT)), ("by", pa.map_(pa.string(), POINT))]
)
NEW, WIDE = pa.struct([*POINT, ("z", pa.int32())]), pa.struct([("y", pa.int64()), ("x", pa.int32())])


def changed(**types: pa.DataType) -> pa.DataType:
    return pa.struct([(field.name, types.get(field.name, field.type)) for field in MADE])


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (MADE, []),
        (pa.struct([*reversed([*MADE])]), []),
        (pa.struct([*MADE, ("more", pa.int32())]), ["'more' is new"]),
        (pa.struct([*list(MADE)[1:], ("key", pa.string())]), ["'id' was renamed or dropped", "'key' is new"]),
        (changed(id=pa.int32()), ["'id' was string and is int"]),
        (changed(id=POINT), ["'id' was string and is struct<x:int,y:int>"]),
        (changed(at=NEW), ["'at.z' is new"]),
        (changed(all=pa.list_(NEW)), ["'all.element.z' is new"]),
        (changed(by=pa.map_(pa.string(), WIDE)), ["'by.value.y' was int and is bigint"]),
        (changed(at=pa.struct([("x", pa.int32())])), ["'at.y' was renamed or dropped"]),
    ],
)  # fmt: skip
def test_each_column_and_field_that_is_another_is_named(now: pa.DataType, said: list[str]) -> None:
    assert [*alterations(MADE, now, chosen=False)] == said
    assert [*alterations(MADE, now, chosen=True)] == [each for each in said if "new" not in each]


def test_a_time_is_the_same_in_the_unit_that_spark_has() -> None:
    made, now = (pa.struct([("at", pa.timestamp(unit, "UTC"))]) for unit in ("us", "ms"))
    assert [*alterations(made, now, chosen=False)] == []


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
