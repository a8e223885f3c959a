"""Base files and log blocks with marks of Spark's calendar of before 3.0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.merge.base_reader import BaseFileRows, opened_base_file
from hudi_engine.format.merge.slice_reader import read_slice
from slices import SliceBuilder, config, instant, with_meta

AT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("id", pa.string()), ("d", pa.date32()), ("t", AT), ("l", pa.list_(pa.date32()))])
JULIAN_DAY = -719_164
"""0001-01-01."""
RECENT = 19_737
MARKS = {
    "org.apache.spark.version": "3.5.0",
    "org.apache.spark.legacyDateTime": "",
    "org.apache.spark.timeZone": "UTC",
}


def rows_of(days: list[int | None], number: int = 1) -> pa.Table:
    """Rows ``a``, ``b`` and so on with the same day in all columns."""
    rows = with_meta([{"id": chr(ord("a") + place)} for place in range(len(days))], number, SCHEMA)
    of_days = pa.array(days, pa.int32()).view(pa.date32())
    lists = pa.array([None if day is None else [day] for day in days], pa.list_(pa.int32()))
    columns = [of_days, of_days.cast(AT), lists.cast(pa.list_(pa.date32()))]
    for name, column in zip("dtl", columns, strict=True):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), column)
    return rows


def content_of(days: list[int | None], marks: dict[str, str]) -> bytes:
    """A Parquet file of them with marks in its footer."""
    sink = pa.BufferOutputStream()
    rows = rows_of(days)
    with pq.ParquetWriter(sink, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(marks)
    return bytes(sink.getvalue())


def in_base(folder: Path, days: list[int | None], marks: dict[str, str]) -> SliceBuilder:
    """A slice whose base file is that."""
    builder = SliceBuilder(folder, schema=SCHEMA).add_base([])
    assert builder.base is not None
    (folder / builder.base.path).write_bytes(content_of(days, marks))
    return builder


def days_in(rows: pa.Table) -> list[Any]:
    """The day of each row, which all columns have."""
    days = rows["d"].cast(pa.int32()).to_pylist()
    assert [
        None if at is None else at // 86_400_000_000 for at in rows["t"].cast(pa.int64()).to_pylist()
    ] == days
    assert [
        None if each is None else each[0] for each in rows["l"].cast(pa.list_(pa.int32())).to_pylist()
    ] == days
    return days


OLD_SPARK = {"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "UTC"}


def readings_of(folder: Path, days: list[int | None], marks: dict[str, str]) -> list[Callable[[], pa.Table]]:
    """Each way to read such a base file or log block."""
    builder = in_base(folder / "base", days, marks)
    context, file_slice = builder.context(config()), builder.build()
    header = [(HeaderKey.INSTANT_TIME, instant(2))]
    in_log = SliceBuilder(folder / "log", schema=SCHEMA)
    in_log.add_log(encode_block(BlockType.PARQUET_DATA, header, content_of(days, marks)))
    before = pc.field("d") < pa.scalar(RECENT + 1, pa.int32()).cast(pa.date32())
    base = builder.base
    assert base is not None

    def opened(read: Callable[[BaseFileRows], pa.Table]) -> pa.Table:
        with opened_base_file(context, base) as file:
            return read(file)

    return [
        lambda: read_slice(context, file_slice),
        lambda: read_slice(context, file_slice, filters=before),
        lambda: read_slice(in_log.context(config()), in_log.build()),
        lambda: opened(lambda file: file.read(SCHEMA.names)),
        lambda: opened(lambda file: pa.concat_tables(file.blocks(SCHEMA.names, rows=2))),
        lambda: opened(lambda file: file.take(np.array([0, 2]), SCHEMA.names)),
    ]


@pytest.mark.parametrize("marks", [MARKS, OLD_SPARK])
def test_old_values_of_marked_files_are_refused(tmp_path: Path, marks: dict[str, str]) -> None:
    for read in readings_of(tmp_path, [JULIAN_DAY, None, RECENT], marks):
        with pytest.raises(UnsupportedTableError, match=r"column '[dt]' of .* before 3\.0.*=CORRECTED"):
            read()


@pytest.mark.parametrize(
    ("day", "marks"),
    [
        (-20_000, MARKS),
        (JULIAN_DAY, {"org.apache.spark.version": "3.0.0"}),
        (JULIAN_DAY, {key: value for key, value in MARKS.items() if "version" not in key}),
        (JULIAN_DAY, {}),
    ],
)
def test_other_values_are_read_as_stored(tmp_path: Path, day: int, marks: dict[str, str]) -> None:
    for read in readings_of(tmp_path, [day, None, RECENT], marks):
        assert days_in(read())[0] == day


def test_columns_that_are_not_read_are_not_checked(tmp_path: Path) -> None:
    builder = in_base(tmp_path, [JULIAN_DAY], MARKS)
    assert read_slice(builder.context(config()), builder.build(), columns=["id"]).num_rows == 1
