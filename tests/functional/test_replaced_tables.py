"""CREATE OR REPLACE TABLE: what has the name stays until the new table is built."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException
from hudi_engine.errors import HudiError
from pyspark.errors import PySparkException

pytestmark = pytest.mark.sampled

MODEL = (
    "{{ config(materialized='table') }} select id + {{ var('more', 0) }} as id from {{ target.schema }}.named"
)
GROWN = """
{{ config(materialized='incremental', unique_key='id', tblproperties={'team': 'a'}) }} select 1 as id, 2 as n
"""
REFUSED = (DbtBaseException, HudiError, PySparkException)
# What may have the name, each with one row of 1.
NAMED = {
    "hudi": "create table {schema}.named using hudi as select 1 as id",
    "mor": "create table {schema}.named using hudi options (type 'mor', primaryKey 'id') as select 1 as id",
    "parquet": "create table {schema}.named using parquet as select 1 as id",
    "view": "create view {schema}.named as select 1 as id",
}
BROKEN = {
    "default": "create or replace table {schema}.named (id int, n int default 5) using hudi",
    "partition": "create or replace table {schema}.named (id int) using hudi partitioned by (nope)",
    "unknown column": "create or replace table {schema}.named using hudi as select nope from {schema}.named",
    "unknown table": "create or replace table {schema}.named using hudi as select * from {schema}.nowhere",
    "failing row": "create or replace table {schema}.named using hudi as select if(id = 1, raise_error('no'), id) as id from {schema}.named",
}


class TestReplacedTables:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"named.sql": MODEL, "grown.sql": GROWN}

    @pytest.fixture(params=NAMED)
    def named(self, project: Any, request: pytest.FixtureRequest) -> str:
        kind = str(request.param)
        for each in ("table", "view"):
            try:
                project.run_sql(f"drop {each} if exists {{schema}}.named")
            except REFUSED:
                continue
        project.run_sql(NAMED[kind])
        return kind

    def rows(self, project: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in project.run_sql("select * from {schema}.named", fetch="all")]

    def test_a_definition_or_query_that_fails_leaves_what_has_the_name(
        self, project: Any, named: str
    ) -> None:
        for why, statement in BROKEN.items():
            with pytest.raises(REFUSED):
                project.run_sql(statement)
            assert self.rows(project) == [(1,)], why

    def test_a_query_may_read_what_it_replaces(self, project: Any, named: str) -> None:
        project.run_sql(
            "create or replace table {schema}.named using hudi as select id + 1 as id, 'n' as note from {schema}.named"
        )
        assert self.rows(project) == [(2, "n")]
        project.run_sql("insert into {schema}.named values (3, 'm')")
        project.run_sql("create or replace table {schema}.named (id int, at date) using hudi")
        assert self.rows(project) == []
        project.run_sql("insert into {schema}.named values (4, date'2026-01-01')")
        assert [row[0] for row in self.rows(project)] == [4]
        described = project.run_sql("describe {schema}.named", fetch="all")
        assert [tuple(row)[:2] for row in described][:2] == [("id", "int"), ("at", "date")]

    def test_a_model_may_read_what_it_replaces(self, project: Any, named: str) -> None:
        run_dbt(["run", "-s", "named", "--full-refresh", "--vars", "{more: 5}"])
        assert self.rows(project) == [(6,)]

    def test_columns_take_the_place_of_all_that_was_there(self, project: Any, named: str) -> None:
        project.run_sql("create or replace table {schema}.named (at date, id string) using hudi")
        project.run_sql("insert into {schema}.named values (date'2026-01-01', 'a')")
        assert [row[1] for row in self.rows(project)] == ["a"]

    def test_a_table_is_not_made_over_one_that_another_process_has_built(self, project: Any) -> None:
        project.run_sql("drop table if exists {schema}.built; drop table if exists {schema}.known")
        project.run_sql("create table {schema}.known using hudi as select 1 as id")
        folder = project.project_root / "warehouse" / project.test_schema
        (folder / "known").copy(folder / "built")
        with pytest.raises(REFUSED, match="has rows by now|already"):
            project.run_sql("create table {schema}.built using hudi as select 2 as id")
        project.run_sql("create or replace table {schema}.built using hudi as select 3 as id")
        found = project.run_sql("select id from {schema}.built", fetch="all")
        assert [tuple(row) for row in found] == [(3,)]
        project.run_sql("drop table {schema}.built; drop table {schema}.known")

    def test_notes_of_the_table_before_are_gone(self, project: Any) -> None:
        project.run_sql(
            "create or replace table {schema}.noted (id int comment 'the key', n int not null) using hudi comment 'old' "
            "tblproperties ('team' = 'a')"
        )
        with pytest.raises(REFUSED, match="declared NOT NULL in n"):
            project.run_sql("insert into {schema}.noted values (1, null)")
        project.run_sql(
            "create or replace table {schema}.noted using hudi as select 1 as id, cast(null as int) as n"
        )
        project.run_sql("insert into {schema}.noted values (2, null)")
        told = project.run_sql("describe extended {schema}.noted", fetch="all")
        shown = " ".join(str(value) for row in told for value in tuple(row))
        assert "the key" not in shown and "old" not in shown and "team" not in shown

    def test_a_model_with_properties_leaves_what_must_not_be_null(self, project: Any) -> None:
        project.run_sql(
            "create or replace table {schema}.grown (id int, n int not null) using hudi tblproperties ('primaryKey' = 'id')"
        )
        run_dbt(["run", "-s", "grown"])
        with pytest.raises(REFUSED, match="declared NOT NULL in n"):
            project.run_sql("insert into {schema}.grown values (7, null)")
        run_dbt(["run", "-s", "grown", "--full-refresh"])
        project.run_sql("insert into {schema}.grown values (7, null)")


BECOMES = """
{{ config(materialized=var('as', 'table'), table_type=var('type')) }}
{% if var('as', 'table') == 'view' %} SQL {% else %} select 1 as id {% endif %}
"""
# What can be a table's query and no view's, and why.
NO_VIEWS = {
    "select 1 as id, 2 as id": "COLUMN_ALREADY_EXISTS",
    "select * from {{ this }}": "would read itself",
    "with own as (select * from {{ this }}) select 2 as id where 1 in (select id from own)": "would read itself",
    "select * from {{ target.schema }}.other version as of 'latest'": "in a view is refused",
    "select nope": "nope",
}


class TestTablesThatBecomeViews:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        queries = {"possible": "select 2 as id"}
        queries.update((f"refused_{number}", sql) for number, sql in enumerate(NO_VIEWS))
        return {f"{name}.sql": BECOMES.replace("SQL", sql) for name, sql in queries.items()}

    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_one_that_cannot_be_a_view_stays(self, project: Any, kind: str) -> None:
        def rows(name: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in project.run_sql(f"select id from {{schema}}.{name}", fetch="all")]

        project.run_sql("create or replace table {schema}.other using hudi as select 1 as id")
        run_dbt(["run", "--full-refresh", "--vars", f"{{type: {kind}}}"])
        results = run_dbt(["run", "--vars", f"{{as: view, type: {kind}}}"], expect_pass=False)
        said = {result.node.name: str(result.message) for result in results}
        for number, why in enumerate(NO_VIEWS.values()):
            name = f"refused_{number}"
            assert why in said[name], said[name]
            assert rows(name) == [(1,)], name
        assert rows("possible") == [(2,)]
        names = [row[1] for row in project.run_sql("show tables in {schema}", fetch="all")]
        assert [name for name in names if name.endswith("__dbt_tmp")] == []
