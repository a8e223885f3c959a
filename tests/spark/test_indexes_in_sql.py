"""CREATE INDEX, DROP INDEX and SHOW INDEXES, as Hudi's Spark SQL writes them."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, StatementError
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.sql.router import StatementRouter

from tests.helpers.metadata_table import differences
from tests.spark.test_statement_router import SCHEMA, Folder

NAME = f"{SCHEMA}.orders"


@pytest.fixture
def sql(spark, tmp_path):
    """Run statements as dbt does, on a table of version 9 without a metadata table."""
    spark.sql(f"create database if not exists {SCHEMA}")
    made = HudiTable.create(
        spark, str(tmp_path / "orders"), name="orders", record_key=["id"],
        options={"hoodie.write.table.version": "9", "hoodie.metadata.enable": "false"},
    )  # fmt: skip
    made.insert(spark.sql("select 'k' || id id, id n, named_struct('a', id) s from range(9)"))
    register_table(spark, TableName(SCHEMA, "orders"), made.storage)
    router = StatementRouter(Folder(tmp_path))

    def run(statement):
        found = router.route(spark, statement)
        assert found is not None, statement
        return [tuple(row) for row in found.frame.collect()] if found.frame is not None else found.name

    yield run
    spark.sql(f"drop database {SCHEMA} cascade")


def shown(*names):
    return [(name, name, "") for name in names]


@pytest.mark.core
def test_indexes_are_created_shown_and_dropped(sql, tmp_path):
    assert sql(f"show indexes from {NAME}") == []
    assert sql(f"create index record_index on {NAME} (ID)") == "CREATE INDEX record_index"
    sql(f"create index if not exists record_index on table {NAME} using record_index (id)")
    sql(f"create index bloom_filters on {NAME} using BLOOM_FILTERS (id)")
    sql(f"create index column_stats on {NAME} using column_stats (N, s.a)")
    assert differences(open_storage(str(tmp_path / "orders"))) == []
    expected = shown("bloom_filters", "column_stats", "record_index")
    assert sql(f"show indexes /* of orders */ in table `{SCHEMA}`.orders") == expected
    assert sql(f"drop index column_stats on table {NAME}") == "DROP INDEX column_stats"
    sql(f"drop index if exists column_stats on {NAME}")
    assert sql(f"-- what is left\nSHOW INDEXES IN {NAME}") == shown("bloom_filters", "record_index")


def test_a_secondary_index_has_a_name_of_its_own(sql):
    assert sql(f"create index by_n on {NAME} (N)") == "CREATE INDEX secondary_index_by_n"
    sql(f"create index if not exists by_n on {NAME} using secondary_index (n)")
    secondary = ("secondary_index_by_n", "secondary_index", "n")
    assert sql(f"show indexes in {NAME}") == [*shown("record_index"), secondary]
    assert sql(f"drop index by_n on {NAME}") == "DROP INDEX secondary_index_by_n"
    assert sql(f"show indexes in {NAME}") == shown("record_index")


def test_an_expression_index_has_its_expression_in_options(sql):
    said = f"create index by_day on {NAME} using column_stats (N) options (expr = 'from_unixtime', format = 'yyyy-MM-dd')"
    assert sql(said) == "CREATE INDEX expr_index_by_day"
    sql(said.replace("index by_day", "index if not exists by_day"))
    sql(
        f"create index i on {NAME} using column_stats (id) "
        "options (len = '2', expr = 'SUBSTRING', pos = '1', 'hoodie.metadata.compact.max.delta.commits' = '3')"
    )
    named = [("expr_index_by_day", "column_stats", "n"), ("expr_index_i", "column_stats", "id")]
    assert sql(f"show indexes in {NAME}") == named
    assert sql(f"drop index by_day on {NAME}") == "DROP INDEX expr_index_by_day"
    assert sql(f"show indexes in {NAME}") == named[1:]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("create index i on {} using secondary_index (s)", "column 's' of secondary_index_i has type struct"),
        ("create index i on {} (n, s)", "columns of secondary_index_i are n, s; a secondary index has one"),
        ("create index i on {} using lucene (n)", "index is 'lucene'; legal values: files, column_stats, bloom_filters"),
        ("create index i on {} using record_index (id)", "write CREATE INDEX record_index ON"),
        ("create index record_index on {} using record_index (n)", r"columns are n; write \(id\)"),
        ("create index column_stats on {} using column_stats (x, s)", "columns has x, s, of which"),
        ("create index i on {} using column_stats (n) options (expr = 'abs')", "expression is abs.n.; legal expressions: year"),
        ("create index i on {} using bloom_filters (n) options (expr = 'year')", "of an expression; write USING column_stats"),
        ("create index i on {} using column_stats (n) options (expr = 'year')", "but 'n' has type int64; year"),
        ("create index i on {} using column_stats (id) options (expr = 'substring', len = '1')", "expression is substring.id, 1."),
        ("create index column_stats on {} using column_stats (n options (a = 'b'))", "OPTIONS of column n .* has a"),
        ("drop index column_stats on {}", "has no index column_stats; its indexes: files, record_index"),
        ("create index record_index on {} (id)", "record_index is there already; DROP INDEX drops it"),
    ],
)  # fmt: skip
def test_what_is_no_index_is_refused_with_the_legal_ones(sql, statement, reason):
    sql(f"create index record_index on {NAME} (id)")
    with pytest.raises((StatementError, ConfigError), match=reason):
        sql(statement.format(NAME))
    assert sql(f"show indexes in {NAME}") == shown("record_index")


def test_options_of_the_statement_are_those_of_the_call(sql, tmp_path):
    sql(
        f"create index record_index on {NAME} (id) "
        "options ('hoodie.metadata.record.index.min.filegroup.count' = '3')"
    )
    folder = tmp_path / "orders" / ".hoodie" / "metadata" / "record_index"
    assert len({path.name.split("_")[0] for path in folder.glob("record-index-*")}) == 3


def test_indexes_of_other_tables_are_left_to_spark(spark, tmp_path):
    router = StatementRouter(Folder(tmp_path))
    assert router.route(spark, "show indexes in nowhere.orders") is None
    assert router.route(spark, "show tables") is None
