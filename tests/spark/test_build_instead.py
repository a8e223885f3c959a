"""A table built where other files are: those go when it is there, not before."""

from __future__ import annotations

import shutil

import pytest
from hudi_engine import HudiTable, StorageError
from hudi_engine.spark.front.rebuild import build_instead


@pytest.fixture
def folder(spark, tmp_path):
    """A folder with two rows in Parquet."""
    path = tmp_path / "t"
    spark.range(2).write.parquet(str(path))
    return path


def test_a_table_may_be_built_of_the_files_whose_place_it_takes(spark, folder):
    rows = spark.read.parquet(str(folder)).selectExpr("id + 1 as id")
    done = build_instead(spark, str(folder), rows, lambda: shutil.rmtree(folder), name="t", record_key=["id"])
    assert done.rows_inserted == 2
    table = HudiTable.open(spark, str(folder))
    assert sorted(row.id for row in table.snapshot().collect()) == [1, 2]
    assert [each.name for each in folder.parent.iterdir()] == ["t"]


def test_files_stay_where_the_table_cannot_be_built(spark, folder):
    rows = spark.read.parquet(str(folder)).selectExpr("if(id = 1, raise_error('no such row'), id) as id")
    with pytest.raises(Exception, match="no such row"):
        build_instead(spark, str(folder), rows, lambda: shutil.rmtree(folder), name="t")
    assert spark.read.parquet(str(folder)).count() == 2
    assert [each.name for each in folder.parent.iterdir()] == ["t"]


def build(spark, folder, make_room):
    build_instead(spark, str(folder), spark.range(3), make_room, name="t", record_key=["id"])


@pytest.mark.parametrize("error", [PermissionError, KeyboardInterrupt])
def test_files_that_could_not_be_moved_stay_and_the_table_beside_goes(spark, folder, error):
    def refused():
        raise error

    with pytest.raises(error):
        build(spark, folder, refused)
    assert spark.read.parquet(str(folder)).count() == 2
    assert [each.name for each in folder.parent.iterdir()] == ["t"]


@pytest.mark.parametrize("error", [PermissionError, KeyboardInterrupt])
def test_a_table_that_is_the_only_one_left_stays_beside(spark, folder, error):
    def half_done():
        shutil.rmtree(folder)
        raise error

    expected = StorageError if error is PermissionError else error
    with pytest.raises(expected):
        build(spark, folder, half_done)
    [side] = folder.parent.iterdir()
    assert HudiTable.open(spark, str(side)).snapshot().count() == 3
