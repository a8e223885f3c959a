"""Base files and log blocks with marks of Spark's calendar of before 3.0."""

from __future__ import annotations

import datetime as dt
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
from hudi_engine.format.merge import base_reader
from hudi_engine.format.merge.base_reader import opened_base_file
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.old_calendar import OldCalendar
from slices import SliceBuilder, config, instant, with_meta

AT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("id", pa.string()), ("d", pa.date32()), ("t", AT), ("l", pa.list_(pa.date32()))])
JULIAN_DAY, DAY = -719_164, -719_162
"""0001-01-01 in both calendars."""
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


@pytest.mark.parametrize(
    ("marks", "is_old"),
    [
        (MARKS, True),
        ({"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "UTC"}, True),
        ({"org.apache.spark.version": "3.0.0", "org.apache.spark.timeZone": "UTC"}, False),
        ({**MARKS, "org.apache.spark.timeZone": "Etc/UTC"}, True),
        ({key: value for key, value in MARKS.items() if "version" not in key}, False),
        ({}, False),
    ],
)
def test_old_values_of_marked_files_are_turned_however_they_are_read(
    tmp_path: Path, marks: dict[str, str], is_old: bool
) -> None:
    stored: list[int | None] = [JULIAN_DAY, None, RECENT]
    meant = [DAY if is_old else JULIAN_DAY, None, RECENT]
    builder = in_base(tmp_path / "base", stored, marks)
    context, file_slice = builder.context(config()), builder.build()
    header = [(HeaderKey.INSTANT_TIME, instant(2))]
    in_log = SliceBuilder(tmp_path / "log", schema=SCHEMA)
    in_log.add_log(encode_block(BlockType.PARQUET_DATA, header, content_of(stored, marks)))
    before = pc.field("d") < pa.scalar(DAY + 1, pa.int32()).cast(pa.date32())

    assert days_in(read_slice(context, file_slice)) == meant
    assert days_in(read_slice(context, file_slice, filters=before)) == meant[:1]
    assert days_in(read_slice(in_log.context(config()), in_log.build())) == meant
    assert builder.base is not None
    with opened_base_file(context, builder.base) as file:
        assert days_in(file.read(SCHEMA.names)) == meant
        assert days_in(pa.concat_tables(file.blocks(SCHEMA.names, rows=2))) == meant
        assert days_in(file.take(np.array([0, 2]), SCHEMA.names)) == [meant[0], meant[2]]


def test_a_filter_is_asked_of_row_groups_whose_statistics_have_no_old_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    monkeypatch.setattr(base_reader, "read_base_file", lambda *given: read.append(given) or rows_of([1]))
    recent, old = (in_base(tmp_path / str(day), [day, RECENT], MARKS) for day in (-20_000, JULIAN_DAY))

    for builder in (recent, old):
        assert builder.base is not None
        found = base_reader.scan_base_file(
            builder.context(config()), builder.base, ["id", "d"], pc.field("d") == dt.date(2024, 1, 15)
        )
        assert found.num_rows == (builder is recent)
    assert len(read) == 1


@pytest.mark.parametrize(
    ("zone", "days"), [(None, JULIAN_DAY), ("+01:00", JULIAN_DAY), ("Europe/Berlin", -800_000)]
)
def test_times_of_which_the_zone_is_not_known_are_refused(
    tmp_path: Path, zone: str | None, days: int
) -> None:
    marks = {key: value for key, value in MARKS.items() if "Zone" not in key}
    builder = in_base(
        tmp_path, [days], marks if zone is None else {**marks, "org.apache.spark.timeZone": zone}
    )

    with pytest.raises(
        UnsupportedTableError, match=r"column 't' of base file 'f-0_.*\.parquet' has timestamps before 1900"
    ):
        read_slice(builder.context(config()), builder.build())

    assert read_slice(builder.context(config()), builder.build(), columns=["id", "d"])["d"].null_count == 0


def test_a_file_of_recent_values_is_given_as_it_is() -> None:
    rows = rows_of([RECENT, None, -20_000])
    calendar = OldCalendar(dates=True, int96=frozenset(), zone=None)

    assert calendar.turned(rows, "it") is rows
