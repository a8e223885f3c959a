"""A base file whose dates are in Spark's calendar of before 3.0 is followed by one in which they are not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.handles.merge import merge_file
from hudi_engine.table.handles.updates import FileChanges

from tests.unit.handles.test_merge import OLD, a_file, a_task

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("d", pa.date32())])
JULIAN_DAY, DAY = -719_164, -719_162
"""0001-01-01 in both calendars."""
MARKS = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}


def days_of(rows: pa.Table) -> list[int]:
    days: list[int] = rows["d"].cast(pa.int32()).to_pylist()
    return days


@pytest.mark.parametrize(("marks", "day"), [(MARKS, DAY), ({}, JULIAN_DAY)])
def test_old_dates_are_neither_carried_nor_written_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: dict[str, str], day: int
) -> None:
    monkeypatch.setattr("tests.unit.handles.test_merge.TABLE", SCHEMA)
    monkeypatch.setattr("hudi_engine.table.handles.carried._LEAST_BYTES", 0)
    slice_ = a_file(tmp_path, [{"id": key, "ts": 1} for key in "abcd"], SCHEMA, 2)
    path = tmp_path / slice_.base_file.path
    rows = pq.read_table(path)
    days = pa.array([JULIAN_DAY] * 4, pa.int32()).cast(pa.date32())
    rows = rows.set_column(rows.schema.get_field_index("d"), "d", days)
    with pq.ParquetWriter(path, rows.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(rows, row_group_size=2)
        writer.add_key_value_metadata(marks)
    base = BaseFile("", "f-0", "0-0-0", OLD, size=path.stat().st_size)
    new = pa.Table.from_pylist([{"id": "a", "ts": 2, "d": None}], SCHEMA)
    new = new.append_column(RECORD_KEY, new.column("id"))
    changes = FileChanges(
        pa.array([0, None, None, None], pa.int32()), new, pa.array([False]), inserts=new.slice(1)
    )

    stat = merge_file(a_task(tmp_path), FileSlice("", "f-0", OLD, base, ()), changes)

    assert stat is not None and stat.path is not None
    assert days_of(pq.read_table(tmp_path / stat.path)) == [None, day, day, day]
    assert not MARKS.keys() & {key.decode() for key in pq.read_metadata(tmp_path / stat.path).metadata}
