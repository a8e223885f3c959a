"""Keys to delete in another type than the table's: found by their value, or refused; never passed by in silence."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable, SchemaError
from hudi_engine import read as read_rows

pytestmark = pytest.mark.sampled

HALF = "cast(1.5 as decimal(20, 4))"


def make(spark, path, kind, value, **definition):
    table = HudiTable.create(
        spark, str(path), name="t", schema=f"k {kind}, id int", **{"record_key": ["k"], **definition}
    )
    table.insert(spark.sql(f"select {value} as k, 1 as id"))
    return table


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize(
    "given",
    ["1.5", "cast(1.5 as decimal(38, 18))", "cast(1.5 as decimal(20, 4))", "cast(1.5 as decimal(5, 4))"],
)
def test_a_decimal_key_of_another_scale_is_found(spark, tmp_path, table_type, given):
    table = make(spark, tmp_path / "t", "decimal(20, 4)", HALF, table_type=table_type)
    assert table.delete(spark.sql(f"select {given} as k")).rows_deleted == 1
    assert read_rows(table.path).to_arrow().num_rows == 0


def test_a_decimal_that_the_column_cannot_hold_is_nobodys_key(spark, tmp_path):
    table = make(spark, tmp_path / "t", "decimal(20, 4)", HALF)
    assert table.delete(spark.sql("select cast(1.50004 as decimal(38, 18)) as k")).rows_deleted == 0
    assert read_rows(table.path).to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("kind", "value", "given"),
    [
        ("decimal(20, 4)", HALF, "'1.5'"),
        ("float", "cast(0.1 as float)", "0.1D"),
        ("int", "7", "7.0D"),
        ("double", "7.0D", "'7'"),
    ],
)
def test_types_that_may_read_otherwise_are_refused(spark, tmp_path, kind, value, given):
    table = make(spark, tmp_path / "t", kind, value)
    with pytest.raises(SchemaError, match="column 'k'.*cast it to"):
        table.delete(spark.sql(f"select {given} as k"))


def test_partition_columns_are_looked_at_too(spark, tmp_path):
    table = make(spark, tmp_path / "t", "decimal(20, 4)", HALF, record_key=["id"], partition_by=["k"])
    assert table.delete(spark.sql("select 1 as id, 1.5 as k")).rows_deleted == 1


def test_whole_numbers_and_their_text_are_one_key(spark, tmp_path):
    table = make(spark, tmp_path / "t", "int", "7")
    assert table.delete(spark.sql("select '7' as k")).rows_deleted == 1
