"""A data file that is lost is missed by whoever needs it, and never answered with fewer rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine import CorruptTableError, HistoryGapError, TimelineError

from tests.helpers.keyed import keyed_table

SCHEMA = "id string, p string, v string"
LOST = (CorruptTableError, HistoryGapError, TimelineError)


def rows(frame):
    return sorted(tuple(row) for row in frame.select("id", "v").collect())


@pytest.fixture
def table(spark, tmp_path, table_type):
    given = {"precombine_field": None, "partition_by": ["p"], "schema": SCHEMA}
    return keyed_table(
        spark, tmp_path / "t", table_type, **given, options={"hoodie.clean.automatic": "false"}
    )


def upsert(table, *given):
    return table.upsert(table.spark.createDataFrame(list(given), SCHEMA).coalesce(1)).instant


def is_merge_on_read(table):
    return table.config.table_type.value == "MERGE_ON_READ"


def lose(table, instant):
    """Take the base file of partition y away that a commit wrote."""
    (path,) = Path(table.path, "y").glob(f"*_{instant}.parquet")
    path.unlink()


def test_a_saved_state_misses_its_file_in_every_form(table):
    first = upsert(table, ("a", "x", "1"), ("b", "y", "1"))
    table.savepoint(first, comments="closed")
    upsert(table, ("a", "x", "2"), ("b", "y", "2"))
    if is_merge_on_read(table):
        table.compact()
    lose(table, first)
    for asked in (lambda: table.as_of("closed"), lambda: table.changes(None, first)):
        with pytest.raises(CorruptTableError, match=f"although commit {first} wrote it"):
            asked()
    with pytest.raises(LOST):
        table.restore(first)
    assert rows(table.snapshot()) == [("a", "2"), ("b", "2")]


def test_a_first_run_and_a_later_one_miss_the_file_that_they_need(table):
    first = upsert(table, ("a", "x", "1"), ("b", "y", "1"), ("c", "y", "1"))
    table.delete(table.spark.createDataFrame([("c", "y")], "id string, p string"))
    upsert(table, ("b", "y", "2"))
    if is_merge_on_read(table):
        table.compact()
    lose(table, first)
    for asked in (
        lambda: table.changes(first),
        lambda: table.changes(first, mode="all"),
        lambda: table.restore(first),
    ):
        with pytest.raises(LOST):
            asked()
    newest = upsert(table, ("a", "x", "3"))
    (path,) = Path(table.path, "x").glob(".*.log.*" if is_merge_on_read(table) else f"*_{newest}.parquet")
    path.unlink()
    for asked in (table.changes, lambda: table.changes(first, mode="latest")):
        with pytest.raises(CorruptTableError, match=f"although commit {newest} wrote it"):
            asked()
