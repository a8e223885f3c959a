"""Partitions that would lie inside of each other, of which other readers show one: they are refused."""

from __future__ import annotations

import pytest
from hudi_engine import DataError

from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table

pytestmark = pytest.mark.sampled

URL_ENCODE = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def rows(spark, *places):
    return spark.createDataFrame(
        [(number, 1, place) for number, place in enumerate(places)], "id int, ts bigint, dt string"
    )


@pytest.fixture(params=["upsert", "bulk_insert", "bulk_insert by tasks"])
def write(request):
    operation, _, by_tasks = request.param.partition(" ")
    options = {"hoodie.engine.small.batch.rows": "0"} if by_tasks else {}
    return lambda table, batch: getattr(table, operation)(batch, options=options)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize(
    ("first", "second"),
    [(["a"], ["a/b"]), (["a/b/c"], ["a"]), (["x"], ["a/b", "a"]), (["a/b"], ["a/b/c", "a/b"])],
)
def test_a_partition_inside_of_another_is_refused(spark, tmp_path, write, table_type, first, second):
    table = keyed_table(spark, tmp_path / "t", table_type)
    write(table, rows(spark, *first))
    with pytest.raises(DataError, match=r"would lie inside of partition .*urlencode=true"):
        write(table, rows(spark, *second))
    found = sorted(row.dt for row in table.snapshot().collect())
    assert found == first == sorted(dt for (dt,) in rows_by_hudi_rs(str(tmp_path / "t"), ["dt"]))
    write(table, rows(spark, "y"))  # nothing of the refused ones is in the way
    assert {row.dt for row in table.snapshot().collect()} >= {"y"}


def test_slashes_that_nest_nothing_are_folders(spark, tmp_path, write):
    table = keyed_table(spark, tmp_path / "t")
    places = ["a/b", "a/c", "d"]
    write(table, rows(spark, *places))
    write(table, rows(spark, *places))
    assert sorted({row.dt for row in table.snapshot().collect()}) == places
    assert sorted({dt for (dt,) in rows_by_hudi_rs(str(tmp_path / "t"), ["dt"])}) == places


def test_encoded_values_nest_nothing(spark, tmp_path, write):
    table = keyed_table(spark, tmp_path / "t", options=URL_ENCODE)
    write(table, rows(spark, "a", "a/b", "a/b/c"))
    assert sorted(row.dt for row in table.snapshot().collect()) == ["a", "a/b", "a/b/c"]
    assert len(rows_by_hudi_rs(str(tmp_path / "t"), ["id"])) == 3
