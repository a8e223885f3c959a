"""A write whose files another writer removes while it reads them was overtaken: it says so, and begins again where it may."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine import HudiTable, WriteConflictError
from hudi_engine.spark.write import source

RETRIES = {"hoodie.write.num.retries.on.conflict.failures": "3"}


@pytest.fixture(params=["cow", "mor"])
def table(request, spark, tmp_path):
    made = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=request.param, partition_by=["p"]
    )
    made.upsert(spark.sql("select id, id % 2 p, 'first' v from range(10)"))
    made.upsert(spark.sql("select 3L id, 1L p, 'second' v"))
    return made


@pytest.fixture
def going(table, monkeypatch):
    """Rename the newest data file of a partition away before the rows of a write are made, so many times; it comes back after."""
    left = [0]
    fetch = source.fetch_small

    def fetch_without_a_file(batch, options):
        if not left[0]:
            return fetch(batch, options)
        left[0] -= 1
        folder = table.storage.base + "/1"
        files = sorted(each for each in Path(folder).glob("*20*") if each.is_file())
        hidden = [(each, each.with_name(each.name + ".hidden")) for each in files]
        for each, away in hidden:
            each.rename(away)
        try:
            return fetch(batch, options)
        finally:
            for each, away in hidden:
                away.rename(each)

    monkeypatch.setattr(source, "fetch_small", fetch_without_a_file)
    return left


def rows(table):
    return sorted((row.id, row.v) for row in table.snapshot().collect())


@pytest.mark.parametrize("given", [{"where": "v = 'second'"}, {"keys": ["v"]}])
def test_a_replacement_begins_again_when_files_go_and_is_a_conflict_otherwise(spark, table, going, given):
    before, timeline = rows(table), len(table.timeline())
    batch = spark.sql("select 3L id, 1L p, 'second' v")
    going[0] = 1
    with pytest.raises(
        WriteConflictError, match="were removed: a clean, compaction or rollback of another writer"
    ):
        table.replace(batch, **given)
    assert (rows(table), len(table.timeline())) == (before, timeline)
    going[0] = 2
    table.replace(batch, **given, options=RETRIES)
    assert going[0] == 0
    assert rows(table) == before


def test_an_update_by_condition_whose_files_go_is_a_conflict(table, going):
    before, going[0] = rows(table), 1
    with pytest.raises(WriteConflictError, match="Nothing was committed; write again"):
        table.update_where("v = 'second'", {"v": "'third'"})
    assert rows(table) == before
    assert table.update_where("v = 'second'", {"v": "'third'"}).rows_updated == 1


def test_a_file_of_another_table_that_has_gone_is_sparks_own_error(spark, table, tmp_path):
    other = str(tmp_path / "other")
    spark.sql("select 3L id, 1L p, 'x' v").write.parquet(other)
    batch = spark.read.parquet(other)
    for each in (tmp_path / "other").glob("*.parquet"):
        each.unlink()
    with pytest.raises(Exception, match=r"(?s)FILE_NOT_EXIST|does not exist") as raised:
        table.replace(batch, where="id = 3")
    assert not isinstance(raised.value, WriteConflictError)
