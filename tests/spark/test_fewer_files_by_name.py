"""Queries by name on a table with a metadata table: they read the files that may hold a row, and find what all files hold."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.sql.own_rows import reads_table
from hudi_engine.spark.sql.router import StatementRouter

from tests.spark.test_statement_router import SCHEMA, Folder

pytestmark = pytest.mark.sampled

INDEXES = {
    "hoodie.write.table.version": "9",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
NAME = f"{SCHEMA}.orders"


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """A table of three partitions with three rows each, of which one was updated."""
    spark.sql(f"create database if not exists {SCHEMA}")
    path = str(tmp_path_factory.mktemp("fewer") / "orders")
    made = HudiTable.create(
        spark, path, name="orders", record_key=["id"], partition_by=["p"], options=INDEXES
    )
    rows = "select 'k' || id id, id n, 'p' || (id % 3) p, date_add(date'2024-01-01', int(id)) d from range(9)"
    made.upsert(spark.sql(rows))
    made.upsert(spark.sql("select 'k4' id, 100L n, 'p1' p, date'2025-01-01' d"))
    register_table(spark, TableName(SCHEMA, "orders"), made.storage)
    yield made
    spark.sql(f"drop database {SCHEMA} cascade")


@pytest.fixture
def rewritten(spark, tmp_path, table):
    router = StatementRouter(Folder(tmp_path))
    return lambda query: router.with_states(spark, query, lambda stem: f"{stem}_own")


@pytest.mark.parametrize(
    ("query", "files"),
    [
        (f"select * from {NAME} where id = 'k4'", 1),
        (f"select o.n from {NAME} o where o.id in ('k4', 'k5') and n > 5", 2),
        (f"select orders.* from {NAME} where orders.n >= 100", 1),
        (f"select id from {NAME} where 100 = n or id is null", 3),
        (f"select id from {NAME} where d = '2025-01-01'", 1),
        (f"select id, n from (select * from {NAME} where date'2024-12-31' < d) x where n > 1", 1),
        (f"select id from {NAME} where n = '100'", 3),
        (f"select count(*) from {NAME} where id = 'none'", 0),
        (
            f"select a.id from {NAME} a join (select id from {NAME} where id = 'k1') b on a.id = b.id where a.n < 3",
            3,
        ),
        ("with orders as (select 'x' id) select * from orders where id = 'k4'", None),
        (f"with o as (select * from {NAME} where id = 'k4') select n from o where n > 1", 1),
        (f"with a as (select 1 x), b as (select * from {NAME} where n >= 100) select b.* from a, b", 1),
        (f"select * from {NAME} where n between 99 and 1000", 1),
        (f"select * from {NAME} where n not between 99 and 1000", 3),
        (f"select * from {NAME} where id = 'k4' or id = 'k1'", 1),
        (f"select * from {NAME} where (n = 100 or n = 99) and p < 'p3'", 1),
        (f"select * from {NAME} where id = 'k4' or upper(id) = 'K5'", 3),
        (f"select * from {NAME} where not (id = 'k4')", 3),
        (f"select * from {NAME} where d >= cast('2025-01-01' as date)", 1),
        (f"select o.id, b.x from {NAME} o join (select 'k4' x) b on o.id = b.x where o.id = 'k4'", 1),
        (f"select o.id, b.x from (select 'k4' x) b left join {NAME} o on o.id = b.x where o.n = 100", 1),
        (f"select o.id, b.x from (select 'k9' x) b full join {NAME} o on o.id = b.x where o.n = 100", 1),
        (
            f"select o.id, b.x from (select 'k9' x) b full join {NAME} o on o.id = b.x where o.n = 100 or b.x = 'k9'",
            3,
        ),
        (f"select a.id, b.n from {NAME} a join {NAME} b on a.id = b.id where a.id = 'k4' and b.n > 99", 1),
        (f"select o.id from {NAME} o join (select 100 n, 'k4' x) b on o.id = b.x where b.n = 100", 3),
    ],
)
def test_a_query_finds_the_same_in_fewer_files(spark, rewritten, query, files):
    found = spark.sql(rewritten(query))
    expected = spark.sql(query)
    assert found.columns == expected.columns
    assert sorted(found.collect(), key=repr) == sorted(expected.collect(), key=repr)
    if files is not None:
        assert len(found.inputFiles()) == files


def test_a_replaced_table_still_counts_as_read(spark, rewritten, table):
    found = spark.sql(rewritten(f"select * from {NAME} where id = 'k4'"))
    assert reads_table(found, TableName(SCHEMA, "orders"))


def test_other_statements_and_conditions_keep_the_name(rewritten, table):
    for query in (
        f"select * from {NAME}",
        f"select * from {NAME} where upper(id) = 'K4'",
        f"create view v as select * from {NAME} where id = 'k4'",
        f"select * from {NAME} where n between 0 and 1000",
        f"select id from {NAME} o join (select 1 m) b on n = m where n > 99",
        f"with o as (select * from {NAME} where id = 'k4') insert into {NAME} select * from o",
    ):
        assert rewritten(query) == query


def test_explain_has_the_files_of_each_table_and_what_skipped_the_others(spark, tmp_path, table):
    router = StatementRouter(Folder(tmp_path))
    query = f"select n from {NAME} o where o.id = 'k4' and n > 0"
    found = router.run(spark, query, lambda stem: f"{stem}_run")
    (line,) = found.name.split("; ", 1)[1:]
    assert line.startswith(f"{NAME}: 1 of 1 file slices are read, ")
    assert line.endswith(" bytes: 2 of 3 partitions skipped by record_index")
    (row,) = router.run(spark, f"explain formatted {query}", lambda stem: f"{stem}_told").frame.collect()
    assert row.plan.startswith("== Physical Plan ==")
    assert row.plan.endswith(f"\n== Hudi Files ==\n{line}\n")
    query = f"explain select n from {NAME} where upper(id) = 'K4'"
    (row,) = router.run(spark, query, lambda stem: f"{stem}_none").frame.collect()
    assert f"== Hudi Files ==\n{NAME}: no index is used, as the condition compares no text" in row.plan


@pytest.fixture(scope="module")
def times(spark, tmp_path_factory):
    """A table with a file for each of three days in UTC, the last with an hour of the next day in Berlin."""
    path = str(tmp_path_factory.mktemp("times") / "times")
    made = HudiTable.create(spark, path, name="times", record_key=["id"], partition_by=["p"], options=INDEXES)
    rows = """
        select 'a' id, timestamp'2024-03-30 12:00:00Z' ts, date'2024-03-30' d, 'x' p
        union all
        select 'b', timestamp'2024-03-31 00:30:00Z', date'2024-03-31', 'y' union all
        select 'c', timestamp'2025-01-01 22:30:00Z', date'2025-01-01', 'z' union all
        select 'd', timestamp'9999-12-31 23:59:59Z', date'2024-06-01', 'u'
    """
    made.upsert(spark.sql(rows))
    register_table(spark, TableName(SCHEMA, "times"), made.storage)
    return made


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("ts = timestamp'2024-03-31 00:30:00Z'", 1),
        ("ts > '2024-12-01'", 2),
        ("ts < '2024-03-30 12:00:00.000001'", None),
        ("ts >= date'2024-03-31'", None),
        ("to_date(ts) = '2024-03-30'", 1),
        ("to_date(ts) = date'2025-01-01'", 1),
        ("cast(ts as date) in ('2024-03-30', '2024-03-31')", 2),
        ("'2025' = date_format(ts, 'yyyy')", 1),
        ("date_format(ts, 'yyyy-MM') > '2024-03'", 2),
        ("date_format(ts, 'yyyyMMdd') < '20240229'", 4),
        ("year(ts) >= 9999", None),
        ("to_date(ts) > '2025-06-01'", 1),
        ("date_format(d, 'yyyyMMdd') <= '20240330'", 1),
        ("year(d) >= 2025", 1),
        ("year(ts) < 2024", 0),
        ("date_format(ts, 'MM-yyyy') = '03-2024'", 4),
        ("date_format(ts, 'yyyy-MM-dd') = '2024-3-30'", 4),
        ("to_date(ts) = null", None),
        ("hour(ts) = 12", 4),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Los_Angeles", "+05:30"])
def test_conditions_on_times_find_the_same_in_fewer_files(
    spark, rewritten, table, times, condition, files, zone
):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        query = f"select id from {SCHEMA}.times where {condition}"
        found = spark.sql(rewritten(query))
        assert sorted(found.collect()) == sorted(spark.sql(query).collect())
        if files is not None and zone == "UTC":
            assert len(found.inputFiles()) == files
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
