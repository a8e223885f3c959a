"""Secondary indexes through every kind of write: each key is there once, with the value that its row has."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, read
from hudi_engine.format.storage import open_storage

from tests.helpers.metadata_table import differences, open_metadata

COLUMNS = "id string, ts long, dt string, city string, n int, day date, at timestamp"
INDEXES = ("city", "n", "day", "at")
OPTIONS = {
    "hoodie.write.table.version": "9",
    "hoodie.metadata.enable": "true",
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
}


def make(spark, path, table_type, **options):
    table = HudiTable.create(
        spark, str(path), name="t", record_key="id", precombine_field="ts", partition_by="dt",
        table_type=table_type, options={**OPTIONS, **options},
    )  # fmt: skip
    table.upsert(rows(spark, *((f"k{at}", 1, f"p{at % 2}", at) for at in range(6))))
    return table


def rows(spark, *values):
    """Rows whose other columns follow from a number; None for nulls."""
    texts = [(key, ts, dt, at) for key, ts, dt, at in values]
    frame = spark.createDataFrame(texts, "id string, ts long, dt string, at int")
    return frame.selectExpr(
        "id", "ts", "dt", "if(at = 0, 'o$l\\\\o', 'c' || at) city", "at - 3 n",
        "date_add(date'1969-12-30', at) day", "timestamp_micros(at * 7 - 20) at",
    )  # fmt: skip


def checked(table, after):
    storage = open_storage(table.path)
    kept = open_metadata(storage)
    assert {f"secondary_index_{each}" for each in INDEXES} <= set(kept.partitions), after
    assert differences(storage) == [], after


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_every_write_keeps_the_value_of_each_row(spark, tmp_path, table_type):
    table = make(spark, tmp_path / "t", table_type)
    for column in INDEXES:
        table.services().create_index(f"secondary_index_{column}", [column])
    checked(table, "it was built")
    table.upsert(rows(spark, ("k1", 2, "p1", 9), ("k2", 2, "p0", None), ("k9", 2, "p1", 0)))
    checked(table, "values changed")
    table.upsert(rows(spark, ("k3", 3, "p0", 3), ("k4", 3, "p1", 8)))
    checked(table, "keys moved to another partition")
    table.delete(spark.createDataFrame([("k0",), ("k9",)], "id string"))
    checked(table, "deletes")
    before = {each["id"]: each["n"] for each in read(table.path).to_arrow().to_pylist()}
    table.rollback(table.upsert(rows(spark, ("k1", 4, "p1", 5), ("k7", 4, "p1", 7))).instant)
    checked(table, "a rollback")
    assert {each["id"]: each["n"] for each in read(table.path).to_arrow().to_pylist()} == before
    table.insert_overwrite(rows(spark, ("k5", 5, "p1", 2), ("k8", 5, "p1", None)))
    checked(table, "a partition was overwritten")
    table.delete_partitions(["p0"])
    checked(table, "a partition was deleted")
    table.insert_overwrite_table(rows(spark, *((f"k{at}", 6, f"p{at % 2}", at) for at in range(4))))
    checked(table, "the table was overwritten")


def test_filters_read_the_files_that_hold_a_value(spark, tmp_path):
    table = make(spark, tmp_path / "t", "cow")
    row = read(table.path, filters=[("id", "=", "k1")]).to_arrow().to_pylist()[0]
    for column in INDEXES:
        table.services().create_index(f"secondary_index_{column}", [column])
        for filters in ([(column, "=", row[column])], [(column, "in", [row[column]])]):
            found = read(table.path, filters=filters)
            assert found.to_arrow()["id"].to_pylist() == ["k1"], column
            assert len(found.plan.slices) == 1 and found.plan.steps[-1].by == f"secondary_index_{column}"
    assert read(table.path, filters=[("city", "=", "o$l\\o")]).to_arrow()["id"].to_pylist() == ["k0"]


def test_an_index_goes_with_its_column_or_with_the_record_index(spark, tmp_path):
    table = make(spark, tmp_path / "t", "cow", **{"hoodie.index.type": "SIMPLE"})
    for column in ("city", "n"):
        table.services().create_index(f"secondary_index_{column}", [column])
    less = "id string, ts long, dt string, n long, day date, at timestamp"
    table.alter_schema(less)
    table.upsert(rows(spark, ("k1", 2, "p1", 8)).drop("city"))
    kept = open_metadata(open_storage(table.path)).partitions
    assert "secondary_index_city" not in kept and "secondary_index_n" in kept
    assert differences(open_storage(table.path)) == []
    table.upsert(rows(spark, ("k1", 2, "p0", 8)).drop("city"))  # its key is in two partitions then
    kept = open_metadata(open_storage(table.path)).partitions
    assert "record_index" not in kept and "secondary_index_n" not in kept
    assert read(table.path, filters=[("n", "=", 5)]).to_arrow()["id"].to_pylist() == ["k1", "k1"]
