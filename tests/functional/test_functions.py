"""SQL functions of Spark 4 as dbt resources, and DEFAULT, which a Hudi table does not keep."""

from __future__ import annotations

import json
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.functions import test_udfs as suite
from dbt.tests.util import run_dbt
from pyspark import __version__

from tests.functional.conftest import CATALOG

spark4 = pytest.mark.skipif(__version__.startswith("3."), reason="SQL functions came with Spark 4")


@spark4
class TestUDFsBasic(suite.UDFsBasic):
    def test_the_next_process_calls_it_and_a_view_that_calls_it_is_restored(self, project: Any) -> None:
        project.run_sql("create view {schema}.doubled as select {schema}.price_for_xlarge(21) as price")
        forget(project)
        assert project.run_sql("select price from {schema}.doubled", fetch="one")[0] == 42
        project.run_sql("drop function {schema}.price_for_xlarge")
        forget(project)
        with pytest.raises(Exception, match="price_for_xlarge"):
            project.run_sql("select {schema}.price_for_xlarge(1)", fetch="one")

    def test_one_that_is_there_stays_in_this_process_and_the_next(self, project: Any) -> None:
        for price in (1, 2):
            project.run_sql(
                f"create function if not exists {{schema}}.Price_for_xlarge() returns int return {price}"
            )
        for _ in range(2):
            assert project.run_sql("select {schema}.price_for_xlarge()", fetch="one")[0] == 1
            forget(project)
        project.run_sql("drop function {schema}.price_for_xlarge")

    @pytest.mark.skipif(CATALOG != "directory", reason="another catalog keeps functions itself")
    def test_one_that_another_process_has_made_meanwhile_stays_where_it_is_not_to_be_replaced(
        self, project: Any
    ) -> None:
        place = Path(project.project_root) / "warehouse" / project.test_schema / "meanwhile.function.json"
        statement = f"create function {project.test_schema}.meanwhile() returns int return 1"
        told = {"format": 1, "database": project.test_schema, "statement": statement}
        place.write_text(json.dumps(told))
        project.run_sql("create function if not exists {schema}.Meanwhile() returns int return 2")
        assert project.run_sql("select {schema}.meanwhile()", fetch="one")[0] == 1
        assert json.loads(place.read_text()) == told
        project.run_sql("drop function {schema}.meanwhile")


def forget(project: Any) -> None:
    """Bring a project's warehouse into the state a new process finds it in."""
    connections = project.adapter.connections
    with project.adapter.connection_named("forget"), connections.work("forget") as session:
        session.sql(f"drop view if exists {project.test_schema}.doubled")
        session.sql(f"drop function if exists {project.test_schema}.price_for_xlarge")
        connections.warehouse.directory.load(session)


@spark4
@pytest.mark.long
class TestDeterministicUDF(suite.DeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "DETERMINISTIC" in sql and "NOT" not in sql


@spark4
class TestSqlUDFDefaultArgSupport(suite.SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


@spark4
@pytest.mark.long
class TestCanFindScalarFunctionRelation(suite.CanFindScalarFunctionRelation):
    pass


@pytest.mark.skipif(not __version__.startswith("3."), reason="SQL functions exist")
@pytest.mark.core
class TestFunctionsOfOldSpark(suite.UDFsBasic):
    def test_udfs(self, project: Any, sql_event_catcher: Any) -> None:
        results = run_dbt(["build"], expect_pass=False)
        assert "SQL functions need PySpark 4" in str(results.results[0].message)


class TestDefaults:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "select 1 as id"}

    @pytest.mark.parametrize(
        ("statement", "said"),
        [
            (
                "create table {schema}.t (id int, c string default 'y')",
                "column c of .*DEFAULT 'y' is not kept",
            ),
            ("create table {schema}.t (id int, c int generated always as (id + 1))", "GENERATED columns"),
            (
                "alter table {schema}.m add column c string default 'x'",
                "column c of .*DEFAULT 'x' is not kept",
            ),
            ("alter table {schema}.m alter column id set default 7", "column id of .*DEFAULT 7 is not kept"),
        ],
    )
    def test_a_value_that_would_be_dropped_is_refused(self, project: Any, statement: str, said: str) -> None:
        project.run_sql("create table if not exists {schema}.m (id int)")
        with pytest.raises(Exception, match=said):
            project.run_sql(statement)
        assert "t" not in {row[1] for row in project.run_sql("show tables in {schema}", fetch="all")}
        assert "c" not in {row[0] for row in project.run_sql("describe {schema}.m", fetch="all")}

    @pytest.mark.parametrize(
        ("statement", "said"),
        [
            ("create table {schema}.t (id int, primary key (id))", "no constraints .PrimaryKey.*primaryKey = 'id'"),
            ("create table {schema}.t (id int check (id > 0), constraint c unique (id))", "no constraints .*(Check|Unique)"),
            ("create table {schema}.t (id int, c string collate unicode_ci)", "column c of .*a collation is not kept"),
            ("create table {schema}.t (id int, c string) default collation unicode_ci", "a collation is not kept"),
            ("create table {schema}.t (id int, c int) cluster by (c)", "hudi_cluster"),
            ("create table {schema}.t (id int, c timestamp) partitioned by (days(c))", "days.c.. of .* is refused"),
            ("create table {schema}.t (id int, c int) clustered by (id) sorted by (c) into 4 buckets", "is refused"),
        ],
    )  # fmt: skip
    def test_what_a_table_would_not_keep_is_refused(self, project: Any, statement: str, said: str) -> None:
        with pytest.raises(Exception, match=f"{said}|PARSE_SYNTAX_ERROR|DATATYPE"):
            project.run_sql(statement)
        assert "t" not in {row[1] for row in project.run_sql("show tables in {schema}", fetch="all")}

    @pytest.mark.parametrize(
        "spelled", ["primarykey = 'id', orderingfields = 'c'", "PRIMARYKEY = 'id', preCombineField = 'c'"]
    )
    def test_the_names_of_key_and_order_count_in_any_case(self, project: Any, spelled: str) -> None:
        project.run_sql(f"create table {{schema}}.keyed (id int, c int) using hudi tblproperties ({spelled})")
        try:
            (folder,) = (Path(each) for each in glob(f"{project.project_root}/warehouse/*/keyed"))
            said = (folder / ".hoodie" / "hoodie.properties").read_text()
            assert "hoodie.table.recordkey.fields=id" in said
            assert "hoodie.table.precombine.field=c" in said
        finally:
            project.run_sql("drop table {schema}.keyed")

    def test_null_is_every_columns_default_already(self, project: Any) -> None:
        project.run_sql("create table if not exists {schema}.m (id int)")
        with project.adapter.connection_named("plain"):
            project.adapter.execute(
                f"alter table {project.test_schema}.m add columns (d string default null)"
            )
        project.run_sql("insert into {schema}.m (id) values (1)")
        assert [tuple(row) for row in project.run_sql("select id, d from {schema}.m", fetch="all")] == [
            (1, None)
        ]
