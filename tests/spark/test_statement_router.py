"""SQL statements run by the engine alone, on a warehouse of one schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import StatementError
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.spark.catalog import TableName, find_entry, list_entries, register_table, registered_base
from hudi_engine.spark.sql.router import StatementRouter
from hudi_engine.spark.sql.warehouse import NewTable
from hudi_engine.table.write.result import WriteResult
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

SCHEMA = "routed"


class Folder:
    """The tables of one schema, each in the folder of its name."""

    directory = None
    target_schema = SCHEMA

    def __init__(self, root: Path) -> None:
        self.root = root

    def options_at(self, base: str) -> Mapping[str, str]:
        return {}

    @contextmanager
    def one_writer(self, session: SparkSession, base: str) -> Iterator[None]:
        yield

    def entries(self, session: SparkSession, schema: str) -> list[Any]:
        return list_entries(session, schema)

    def entry(self, session: SparkSession, schema: str, name: str) -> Any:
        return find_entry(session, TableName(schema, name))

    def hudi_base(self, session: SparkSession, schema: str, name: str) -> str | None:
        try:
            return registered_base(session, TableName(schema, name))
        except AnalysisException:
            return None

    def table(self, session: SparkSession, base: str) -> HudiTable:
        return HudiTable.open(session, base)

    def show(self, session: SparkSession, schema: str, name: str, table: HudiTable) -> None:
        register_table(session, TableName(schema, name), table.storage, table.config)

    def create_table(self, session: SparkSession, new: NewTable) -> WriteResult | None:
        base = str(self.root / new.name.name)
        keys = [key for key in new.properties.get("primaryKey", "").split(",") if key]
        assert new.rows is not None
        rows = new.rows()
        table = HudiTable.create(
            session, base, name=new.name.name, schema=rows.schema, record_key=keys or None
        )
        result = table.insert(rows)
        self.show(session, new.name.database, new.name.name, HudiTable.open(session, base))
        return result


@pytest.fixture
def router(spark: SparkSession, tmp_path: Path) -> Iterator[StatementRouter]:
    spark.sql(f"create database if not exists {SCHEMA}")
    warehouse: Any = Folder(tmp_path)
    yield StatementRouter(warehouse)
    spark.sql(f"drop database {SCHEMA} cascade")


def rows(spark: SparkSession) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(f"{SCHEMA}.t").collect())


def test_statements_return_what_they_wrote(spark: SparkSession, router: StatementRouter) -> None:
    made = router.route(
        spark,
        f"create table {SCHEMA}.t using hudi tblproperties (primaryKey = 'id') as select 1 as id, 'a' as v "
        "union all select 2, 'b'",
    )
    assert made is not None and made.write is not None and made.write.rows_inserted == 2
    merged = router.route(
        spark,
        f"merge into {SCHEMA}.t using (select 2 as id, 'B' as v union all select 3, 'c') s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
    )
    assert merged is not None and merged.write is not None
    assert (merged.write.rows_inserted, merged.write.rows_updated) == (1, 1)
    router.route(spark, f"delete from {SCHEMA}.t where id = 1")
    assert rows(spark) == [(2, "B"), (3, "c")]


def test_a_merge_logs_the_columns_that_its_clauses_set(
    spark: SparkSession, router: StatementRouter, tmp_path: Path
) -> None:
    HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key="id", table_type="mor",
        options={"hoodie.write.table.version": "9"},
    ).upsert(spark.sql("select 1 id, 'a' v, 'x' w union all select 2, 'b', 'y'"))  # fmt: skip
    table = HudiTable.open(spark, str(tmp_path / "t"))
    register_table(spark, TableName(SCHEMA, "t"), table.storage, table.config)
    router.route(
        spark,
        f"merge into {SCHEMA}.t using (select 2 as id, 'B' as v) s on t.id = s.id when matched then update set v = s.v",
    )
    blocks = [block for log in tmp_path.glob("t/.*.log.*") for block in read_blocks(log.read_bytes())]
    assert [block.is_partial for block in blocks] == [True]
    assert '"name":"w"' not in str(blocks[0].schema)
    assert rows(spark) == [(1, "a", "x"), (2, "B", "y")]


def test_queries_are_left_to_spark(spark: SparkSession, router: StatementRouter) -> None:
    assert router.route(spark, "select 1") is None
    assert router.route(spark, "show databases") is None


def test_what_cannot_be_run_is_a_statement_error(spark: SparkSession, router: StatementRouter) -> None:
    router.route(spark, f"create table {SCHEMA}.t using hudi as select 1 as id")
    with pytest.raises(StatementError, match="no record key"):
        router.route(
            spark, f"merge into {SCHEMA}.t using (select 1 as id) s on t.id = s.id when matched then delete"
        )
    with pytest.raises(StatementError, match="EXECUTE IMMEDIATE is refused"):
        router.route(spark, f"execute immediate 'delete from {SCHEMA}.t'")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.spark.sql.insert.into.operation", "upsert"),
        ("hoodie.datasource.write.operation", "delete"),
        ("hoodie.sql.insert.mode", "strict"),
    ],
)
def test_an_insert_that_is_to_be_another_operation_is_refused(
    spark: SparkSession, router: StatementRouter, key: str, value: str
) -> None:
    router.route(
        spark, f"create table {SCHEMA}.t using hudi tblproperties (primaryKey = 'id') as select 1 id"
    )
    spark.conf.set(key, value)
    try:
        with pytest.raises(StatementError, match=f"{key} is '{value}'.*MERGE INTO upserts"):
            router.route(spark, f"insert into {SCHEMA}.t values (1)")
    finally:
        spark.conf.unset(key)
