"""The record index of a table: deletes that come late, keys that are stored twice, and the rows that look-ups then give."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hudi_engine import HudiTable, read
from hudi_engine.errors import RepeatedKeyError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.table.table_services import TableServices

from tests.helpers.metadata_table import differences, open_metadata

pytestmark = pytest.mark.sampled

COLUMNS = "id string, ts long, dt string, _hoodie_is_deleted boolean"
INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}


def make(spark, path, table_type, index, **options):
    return HudiTable.create(
        spark, str(path), name="t", record_key="id", precombine_field="ts", partition_by="dt",
        table_type=table_type,
        options={"hoodie.write.table.version": "9", "hoodie.index.type": index, **INDEXED, **options},
    )  # fmt: skip


def rows(spark, *values):
    return spark.createDataFrame([(*each, False)[:4] if len(each) < 4 else each for each in values], COLUMNS)


def found(table, key):
    """Rows of a key by a look-up, by a filter, and in a snapshot."""
    path = table.path
    return (
        table.lookup([key]).to_arrow().num_rows,
        read(path, filters=[("id", "=", key)]).to_arrow().num_rows,
        table.snapshot().where(f"id = '{key}'").count(),
    )


@pytest.mark.parametrize("index", ["RECORD_INDEX", "GLOBAL_SIMPLE"])
def test_a_delete_that_is_older_than_its_row_leaves_the_key_in_the_index(spark, tmp_path, index):
    table = make(spark, tmp_path / "t", "mor", index)
    table.upsert(rows(spark, ("a", 10, "x"), ("b", 10, "x")))
    table.upsert(rows(spark, ("a", 5, "x", True), ("b", 15, "x", True)))
    assert found(table, "a") == (1, 1, 1)
    assert found(table, "b") == (0, 0, 0)
    table.upsert(rows(spark, ("a", 12, "x"), ("b", 16, "x")))
    assert found(table, "a") == found(table, "b") == (1, 1, 1)
    assert table.validate(keys=True) == [] and differences(open_storage(table.path)) == []


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_keys_in_several_partitions_are_all_found_and_get_no_record_index(spark, tmp_path, table_type):
    table = make(spark, tmp_path / "t", table_type, "SIMPLE")
    table.upsert(rows(spark, ("a", 1, "x"), ("b", 1, "x")))
    assert "record_index" in open_metadata(open_storage(table.path)).partitions
    table.upsert(rows(spark, ("a", 1, "y")))
    assert "record_index" not in open_metadata(open_storage(table.path)).partitions
    assert found(table, "a") == (2, 2, 2)
    assert table.delete(spark.createDataFrame([("a",)], "id string")).rows_deleted == 2
    table.upsert(rows(spark, ("b", 2, "z")), options={"hoodie.metadata.enable": "true"})
    with pytest.raises(RepeatedKeyError, match="record key 'b' is stored in several file groups"):
        table.services().create_index("record_index")


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_a_key_that_is_inserted_again_is_found_twice(spark, tmp_path, operation):
    table = make(spark, tmp_path / "t", "cow", "RECORD_INDEX", **{"hoodie.parquet.small.file.limit": "0"})
    table.upsert(rows(spark, ("a", 1, "x"), ("b", 1, "y")))
    getattr(table, operation)(rows(spark, ("a", 1, "z"), ("c", 1, "z")))
    assert found(table, "a") == (2, 2, 2)
    assert found(table, "c") == (1, 1, 1)


def test_a_float_that_was_widened_is_found_by_its_digits(spark, tmp_path):
    options = {
        "hoodie.write.table.version": "9",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key="id", options=options)
    table.upsert(spark.sql("select 1 as id, cast(0.1 as float) as f"))
    table.upsert(spark.sql("select 2 as id, 5.5D as f"))
    for condition in (("f", "=", 0.1), ("f", "<=", 0.1)):
        assert read(table.path, filters=[condition]).to_arrow()["id"].to_pylist() == [1]


def test_long_decimals_and_late_dates_are_found(spark, tmp_path):
    options = {
        "hoodie.write.table.version": "9",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key="id", options=options)
    table.upsert(
        spark.sql(
            "select 1 as id, cast('12345678901234567890123456789.5' as decimal(38, 1)) as n, date'+12000-01-01' as d "
            "union all select 2, cast('-1.5' as decimal(38, 1)), date'2020-01-01'"
        )
    )
    assert read(table.path, filters=[("n", ">", 5)]).to_arrow()["id"].to_pylist() == [1]
    assert table.snapshot(filters=[("n", "<", 5)]).count() == 1
    assert read(table.path, filters=[("n", "<", 5)]).to_arrow()["id"].to_pylist() == [2]
    assert differences(open_storage(table.path)) == []
    import datetime

    early = [("d", "<", datetime.date(2021, 1, 1))]
    assert read(table.path, filters=early, columns=["id"]).to_arrow()["id"].to_pylist() == [2]


CHANGED = [
    ("cast(0.1 as float)", "9.1D", [("f", "=", 0.1)]),
    ("5", "'x'", [("f", "=", "5")]),
    ("5", "9.5D", [("f", "<", 6.0)]),
    ("date '2024-05-05'", "'x'", [("f", "=", "2024-05-05")]),
    ("cast(1.5 as decimal(10,2))", "cast(2.25 as decimal(14,3))", [("f", "=", Decimal("1.5"))]),
]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("before", "after", "filters"), CHANGED)
def test_rows_of_a_column_that_changed_its_type_are_found(
    spark, tmp_path, table_type, before, after, filters
):
    options = {
        "hoodie.write.table.version": "9",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.engine.schema.evolution": "any",
    }
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        partition_by=["p"],
        table_type=table_type,
        options=options,
    )
    table.insert(spark.sql(f"select 'a' as id, {before} as f, 'p0' as p"))
    table.insert(spark.sql(f"select 'b' as id, {after} as f, 'p0' as p"))
    services = TableServices(open_storage(table.path), resolve_options({}))
    for _ in range(2):  # what the write kept, and what a new build reads
        assert len(read(table.path, filters=filters).to_arrow()) == 1
        services.drop_index("column_stats")
        services.create_index("column_stats")
