"""Base files made of column chunks of older ones: every reader finds the rows, filters too, and Apache Hudi goes on from them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine.format.parquet.file import ChunkFile

from tests.helpers.forms import in_turn, named
from tests.judge.apache_hudi import VERSIONS
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.readers import Judges, assert_all_read
from tests.judge.rows import difference, without_meta
from tests.judge.shapes import COLUMNS, SHAPES, Shape, arrow

COUNT = 12_000
"""Rows of one file, whose names are long enough that its columns are worth to be carried."""
UNPARTITIONED = [shape for shape in SHAPES if shape.partition is None and not shape.options]


def a_row(number: int, ts: int, **given: Any) -> dict[str, Any]:
    name = hashlib.sha256(str(number).encode()).hexdigest() * 2
    return {"id": number, "name": name, "price": number / 7, "ts": ts, "day": f"d{number % 3}", **given}


def carried_columns(path: Path) -> set[str]:
    """Columns of which the newest base file has the bytes of the one before."""
    newest = sorted(path.rglob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])[-2:]
    before, after = (ChunkFile(pa.BufferReader(file.read_bytes())).groups[0].chunks for file in newest)
    return {
        name for name in after if b"".join(after[name][0].read()).startswith(b"".join(before[name][0].read()))
    }


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "version"), in_turn(UNPARTITIONED, VERSIONS), ids=named)
def test_what_was_carried_is_read_filtered_and_continued(
    shape: Shape, version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path = tmp_path / "t"
    table, oracle = shape.create(HudiTable, spark, str(path)), shape.oracle()
    merges = shape.table_type == "cow"

    def upserted(rows: list[dict[str, Any]]) -> None:
        table.upsert(spark.createDataFrame(rows, COLUMNS))
        oracle.upsert(rows)
        if not merges:
            table.compact()

    first = [a_row(number, 10) for number in range(COUNT)]
    table.bulk_insert(spark.createDataFrame(first, COLUMNS))
    oracle.upsert(first)
    # A day that the dictionary of the carried column lacks comes as a page behind it.
    upserted([a_row(number, 20, price=0.5) for number in range(0, COUNT, 40)] + [a_row(COUNT, 20, day="new")])
    assert {"_hoodie_record_key", "id", "name", "day"} <= carried_columns(path)
    upserted([a_row(7, 30, price=None), a_row(COUNT + 1, 30, day=None), a_row(COUNT + 2, 30, price=-0.0)])
    assert {"_hoodie_record_key", "id", "name", "day"} <= carried_columns(path)
    assert_all_read(path, oracle.rows(), apache_hudi)

    found = table.snapshot()
    for condition, count in (
        ("day = 'new'", 1),
        ("day = 'd1'", COUNT // 3),
        ("day is null", 1),
        (f"id >= {COUNT}", 3),
        ("name = '" + a_row(COUNT, 0)["name"] + "'", 1),
        ("price = 0.5", COUNT // 40),
        ("price = 0.0", 1),
    ):
        assert found.where(condition).count() == count, condition

    hudi, options = apache_hudi(version), shape.hudi_options()
    theirs = [a_row(number, 40, price=7.0) for number in (0, 5, COUNT)] + [a_row(COUNT + 3, 40)]
    hudi.upsert(path, arrow(theirs), options)
    oracle.upsert(theirs)
    upserted([a_row(6, 50, price=1.0), a_row(COUNT + 4, 50)])
    gone = [a_row(8, 60)]
    table.delete(spark.createDataFrame(gone, COLUMNS))
    oracle.delete(gone)
    upserted([a_row(9, 70, name="short")])
    assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == "", "ours"
    assert_all_read(path, oracle.rows(), apache_hudi)
