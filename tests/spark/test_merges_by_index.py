"""Merges on a table with a metadata table read only the files that may hold a key of the source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.sql.router import StatementRouter
from hudi_engine.spark.write.rows.batch import align
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.spark.write.rows.stored_rows import stored_rows
from hudi_engine.table.state import TableState
from hudi_engine.table.write.fit import FitPolicy
from pyspark.errors import PySparkException

from tests.helpers.metadata_table import differences
from tests.spark.test_service_runner import jobs_of
from tests.spark.test_statement_router import SCHEMA, Folder

pytestmark = pytest.mark.sampled

NAME = f"{SCHEMA}.orders"
INDEXES = {
    "record_index": {"hoodie.metadata.global.record.level.index.enable": "true"},
    "column_stats": {"hoodie.metadata.index.column.stats.enable": "true"},
}
PARTITIONS = 6


@pytest.fixture(params=INDEXES)
def table(request, spark, tmp_path):
    """A table of six partitions with three keys each, k00 to k17."""
    options = {"hoodie.write.table.version": "9", "hoodie.metadata.enable": "true", **INDEXES[request.param]}
    made = HudiTable.create(
        spark, str(tmp_path / "orders"), name="orders", record_key=["id"], partition_by=["p"], options=options
    )
    made.insert(
        spark.sql("select format_string('k%02d', id) id, id n, concat('p', int(id / 3)) p from range(18)")
    )
    spark.sql(f"create database if not exists {SCHEMA}")
    register_table(spark, TableName(SCHEMA, "orders"), made.storage)
    yield made
    spark.sql(f"drop database {SCHEMA} cascade")


@contextmanager
def only(table: HudiTable, *partitions: int) -> Iterator[None]:
    """Damage the files of all other partitions, so that who reads one fails."""
    others = [each for each in range(PARTITIONS) if each not in partitions]
    files = [path for each in others for path in Path(table.path).glob(f"*p{each}/*.parquet")]
    assert len(files) == len(others)
    kept = {path: path.read_bytes() for path in files}
    for path, data in kept.items():
        path.write_bytes(b"x" * len(data))
    try:
        yield
    finally:
        for path, data in kept.items():
            path.write_bytes(data)


def run(spark, tmp_path, source, clauses, on="o.id = s.id"):
    statement = f"merge into {NAME} o using ({source}) s on {on} {clauses}"
    return StatementRouter(Folder(tmp_path)).route(spark, statement).write


def values(table):
    return {row.id: row.n for row in HudiTable.open(table.spark, table.path).snapshot().collect()}


SOURCE = "select 'k04' id, 100L n, 'p1' p union all select 'new', 7L, 'p1'"
UPSERT = "when matched then update set n = s.n when not matched then insert *"


def test_a_merge_in_sql_reads_the_files_of_its_keys(spark, tmp_path, table):
    with only(table, 1):
        result = run(spark, tmp_path, SOURCE, UPSERT)
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    found = values(table)
    assert found["k04"] == 100 and found["new"] == 7 and len(found) == 19
    assert differences(table.storage) == []


def test_a_merge_of_clauses_reads_the_files_of_its_keys(spark, table):
    rows = spark.sql("select 'k04' id, 100L n, 'p1' p union all select 'k05', 1L, 'p1'")
    with only(table, 1):
        table.merge(rows, MergeClauses(matched_condition="DBT_INTERNAL_SOURCE.n > DBT_INTERNAL_DEST.n"))
    found = values(table)
    assert (found["k04"], found["k05"], len(found)) == (100, 5, 18)


def test_a_match_condition_reads_the_files_of_its_keys(spark, table):
    rows = spark.sql("select 'k04' id, 100L n, 'p1' p")
    with only(table, 1):
        table.upsert(rows, match_condition="DBT_INTERNAL_DEST.n < 10")
    assert values(table)["k04"] == 100


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (f"update {NAME} set n = n + 100 where id = 'k04'", {"k04": 104}),
        (f"update {NAME} as o set n = 0 where o.id in ('k03', 'k05') and o.n < 5", {"k03": 0}),
        (f"delete from {NAME} where id = 'k04' and n = 4", {"k04": None}),
        (
            f"delete from {NAME} where orders.id >= 'k03' and orders.id < 'k06'",
            dict.fromkeys(["k03", "k04", "k05"]),
        ),
    ],
)
def test_an_update_and_a_delete_read_the_files_of_their_condition(
    spark, tmp_path, table, statement, expected
):
    is_answered = ">=" not in statement or "column_stats" in table.config.metadata_partitions
    before = values(table)
    with only(table, 1) if is_answered else nullcontext():
        StatementRouter(Folder(tmp_path)).route(spark, statement)
    after = {key: n for key, n in {**before, **expected}.items() if n is not None}
    assert values(table) == after
    assert differences(table.storage) == []


def test_a_condition_that_no_index_answers_changes_rows_of_every_file(spark, tmp_path, table):
    StatementRouter(Folder(tmp_path)).route(spark, f"update {NAME} set n = -1 where id = 'k04' or n = 17")
    assert {key for key, n in values(table).items() if n == -1} == {"k04", "k17"}


@pytest.mark.parametrize(
    ("clauses", "on"),
    [
        ("when matched then update set n = s.n when not matched by source then delete", "o.id = s.id"),
        (UPSERT, "o.id = s.id or o.n = s.n"),
        ("when matched then update set n = s.n when not matched then insert (id, n, p) values ('k09', 1, 'p1')", "o.id = s.id"),
        (UPSERT, "o.id = lower(s.id)"),
    ],
)  # fmt: skip
def test_a_merge_that_may_meet_other_keys_reads_every_file(spark, tmp_path, table, clauses, on):
    with only(table, 1), pytest.raises((PySparkException, HudiError)):
        run(spark, tmp_path, SOURCE, clauses, on)


def test_a_source_that_gives_other_rows_each_time_is_evaluated_once(spark, tmp_path, table):
    source = "select format_string('k%02d', cast(floor(rand() * 18) as int)) id, -1L n, 'p9' p from range(3)"
    run(spark, tmp_path, f"select distinct * from ({source})", UPSERT)
    found = values(table)
    assert len(found) == 18 and -1 in found.values()


def test_a_merge_frees_the_rows_that_it_kept_also_when_it_fails(spark, table):
    spark.catalog.clearCache()  # of other tests
    rows = spark.sql("select format_string('k%02d', cast(rand() as int)) id, 1L n, 'p1' p from range(2)")
    table.upsert(rows, match_condition="DBT_INTERNAL_DEST.n < 10")
    assert not rows.is_cached and not kept_plans(spark)
    for call in (
        lambda: table.upsert(rows, match_condition="nobody < 10"),
        lambda: table.merge(rows, MergeClauses(matched_condition="nobody < 10")),
    ):
        with pytest.raises(ConfigError, match="nobody"):
            call()
        assert not kept_plans(spark)


def kept_plans(spark):
    """Tell whether Spark keeps the rows of any query."""
    return not spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_the_keys_of_a_batch_cost_one_job(spark, table):
    rows, options = spark.sql("select 'k04' id, 1L n, 'p1' p"), resolve_options({})
    state = TableState.load(table.storage)
    batch = align(rows, state.data_schema(), FitPolicy())
    assert jobs_of(spark, lambda: stored_rows(spark, state, batch, options)) == 1
