"""An insert that leaves out what is there, beside writers that add or take out the same keys."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, WriteConflictError

from tests.helpers.forms import forms, in_turn

pytestmark = pytest.mark.sampled

NEW_ONLY = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
OWN_FILES = {"hoodie.parquet.small.file.limit": "0"}
RETRY = {"hoodie.write.num.retries.on.conflict.failures": 1}
SHAPES = {
    "cow": {},
    "mor": {"table_type": "mor"},
    "global": {"options": {"hoodie.index.type": "GLOBAL_SIMPLE"}},
    "mor buckets": {
        "table_type": "mor",
        "options": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    },
    "cow buckets": {"options": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}},
}
WRITES = {
    "upsert": lambda table, rows, **more: table.upsert(rows, options={**OWN_FILES, **more}),
    "insert": lambda table, rows, **more: table.insert(rows, options={**OWN_FILES, **more}),
    "insert of new keys": lambda table, rows, **more: table.insert(
        rows, options={**OWN_FILES, **NEW_ONLY, **more}
    ),
}
_NEW = "insert of new keys"


@pytest.fixture
def make(spark, tmp_path):
    """A function that makes a table with one row."""

    def made(shape):
        definition = {"record_key": ["id"], "partition_by": ["dt"], **SHAPES[shape]}
        table = HudiTable.create(spark, str(tmp_path / "t"), name="t", **definition)
        table.upsert(rows(spark, (0, "a", "stored")), options=OWN_FILES)
        return table

    return made


def rows(spark, *given):
    return spark.createDataFrame(list(given), "id int, dt string, v string")


def content(table):
    return sorted((row.id, row.v) for row in HudiTable.open(table.spark, table.path).snapshot().collect())


@pytest.mark.parametrize(
    ("shape", "pair"), in_turn(tuple(SHAPES), ((_NEW, _NEW), (_NEW, "upsert"), ("upsert", _NEW)))
)
def test_a_key_that_both_add_is_there_once_and_the_one_that_begins_again_meets_it(
    spark, make, beaten, shape, pair
):
    table, (mine, theirs) = make(shape), pair
    elsewhere = "b" if shape == "global" else "a"
    for key, retry in ((1, {}), (2, RETRY)):
        beaten(lambda key=key: WRITES[theirs](table, rows(spark, (key, elsewhere, "theirs"))))
        batch = rows(spark, (key, "a", "mine"))
        if not retry:
            with pytest.raises(WriteConflictError):
                WRITES[mine](table, batch)
        else:
            WRITES[mine](table, batch, **retry)
    last = "theirs" if mine == _NEW else "mine"
    assert content(table) == [(0, "stored"), (1, "theirs"), (2, last)]


@pytest.mark.parametrize("table_type", forms(("cow", "mor"), ("cow",)))
@pytest.mark.parametrize(("mine", "theirs"), [(_NEW, "insert"), ("insert", _NEW)])
def test_a_plain_insert_beside_it_adds_its_row_all_the_same(spark, make, beaten, table_type, mine, theirs):
    table = make(table_type)
    beaten(lambda: WRITES[theirs](table, rows(spark, (1, "a", "theirs"))))
    WRITES[mine](table, rows(spark, (1, "a", "mine")))
    assert content(table) == [(0, "stored"), (1, "mine"), (1, "theirs")]


def test_a_row_that_was_left_out_and_one_that_was_not_found_are_not_both_there_after_a_delete_of_both(
    spark, make, beaten
):
    both = rows(spark, (0, "a", "mine"), (1, "a", "mine"))
    table = make("cow")
    beaten(lambda: table.delete(both.select("id", "dt")))
    with pytest.raises(WriteConflictError, match="added what it did not"):
        WRITES[_NEW](table, both)
    assert content(table) == []


def test_what_it_left_out_of_an_overwritten_partition_is_a_conflict(spark, make, beaten):
    table = make("cow")
    beaten(lambda: table.insert_overwrite(rows(spark, (7, "a", "theirs"))))
    with pytest.raises(WriteConflictError, match="overwrote partition"):
        WRITES[_NEW](table, rows(spark, (0, "a", "mine"), (1, "a", "mine")))
    assert content(table) == [(7, "theirs")]


@pytest.mark.parametrize("mark", ["_hoodie_is_deleted", "__hudi_is_deleted"])
@pytest.mark.parametrize("shape", forms(tuple(SHAPES), ("cow", "cow buckets", "mor buckets")))
def test_rows_marked_as_deleted_are_no_new_ones(spark, make, shape, mark):
    table = make(shape)
    table.upsert(rows(spark, *[(key, "a", "stored") for key in range(10)]), options=OWN_FILES)
    marked = [(1, "a", "x", True), (11, "a", "x", True), (12, "a", "new", False), (13, "a", "new", None)]
    batch = spark.createDataFrame(marked, f"id int, dt string, v string, {mark} boolean")
    table.insert(batch, options=NEW_ONLY)
    assert content(table) == [*((key, "stored") for key in range(10)), (12, "new"), (13, "new")]
