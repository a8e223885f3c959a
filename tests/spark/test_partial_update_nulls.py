"""Tables of partial updates, whose merge takes a null for no value: what sets a column to null there, or says that it cannot."""

from __future__ import annotations

import hudi_engine
import pytest
from hudi_engine import ConfigError, HudiTable
from hudi_engine.spark.write.rows.clauses import MergeClauses

pytestmark = pytest.mark.sampled

PAYLOADS = ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"]
FIRST = [(1, 1, "secret"), (2, 1, "known")]


@pytest.fixture
def make(spark, tmp_path):
    def made(table_type, payload=PAYLOADS[0]):
        table = HudiTable.create(
            spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field="ts", table_type=table_type,
            options={"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"},
        )  # fmt: skip
        table.upsert(spark.createDataFrame(FIRST, "id int, ts int, note string"))
        return table

    return made


def rows(table):
    found = sorted(tuple(row) for row in table.snapshot().select("id", "ts", "note").collect())
    read = hudi_engine.read(table.path).to_arrow()
    assert sorted(zip(*(read[name].to_pylist() for name in ("id", "ts", "note")), strict=True)) == found
    return found


@pytest.mark.parametrize("payload", PAYLOADS)
def test_copy_on_write_rows_are_emptied_and_filled_again_by_later_batches(spark, make, payload):
    table = make("cow", payload)
    assert table.soft_delete_where("id = 1").rows_updated == 1
    assert rows(table) == [(1, 1, None), (2, 1, "known")]
    table.update_where("id = 2", {"note": "nullif(note, 'known')", "ts": "0"})
    assert rows(table) == [(1, 1, None), (2, 0, None)]
    table.upsert(spark.sql("select 1 id, 2 ts, 'new' note union all select 2, 2, null"))
    table.upsert(spark.sql("select 1 id, 3 ts, cast(null as string) note"))
    assert rows(table) == [(1, 3, "new"), (2, 2, None)], "batches still say nothing by null"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_merge_on_read_rows_that_would_stay_as_they_are_are_refused(make, payload):
    table = make("mor", payload)
    for refused in (
        lambda: table.soft_delete_where("id = 1"),
        lambda: table.update_where("id = 1", {"note": "null"}),
    ):
        with pytest.raises(ConfigError, match=f"note cannot be set to null: .*{payload}.*compact the table"):
            refused()
    with pytest.raises(Exception, match=f"column note of a row would become null: .*{payload}"):
        table.update_where("true", {"note": "nullif(note, 'known')"})
    assert rows(table) == FIRST
    assert table.update_where("id = 1", {"note": "upper(note)"}).rows_updated == 1
    assert rows(table) == [(1, 1, "SECRET"), FIRST[1]]


def test_an_update_that_makes_a_row_older_is_refused_where_the_stored_row_would_win(make):
    table = make("mor")
    with pytest.raises(Exception, match="ts orders the versions of a row, and one would go from 1 to 0"):
        table.update_where("id = 1", {"ts": "0", "note": "'late'"})
    assert rows(table) == FIRST


def test_the_way_that_is_told_empties_a_row_of_a_merge_on_read_table(spark, make):
    table = make("mor")
    table.delete_where("id = 1")
    table.compact()
    table.insert(spark.sql("select 1 id, 1 ts, cast(null as string) note"))
    assert rows(table) == [(1, 1, None), (2, 1, "known")]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_merge_that_sets_a_column_to_null_is_refused_and_one_that_takes_the_batch_fills(
    spark, make, table_type
):
    table = make(table_type)
    batch = spark.sql("select 1 id, 2 ts, cast(null as string) note")
    for clauses in (
        MergeClauses(update_set={"note": "DBT_INTERNAL_SOURCE.note"}),
        MergeClauses(skip_matched=True, by_source={"note": "null"}),
    ):
        with pytest.raises(Exception, match="column note of a row would become null: .*coalesce"):
            table.merge(batch, clauses)
    assert rows(table) == FIRST
    table.merge(batch, MergeClauses())
    assert rows(table) == [(1, 2, "secret"), (2, 1, "known")]
