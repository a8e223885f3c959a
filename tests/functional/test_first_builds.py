"""What a model's first run does about a table that somebody else has built meanwhile, and values and statements that once went wrong in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

pytestmark = pytest.mark.sampled

BESIDE = "create table if not exists {{ this }} using hudi KIND as select 7 as id, 'another run' as v"
KEYED = "tblproperties (primaryKey = 'id', type = 'TYPE')"
MODEL = """
{{ config(materialized='incremental', MORE, pre_hook=["BESIDE" if var('beside', false) else 'select 1']) }}
select cast(id as int) as id, 'this run' as v from range(2)
"""
MODELS = {
    "appended": ("incremental_strategy='append'", ""),
    "keyed": ("unique_key='id', incremental_strategy='upsert', table_type='mor'", "mor"),
    "replacing": ("unique_key='id', incremental_strategy='delete+insert'", "cow"),
}
SNAPSHOT = """
{% snapshot history %}
{{ config(target_schema=target.schema, unique_key='id', strategy='check', check_cols=['v'], pre_hook=["BESIDE" if var('beside', false) else 'select 1']) }}
select cast(1 as int) as id, 'this run' as v
{% endsnapshot %}
"""
VAR = "{beside: true}"


def with_hook(text: str, kind: str = "") -> str:
    return text.replace("BESIDE", BESIDE.replace("KIND", KEYED.replace("TYPE", kind) if kind else ""))


@pytest.mark.core
class TestFirstBuildsBesideAnotherRun:
    """The table comes into being after dbt has looked for it: here by a hook, as by a second process of dbt."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{name}.sql": with_hook(MODEL.replace("MORE", more), kind)
            for name, (more, kind) in MODELS.items()
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": with_hook(SNAPSHOT)}

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select id, v from {{schema}}.{name} order by id", fetch="all")
        return [tuple(row) for row in found]

    def test_its_rows_are_not_replaced_and_the_next_run_adds_to_them(self, project: Any) -> None:
        said = [str(each.message) for each in run_dbt(["run", "--vars", VAR], expect_pass=False)]
        assert len(said) == 3 and all("has been built since, by another run of dbt" in each for each in said)
        assert all(self.rows(project, name) == [(7, "another run")] for name in MODELS)
        run_dbt(["run"])
        both = [(0, "this run"), (1, "this run"), (7, "another run")]
        assert all(self.rows(project, name) == both for name in MODELS)
        run_dbt(["run", "--full-refresh", "--vars", VAR])
        assert all(self.rows(project, name) == both[:2] for name in MODELS)
        (said,) = [str(each.message) for each in run_dbt(["snapshot", "--vars", VAR], expect_pass=False)]
        assert "history was not there when this run looked" in said
        assert self.rows(project, "history") == [(7, "another run")]


@pytest.mark.core
class TestPlacesWithOtherFiles:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        replacing = "materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day'"
        return {
            "reports.sql": f"{{{{ config({replacing}) }}}} select 1 as id, '2024-02-01' as day",
            "damaged.sql": "{{ config(materialized='incremental', unique_key='id') }} select 1 as id",
        }

    def test_the_error_names_the_files_and_they_stay(self, project: Any) -> None:
        root = Path(project.adapter.config.credentials.resolve_location_root(project.project_root))
        schema = root / project.test_schema.lower()
        old = schema / "reports" / "day=2024-01-31" / "old.parquet"
        commit = schema / "damaged" / ".hoodie" / "timeline" / "20260101000000000_20260101000001000.commit"
        for path in (old, commit, schema / "damaged" / "1.parquet"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"PAR1")
        for more in ([], ["--full-refresh"]):
            said = {each.node.name: str(each.message) for each in run_dbt(["run", *more], expect_pass=False)}
            assert (
                "holds 1 file(s) or folder(s) (day=2024-01-31) but no readable Hudi table" in said["reports"]
            )
            assert "put its .hoodie/hoodie.properties back" in said["damaged"]
        assert old.exists()


DEFINED = """
{{ config(materialized='incremental', unique_key='id', pre_hook=[
    "create table if not exists {{ this }} (id int, v string) using hudi tblproperties (primaryKey = 'id')"
]) }}
select cast(id as int) as id, 'this run' as v from range(2)
"""


class TestFirstBuildsOfTablesWithoutRows:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"defined.sql": DEFINED}

    def test_a_table_that_a_hook_defines_is_built(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run"])
            assert project.run_sql("select count(*) from {schema}.defined", fetch="one")[0] == 2


AGGREGATES = {
    "first": ("t.s", "'order by t.s'", 1, "a"),
    "two": ("t.s", "'order by t.o'", 2, "bb"),
    "apart": ("distinct t.s", "'order by t.o desc'", 3, "ab"),
}


@pytest.mark.core
class TestWhatOnceWentWrongInSilence:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = ", ".join(
            f"{{{{ dbt.listagg('{value}', \"''\", {order}, {most}) }}}} as {name}_of_all"
            for name, (value, order, most, _) in AGGREGATES.items()
        )
        return {
            "texts.sql": f"select {columns} from values ('b', 2), ('a', 4), ('b', 3), (null, 1) as t(s, o)",
            "small.sql": """
                {{ config(materialized='incremental', unique_key='id') }}
                select 1 as id, cast({{ var('f', '0.5') }} as {{ var('type', 'float') }}) as f
            """,
        }

    def test_nulls_are_none_of_the_elements_that_listagg_counts(self, project: Any) -> None:
        run_dbt(["run", "--select", "texts"])
        (found,) = project.run_sql("select * from {schema}.texts", fetch="all")
        assert [*found] == [text for *_, text in AGGREGATES.values()]

    @pytest.mark.parametrize("number", ["1e300D", "-1e300D", "3.5e38D", "'1e300'", "'no number'"])
    def test_a_number_too_large_for_a_float_is_refused(self, project: Any, number: str) -> None:
        run_dbt(["run", "--select", "small", "--full-refresh"])
        kind = "string" if "'" in number else "double"
        (result,) = run_dbt(
            ["run", "--select", "small", "--vars", f'{{f: "{number}", type: {kind}}}'], expect_pass=False
        )
        assert "of column f does not fit its type float" in str(result.message)
        assert project.run_sql("select f from {schema}.small", fetch="one")[0] == 0.5

    @pytest.mark.parametrize("number", ["3.4e38D", "double('infinity')", "double('nan')", "1e-300D", "null"])
    def test_a_number_that_a_float_holds_comes_in(self, project: Any, number: str) -> None:
        run_dbt(["run", "--select", "small", "--full-refresh"])
        run_dbt(["run", "--select", "small", "--vars", f'{{f: "{number}", type: double}}'])
        same = f"select f <=> cast({number} as float) from {{schema}}.small"
        assert project.run_sql(same, fetch="one")[0]

    def test_a_table_in_no_schema_is_refused_before_it_is_made(self, project: Any) -> None:
        with pytest.raises(Exception, match=r"SCHEMA_NOT_FOUND.*CREATE SCHEMA nowhere first"):
            project.run_sql("create table nowhere.t (id int) using hudi")
        with pytest.raises(Exception, match="SCHEMA_NOT_FOUND"):
            project.run_sql("create table nowhere.t using hudi as select 1 as id")
        project.run_sql("create schema nowhere")
        try:
            assert project.run_sql("show tables in nowhere", fetch="all") == []
        finally:
            project.run_sql("drop schema nowhere")

    @pytest.mark.parametrize("kind", ["struct<a: int not null>", "array<struct<a: struct<b: int not null>>>"])
    def test_not_null_inside_of_a_column_is_refused(self, project: Any, kind: str) -> None:
        with pytest.raises(Exception, match="NOT NULL is kept for whole columns"):
            project.run_sql(f"create table {{schema}}.inner_null (id int, s {kind}) using hudi")

    @pytest.mark.parametrize(
        ("column", "told"),
        [
            ("n int not null", "a column that is added cannot be NOT NULL"),
            ("s struct<a: int not null>", "NOT NULL is kept for whole columns"),
        ],
    )
    def test_not_null_of_an_added_column_is_refused(self, project: Any, column: str, told: str) -> None:
        run_dbt(["run", "--select", "small", "--full-refresh"])
        with pytest.raises(Exception, match=told):
            project.run_sql(f"alter table {{schema}}.small add columns ({column})")
        assert project.run_sql("select * from {schema}.small", fetch="all") == [(1, 0.5)]

    def test_the_inner_one_of_two_queries_of_one_name_counts(self, project: Any) -> None:
        query = "with a as (select 1 as x), b as (with a as (select 2 as x) select * from a) select x from b"
        assert project.run_sql(query, fetch="one")[0] == 2
