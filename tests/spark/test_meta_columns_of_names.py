"""Hudi's meta columns in queries by name: they can be selected, and ``*`` leaves them out."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.sql.own_rows import reads_table
from hudi_engine.spark.sql.router import StatementRouter
from pyspark.errors import AnalysisException

from tests.spark.test_statement_router import SCHEMA, Folder

pytestmark = pytest.mark.sampled

COMMIT = "_hoodie_commit_time"


@pytest.fixture(scope="module")
def instants(spark, tmp_path_factory):
    """A copy-on-write and a merge-on-read table, each of two commits, of which the second updates a row."""
    spark.sql(f"create database if not exists {SCHEMA}")
    found = {}
    for kind in ("cow", "mor"):
        path = str(tmp_path_factory.mktemp("meta") / kind)
        table = HudiTable.create(spark, path, name=kind, record_key=["id"], table_type=kind)
        found[kind] = [
            table.upsert(spark.sql(query)).instant
            for query in ("select id, 'old' v from range(2)", "select 1L id, 'new' v")
        ]
        register_table(spark, TableName(SCHEMA, kind), table.storage)
    yield found
    spark.sql(f"drop database {SCHEMA} cascade")


@pytest.fixture
def run(spark, tmp_path, instants):
    router = StatementRouter(Folder(tmp_path))

    def rows(query, kind):
        text = query.format(t=f"{SCHEMA}.{kind}", c=COMMIT)
        found = spark.sql(router.with_states(spark, text, lambda stem: f"{stem}_own"))
        return sorted(tuple(row) for row in found.collect())

    return rows


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    "query",
    [
        "select {c}, id, v from {t}",
        "select t.{c}, t.id, t.v from {t} t",
        "with x as (select {c}, id, v from {t}) select * from x",
        "select * from (select {c}, id, v from {t}) as model",
        "select m.{c}, t.* from {t} t join (select id, {c} from {t}) m on m.id = t.id",
        "from {t} select {c}, id, v",
        "select {c}, id, v from (select * from {t} where id < 9 limit 10) part",
        "select p.{c}, id, v from (select * from (select * from {t}) limit 10) p lateral view explode(array(1)) e",
    ],
)
def test_a_query_may_name_meta_columns(run, instants, kind, query):
    first, second = instants[kind]
    assert run(query, kind) == [(first, 0, "old"), (second, 1, "new")]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_meta_columns_filter_group_and_order(run, instants, kind):
    first, second = instants[kind]
    assert run(f"select id from {{t}} where {{c}} > '{first}' order by {{c}}", kind) == [(1,)]
    assert run("select {c}, count(*) from {t} group by {c}", kind) == [(first, 1), (second, 1)]
    assert run("select id from {t} where {c} = (select max({c}) from {t})", kind) == [(1,)]
    assert run("select max(_hoodie_record_key), max(_hoodie_partition_path) from {t}", kind) == [("1", "")]


def test_the_read_optimized_name_has_those_of_base_files(run, instants):
    first, _ = instants["mor"]
    assert run("select {c}, v from {t}", "mor_ro") == [(first, "old"), (first, "old")]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_star_leaves_meta_columns_out(spark, run, kind):
    assert run("select * from {t} where '{c}' is not null", kind) == [(0, "old"), (1, "new")]
    assert run("select x.* from (select * from {t}) x, (select max({c}) from {t}) y", kind) == [
        (0, "old"),
        (1, "new"),
    ]
    assert run("select v, '{c}' from (select distinct * from {t} union select * from {t})", kind) == [
        ("new", COMMIT),
        ("old", COMMIT),
    ]
    assert run("select id, '{c}' from {t} natural join {t} x", kind) == [(0, COMMIT), (1, COMMIT)]
    for query in (
        "select *, {c} from {t}",
        "select t.*, t.{c} from {t} t",
        "select * from (select * from {t}) where {c} > ''",
    ):
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
            run(query, kind)


def test_other_queries_are_not_parsed(spark, tmp_path, monkeypatch):
    router = StatementRouter(Folder(tmp_path))
    monkeypatch.setattr("hudi_engine.spark.jvm.plans.parse", lambda *_: pytest.fail("parsed"))
    query = f"select id from {SCHEMA}.cow"
    assert router.with_states(spark, query, str) == query


def test_a_query_with_meta_columns_reads_its_tables(spark, tmp_path, instants):
    router = StatementRouter(Folder(tmp_path))
    query = f"select id, {COMMIT} from {SCHEMA}.cow where id > (select min(id) from {SCHEMA}.mor_rt)"
    frame = spark.sql(router.with_states(spark, query, lambda stem: f"{stem}_own"))
    assert reads_table(frame, TableName(SCHEMA, "cow"), bounds=False)
    assert reads_table(frame, TableName(SCHEMA, "mor"))
    assert not reads_table(frame, TableName(SCHEMA, "mor"), bounds=False)
    assert not reads_table(frame, TableName(SCHEMA, "other"))
