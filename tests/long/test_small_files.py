"""474,041 rows that arrive in 250 batches, late ones among them: how many files they leave."""

from __future__ import annotations

import itertools
import os
from datetime import timedelta

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine.table.state import TableState

from tests.helpers.late_rows import COLUMNS, Event, late_rows
from tests.spark import conftest as one_session

ROWS, BATCHES = 474_041, 250
MOST_TIMELINE = 3 * (30 + 30)
"""Three files of each commit and each clean; more than 30 of a kind are archived until there are 20."""
MOST_ARCHIVE = BATCHES // 10
"""Archiving writes a file, and waits for more than ten commits each time."""
MOST_METADATA = MOST_TIMELINE + MOST_ARCHIVE + 3
"""With the properties, the latest manifest and the one before."""
MOST_DATA = 14


spark = one_session.spark


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_batches_of_a_stream_leave_few_files(spark, tmp_path, table_type):
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="at",
        partition_by=["dt"],
        table_type=table_type,
        options={"hoodie.compact.inline": str(table_type == "mor").lower()},
    )
    rows = late_rows(ROWS, seed=35, step=timedelta(milliseconds=300))
    while batch := list(itertools.islice(rows, -(-ROWS // BATCHES))):
        columns = dict(zip(Event._fields, map(list, zip(*batch)), strict=True))
        table.upsert(spark.createDataFrame(pa.table(columns).to_pandas(), COLUMNS))

    state = TableState.load(table.storage)
    metadata = sum(len(files) for _, _, files in os.walk(tmp_path / "t" / ".hoodie"))
    slices = state.view().latest_slices()
    found = f"{metadata} metadata files, {len(slices)} file groups"
    assert table.snapshot().count() == ROWS
    assert table.snapshot().where("is_late").count() > ROWS // 20
    assert metadata <= MOST_METADATA, found
    assert len(slices) <= MOST_DATA, found
