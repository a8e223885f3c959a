"""Batches that turn out small, though Spark's estimate of their query is large, are merged on the driver; rows are the same."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.format.config.declared.engine_options import EngineOptions

ESTIMATED = EngineOptions.SMALL_BATCH_BYTES.key
READ = EngineOptions.SMALL_PLAN_BYTES.key
# Beyond the second estimate, and of too much for the first.
TINY = {ESTIMATED: str(64 * 1024), READ: "1024"}

INDEXES = [
    {"hoodie.index.type": "BLOOM"},
    {"hoodie.index.type": "GLOBAL_SIMPLE"},
    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
]


@pytest.fixture
def session(spark):
    made = spark.newSession()
    made.range(3000).selectExpr(
        "id", "id % 50 as city", "concat('n', id) as name", "id as at"
    ).createOrReplaceTempView("orders")
    made.range(50).selectExpr("id as city", "concat('c', id) as called").createOrReplaceTempView("cities")
    return made


def create(session, folder, table_type="cow", options=None, **definition):
    return HudiTable.create(
        session, str(folder / "t"), name="t", table_type=table_type, options=options or {}, **definition
    )


def rows_of(session, folder, columns):
    frame = HudiTable.open(session, str(folder / "t")).snapshot()
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def test_a_join_of_small_tables_is_merged_on_the_driver_whatever_the_product_of_their_sizes(
    session, tmp_path, table_type
):
    table = create(session, tmp_path, table_type, record_key=["id"], precombine_field="at")
    joined = "select id, called, name, at + {} as at from orders join cities using (city) where id % {} = 0"
    assert table.upsert(session.sql(joined.format(0, 1))).path_taken == "driver"
    again = table.upsert(session.sql(joined.format(5, 3)), options={READ: "0"})
    assert again.path_taken == "driver", "evaluated, counted and fetched"
    expected = [(n, f"c{n % 50}", f"n{n}", n + 5 * (n % 3 == 0)) for n in range(3000)]
    assert rows_of(session, tmp_path, ["id", "called", "name", "at"]) == expected


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: index["hoodie.index.type"])
def test_few_rows_that_were_evaluated_and_counted_are_those_that_tasks_would_write(
    session, tmp_path, table_type, index
):
    definition = {"record_key": ["city"], "partition_by": ["part"], "precombine_field": "n"}
    query = (
        "select cast(city as int) as city, sum(at) as total, count(*) + {} as n, city % 3 as part from orders "
        "join cities using (city) where city % {} = 0 group by city"
    )
    found = {}
    for name, options in {
        "driver": TINY,
        "partitions": {**TINY, EngineOptions.SMALL_BATCH_ROWS.key: "0"},
    }.items():
        folder = tmp_path / name
        table = create(session, folder, table_type, index, **definition)
        for step in [(0, 1), (2, 2), (-1, 3)]:
            assert (
                table.upsert(session.sql(query.format(*step)), options={**options, **index}).path_taken
                == name
            )
        found[name] = rows_of(session, folder, ["city", "total", "n", "part"])
    assert found["driver"] == found["partitions"] and len(found["driver"]) == 50


def test_of_rows_with_one_key_the_later_stands_when_they_were_evaluated_first(session, tmp_path):
    table = create(session, tmp_path, record_key=["id"])
    twice = session.sql(
        "select id % 10 as id, id as v from (select id from orders join cities using (city) order by id)"
    )
    assert table.upsert(twice, options=TINY).path_taken == "driver"
    assert rows_of(session, tmp_path, ["id", "v"]) == [(n, 2990 + n) for n in range(10)]


def test_small_tables_whose_join_makes_many_rows_go_to_tasks(session, tmp_path):
    table = create(session, tmp_path, record_key=["a", "b"])
    many = session.sql(
        "select l.id as a, r.id as b from orders l join orders r on l.city = r.city where l.id < 600 and r.id < 600"
    )
    limit = {EngineOptions.SMALL_BATCH_ROWS.key: "1000"}
    assert table.upsert(many, options=limit).path_taken != "driver"
    rows = rows_of(session, tmp_path, ["a", "b"])
    assert len(rows) == len(set(rows)) == 50 * 12 * 12


def test_a_row_without_a_key_and_a_query_that_fails_are_told_as_ever(session, tmp_path):
    table = create(session, tmp_path, record_key=["id"])
    keyless = "select if(id = 7, null, id) as id, called from orders join cities using (city)"
    for options in ({}, TINY):
        with pytest.raises(Exception, match="null or empty record key"):
            table.upsert(session.sql(keyless), options=options)
        with pytest.raises(Exception, match="boom"):
            table.upsert(
                session.sql(
                    "select id, cast(raise_error('boom') as string) as x from orders join cities using (city)"
                ),
                options=options,
            )
    assert rows_of(session, tmp_path, []) == []
