"""Columns change in the commit of the rows: a run that fails leaves them as they were."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

MODEL = """
{{{{ config(materialized='incremental', unique_key='id', table_type='{kind}', on_schema_change='{mode}', audit={audit}) }}}}
{{% if is_incremental() %}} {{{{ var('second') }}}} {{% else %}} select 1 as id, 'kept' as gone, 7 as n {{% endif %}}
"""
MODELS = {
    "synced_cow": ("cow", "sync_all_columns", "false"),
    "synced_mor": ("mor", "sync_all_columns", "false"),
    "appended": ("cow", "append_new_columns", "false"),
    "tested": ("mor", "sync_all_columns", "true"),
    "checked": ("cow", "append_new_columns", "false"),
    "ignoring": ("cow", "ignore", "false"),
    "failing": ("cow", "fail", "false"),
}
PARTITIONED = """
{{ config(materialized='incremental', unique_key='id', precombine_field='n', partition_by=var('by', 'gone'),
   on_schema_change=var('mode', 'ignore')) }}
{% if is_incremental() %} {{ var('second') }} {% else %} select 1 as id, 'kept' as gone, 7 as n {% endif %}
"""
SPELLED = """
{{ config(materialized='incremental', unique_key='id', pre_hook='set spark.sql.caseSensitive=true') }}
{% if is_incremental() %} select 1 as ID, 'new' as Gone, 8 as n {% else %} select 1 as id, 'kept' as gone, 7 as n {% endif %}
"""
PROPERTIES = """
models:
  - name: checked
    config: {contract: {enforced: true}}
    constraints: [{type: check, expression: "extra is null or extra <> 'bad'"}]
    columns: [{name: id, data_type: int}, {name: gone, data_type: string}, {name: n, data_type: int},
      {name: extra, data_type: string}]
  - name: tested
    columns: [{name: id, data_tests: [{accepted_values: {arguments: {values: [1], quote: false}}}]}]
"""
MINE = """
{% macro get_incremental_mine_sql(arg_dict) %}
merge into {{ arg_dict['target_relation'] }} t using {{ arg_dict['temp_relation'] }} s on t.id = s.id
when matched then update set * when not matched then insert *
{% endmacro %}
"""
OLD = ["id int", "gone string", "n int"], [(1, "kept", 7)]
FAILING = "select 2 as id, 8L as n, 'bad' as extra, cast(raise_error('boom') as int) as more"
UNLIKE = "select 2 as id, 'kept' as gone, 3000000000 as n, 'new' as extra"
CHANGED = "select 1 as id, 8L as n, 'good' as extra"
BREAKING = "select 2 as id, 8L as n, 'bad' as extra"


class TestColumnsAndRowsAreOneCommit:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        texts = {
            f"{name}.sql": MODEL.format(kind=kind, mode=mode, audit=audit)
            for name, (kind, mode, audit) in MODELS.items()
        }
        first = "select 1 as id, 'kept' as gone, 7 as n"
        texts["checked.sql"] = texts["checked.sql"].replace(first, f"{first}, cast(null as string) as extra")
        noted = MODEL.format(kind="cow", mode="sync_all_columns", audit="false")
        texts["noted.sql"] = noted
        texts["noted_by_own.sql"] = noted.replace("audit=", "incremental_strategy='mine', audit=")
        return {**texts, "partitioned.sql": PARTITIONED, "spelled.sql": SPELLED, "all.yml": PROPERTIES}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"mine.sql": MINE}

    def look(self, project: Any, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        with project.adapter.connection_named("look"):
            with project.adapter.connections.get_thread_connection().handle.job("look") as session:
                frame = session.table(f"{project.test_schema}.{name}")
                names = [each for each in frame.columns if not each.startswith("_hoodie")]
                shown = frame.select(names).orderBy("id")
                kinds = [f"{each.name} {each.dataType.simpleString()}" for each in shown.schema]
                return kinds, [tuple(row) for row in shown.collect()]

    def run(self, select: str, second: str, passes: bool = True) -> list[str]:
        given = ["run", "--select", *select.split(), "--vars", f'{{second: "{second}"}}']
        return [str(result.message) for result in run_dbt(given, expect_pass=passes)]

    def test_a_run_that_fails_leaves_the_columns_and_one_that_passes_brings_them(self, project: Any) -> None:
        names = [name for name in MODELS if name not in ("checked", "ignoring", "failing")]
        run_dbt(["run"])
        before = {name: self.look(project, name) for name in names}
        assert set(map(str, before.values())) == {str(OLD)}

        said = self.run(" ".join(names), FAILING, passes=False)
        assert all("boom" in each for each in said), said
        assert {name: self.look(project, name) for name in names} == before
        (said_of_value,) = self.run("appended", UNLIKE, passes=False)
        assert "value 3000000000 of column n does not fit its type int" in said_of_value
        (said_of_test,) = self.run("tested", BREAKING, passes=False)
        assert "the table is as it was" in said_of_test
        assert {name: self.look(project, name) for name in names} == before

        self.run(" ".join(names), CHANGED)
        synced = ["id int", "n bigint", "extra string"], [(1, 8, "good")]
        for name in names:
            wanted = (["id int", "gone string", "n int", "extra string"], [(1, "kept", 8, "good")])
            assert self.look(project, name) == (wanted if name == "appended" else synced), name

    @pytest.mark.parametrize("name", ["noted", "noted_by_own"])
    def test_a_column_that_comes_back_has_no_comment_of_the_one_that_was_dropped(
        self, project: Any, name: str
    ) -> None:
        run_dbt(["run", "--select", name, "--full-refresh"])
        project.run_sql(f"alter table {{schema}}.{name} alter column gone comment 'who'")
        project.run_sql(f"alter table {{schema}}.{name} alter column n comment 'many'")
        self.run(name, "select 1 as id, 8 as n")
        self.run(name, "select 1 as id, 9 as n, 'back' as gone")
        assert self.look(project, name)[1] == [(1, 9, "back")]
        described = {row[0]: row[2] for row in project.run_sql(f"describe {{schema}}.{name}", fetch="all")}
        assert (described["n"], described["gone"] or "") == ("many", "")

    def test_a_partition_column_under_another_name_is_told_as_no_mode_would_take_it(
        self, project: Any
    ) -> None:
        run_dbt(["run", "--full-refresh", "--select", "partitioned"])
        renamed = "select 1 as id, 'kept' as away, 8 as n"
        (said,) = self.run("partitioned", renamed, passes=False)
        assert "partition_by names 'gone', but the model's columns are id, away, n" in said
        given = ["run", "--select", "partitioned", "--vars", f'{{second: "{renamed}", by: away}}']
        (result,) = run_dbt(given, expect_pass=False)
        assert "partition_by is away, but the table has gone" in result.message
        assert "--full-refresh" in result.message and "append_new_columns" not in result.message
        assert self.look(project, "partitioned") == OLD

    def test_rows_without_a_partition_or_an_order_are_refused_where_columns_may_stay_away(
        self, project: Any
    ) -> None:
        run_dbt(["run", "--full-refresh", "--select", "partitioned"])
        for second, said in (
            ("select 2 as id, 8 as n", "partition_by names 'gone', but the model's columns are id, n"),
            (
                "select 2 as id, 'x' as gone",
                "precombine_field names 'n', but the model's columns are id, gone",
            ),
        ):
            given = f'{{second: "{second}", mode: append_new_columns}}'
            (result,) = run_dbt(["run", "--select", "partitioned", "--vars", given], expect_pass=False)
            assert said in result.message
            assert self.look(project, "partitioned") == OLD

    def test_a_key_under_another_name_is_told_as_no_mode_would_take_it(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--select", "ignoring"])
        (said,) = self.run("ignoring", "select 1 as ident, 'kept' as gone, 7 as n", passes=False)
        assert "unique_key names 'id', but the model's columns are ident, gone, n" in said
        (said,) = self.run("ignoring", "select 1 as id, 'kept' as away, 7 as n", passes=False)
        assert "no longer selects gone" in said and "selects away, which it lacks" in said
        assert self.look(project, "ignoring") == OLD

    def test_columns_in_another_spelling_are_found_also_where_spark_minds_case(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--select", "spelled"])
        run_dbt(["run", "--select", "spelled"])
        assert self.look(project, "spelled") == (OLD[0], [(1, "new", 8)])

    def test_changed_columns_are_refused_with_both_types(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--select", "failing"])
        self.run("failing", "select 'new' as Gone, 8 as n, 1 as id")
        before = self.look(project, "failing")
        assert before == (OLD[0], [(1, "new", 8)])

        (said,) = self.run("failing", CHANGED, passes=False)
        assert f"not those of {project.test_schema}.failing, and on_schema_change is 'fail':" in said
        for each in (
            "* extra string: new in the query",
            "* gone string: no longer selected",
            "* n: int in the table, bigint in the query",
            "append_new_columns (adds columns and keeps others)",
            "sync_all_columns (adds, widens and drops columns",
            "run it with --full-refresh, which rebuilds the table",
        ):
            assert each in said, (each, said)
        assert "SparkColumn" not in said and "full_refresh: " not in said

        (said,) = self.run(
            "failing", "select 1L as id, 'kept' as gone, cast(7 as smallint) as n", passes=False
        )
        assert "* id: int in the table, bigint in the query" in said and "n:" not in said
        assert self.look(project, "failing") == before

    def test_a_field_whose_name_a_table_cannot_have_is_refused_by_name(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--select", "appended"])
        more = "select 2 as id, 'x' as gone, 8 as n, named_struct('a b', 1) as extra"
        (said,) = self.run("appended", more, passes=False)
        assert "'extra'" in said and "a b" in said and "not allowed" in said and "rename it" in said
        assert self.look(project, "appended") == OLD

    def test_rows_that_break_a_constraint_bring_no_column(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--select", "checked"])
        before = self.look(project, "checked")
        text = project.project_root + "/models/all.yml"
        with open(text) as file:
            properties = file.read()
        with open(text, "w") as file:
            file.write(
                properties.replace(
                    "{name: extra, data_type: string}]",
                    "{name: extra, data_type: string}, {name: more, data_type: int}]",
                )
            )
        more = "select 2 as id, 'x' as gone, 8 as n, 'bad' as extra, 1 as more"
        (said,) = self.run("checked", more, passes=False)
        assert "constraint" in said
        assert self.look(project, "checked") == before
        self.run("checked", more.replace("bad", "good"))
        assert self.look(project, "checked")[0] == [*before[0], "more int"]
