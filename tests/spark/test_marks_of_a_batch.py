"""Rows that delete by a mark of their batch alone: the mark never becomes a column of the table."""

from __future__ import annotations

from datetime import date

import pytest
from hudi_engine import DataError, HudiTable, SchemaError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.spark.write.rows import batch
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.spark.write.rows.settled import newest_of_each_key
from hudi_engine.table.write import fit

from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled

COLUMNS = "id int, n int, dt string"
MARKED = f"{COLUMNS}, {DELETES} boolean"
STORED = [(1, 10, "a"), (2, 20, "a"), (3, 30, "b")]
# 2 goes, 3 is updated, 4 comes, and 5 was never there
BATCH = [(2, 20, "a", True), (3, 31, "b", False), (4, 40, "b", None), (5, 50, "b", True)]
AFTER = [(1, 10, "a"), (3, 31, "b"), (4, 40, "b")]

SHAPES = {
    "cow": ("cow", {}),
    "mor": ("mor", {}),
    "cow-executors": ("cow", {"hoodie.engine.small.batch.rows": "0"}),
    "mor-executors-global": (
        "mor",
        {"hoodie.engine.small.batch.rows": "0", "hoodie.index.type": "GLOBAL_SIMPLE"},
    ),
}


@pytest.mark.parametrize(
    ("shape", "way"),
    [(shape, "upsert") for shape in SHAPES]
    + [("cow-executors", "merge"), ("mor-executors-global", "match_condition")],
)
def test_marked_rows_delete_and_the_mark_leaves_no_trace(spark, tmp_path, shape, way):
    table_type, options = SHAPES[shape]
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["dt"], table_type=table_type
    )
    table.upsert(spark.createDataFrame(STORED, COLUMNS))
    marked = spark.createDataFrame(BATCH, MARKED)
    if way == "merge":
        result = table.merge(marked, MergeClauses(), options=options)
    else:
        condition = "DBT_INTERNAL_DEST.n > 0" if way == "match_condition" else None
        result = table.upsert(marked, options=options, match_condition=condition)
    assert table.schema.names == ["id", "n", "dt"]
    assert "is_deleted" not in result.metadata.extra_metadata["schema"]
    assert rows_by_hudi_rs(str(tmp_path / "t"), ["id", "n", "dt"]) == AFTER
    assert sorted(map(tuple, table.snapshot().select("id", "n", "dt").collect())) == AFTER


@pytest.mark.parametrize("said", [False, True], ids=["of-the-class", "of-a-property"])
def test_small_letters_mark_as_well_where_no_property_names_the_marker(spark, said):
    marker = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"} if said else {}
    config = TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.table.precombine.field": "n",
            "hoodie.compaction.payload.class": "org.apache.hudi.common.model.AWSDmsAvroPayload",
            **marker,
        }
    )
    rows = [(1, 5, "I"), (1, None, "D"), (1, 1, "I"), (2, 5, "I"), (2, None, "d"), (2, 1, "I")]
    newest = newest_of_each_key(spark.createDataFrame(rows, "id int, n int, Op string"), ["id"], config)
    assert sorted(map(tuple, newest.collect())) == [(1, 1, "I"), (2, 5 if said else 1, "I")]


def test_replace_takes_marked_rows_out_and_does_not_write_them(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    table.upsert(spark.createDataFrame(STORED, COLUMNS))
    table.replace(spark.createDataFrame(BATCH, MARKED), keys=["id"])
    assert table.schema.names == ["id", "n", "dt"]
    assert sorted(map(tuple, table.snapshot().select("id", "n", "dt").collect())) == AFTER


def test_a_mark_that_is_no_boolean_is_refused(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(DataError, match="has to be boolean"):
        table.upsert(spark.createDataFrame([(1, "yes")], f"id int, {DELETES} string"))


@pytest.mark.parametrize("mark", ["_HOODIE_IS_DELETED", "__HUDI_Is_Deleted"])
def test_a_mark_deletes_in_whatever_case_it_comes(spark, tmp_path, table_type, mark):
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["dt"], table_type=table_type
    )
    table.upsert(spark.createDataFrame(STORED, COLUMNS))
    table.upsert(spark.createDataFrame(BATCH, f"{COLUMNS}, {mark} boolean"))
    assert [name for name in table.schema.names if "deleted" in name.lower()] in ([], [IS_DELETED])
    assert rows_by_hudi_rs(str(tmp_path / "t"), ["id", "n", "dt"]) == AFTER
    assert sorted(map(tuple, table.snapshot().select("id", "n", "dt").collect())) == AFTER
    both = spark.createDataFrame(
        [(1, 1, "a", True, True)], f"{COLUMNS}, {mark} boolean, {mark.lower()} boolean"
    )
    with pytest.raises(SchemaError, match="have the same name"):
        table.upsert(both)


@pytest.mark.parametrize("kind", ["int", "string"])
def test_a_new_mark_that_is_no_boolean_is_refused_wherever_it_comes_from(spark, tmp_path, kind):
    said = f"column '{IS_DELETED}' is {kind}; it marks rows that delete and has to be boolean"
    with pytest.raises(SchemaError, match=said):
        HudiTable.create(spark, str(tmp_path / "t"), name="t", schema=f"id int, {IS_DELETED} {kind}")
    with pytest.raises(SchemaError, match="only where it is spelled '_hoodie_is_deleted'"):
        HudiTable.create(spark, str(tmp_path / "t"), name="t", schema="id int, _HOODIE_IS_DELETED boolean")
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    rows = spark.createDataFrame([(1, None)], f"id int, {IS_DELETED} {kind}")
    with pytest.raises(SchemaError, match=said):
        table.upsert(rows)
    table.upsert(spark.createDataFrame([(1,)], "id int"))
    with pytest.raises(SchemaError, match=said):
        table.upsert(rows)


@pytest.fixture
def written_by_others(spark, tmp_path, monkeypatch):
    """Gives a table with one row of these columns, which another writer takes for any other values."""

    def write(row, columns):
        table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
        with monkeypatch.context() as careless:
            careless.setattr(batch, "exact_marks", lambda frame, *_: frame)
            careless.setattr(fit, "refuse_false_marks", lambda *_: None)
            table.upsert(spark.createDataFrame([row], columns))
        return table

    return write


def test_a_column_of_that_name_that_a_table_has_stays_what_it_is(spark, written_by_others):
    columns = f"id int, {IS_DELETED} int"
    table = written_by_others((1, 1), columns)
    table.upsert(spark.createDataFrame([(2, 1)], columns))
    table.upsert(spark.createDataFrame([(3, 1)], columns.upper()))
    assert sorted(row.id for row in table.snapshot().collect()) == [1, 2, 3]


def test_a_mark_beside_a_column_of_its_name_in_another_spelling_is_refused(spark, written_by_others):
    columns = "id int, _HOODIE_IS_DELETED boolean"
    table = written_by_others((1, True), columns)
    table.upsert(spark.createDataFrame([(2, True)], columns))
    assert sorted(row.id for row in table.snapshot().collect()) == [1, 2]
    with pytest.raises(SchemaError, match=f"but the table has '_HOODIE_IS_DELETED'.*with '{DELETES}'"):
        table.upsert(spark.createDataFrame([(1, True)], columns.lower()))
    table.upsert(spark.createDataFrame([(1, True)], f"id int, {DELETES} boolean"))
    assert [row.id for row in table.snapshot().collect()] == [2]


@pytest.mark.parametrize("way", ["upsert", "merge"])
def test_a_delete_of_the_first_day_of_1970_says_no_order_and_wins_whatever_files_hold_the_rows(
    spark, tmp_path, table_type, way
):
    table = keyed_table(spark, tmp_path / "t", table_type, partition_by=None)
    columns = "id int, ts date, name string"
    table.upsert(spark.createDataFrame([(key, date(2026, 1, 1), "kept") for key in (1, 2)], columns))
    table.upsert(spark.createDataFrame([(1, date(2026, 1, 2), "later")], columns))
    marked = spark.createDataFrame([(1, date(1970, 1, 1), "goes", True)], f"{columns}, {DELETES} boolean")
    table.upsert(marked) if way == "upsert" else table.merge(marked, MergeClauses())
    assert [row.id for row in table.snapshot().collect()] == [2]
