"""Compaction and clean: as hooks, as operations, by themselves."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtBaseException

BUILDS = """
{{ config(materialized='incremental', unique_key='id', table_type='mor', %s) }}
{%% if is_incremental() %%} select 1 as id, 'build6' as build
{%% else %%} select 1 as id, 'build5' as build union all select 2, 'build5' {%% endif %%}
"""


def builds(config: str = "options={}") -> str:
    return BUILDS % config


class TestServices:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "plain.sql": builds(),
            "hooked.sql": builds(
                "post_hook=['{{ hudi_compact(this) }}', '{{ hudi_clean(this, retain_commits=1) }}']"
            ),
            "inline.sql": builds(
                "compaction={'trigger': 'NUM_COMMITS', 'delta_commits': 1}, clean={'retain_commits': 2}"
            ),
        }

    def build(self, project: Any, name: str) -> str:
        row = project.run_sql(f"select build from {{schema}}.{name} where id = 1", fetch="one")
        return str(row[0])

    def test_both_faces_show_the_update_after_compaction(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        assert [self.build(project, f"plain{face}") for face in ("", "_rt", "_ro")] == [
            "build6",
            "build6",
            "build5",
        ]
        assert self.build(project, "hooked_ro") == "build6"
        assert self.build(project, "inline_ro") == "build6"
        table = f"{project.test_schema}.plain"
        _, output = run_dbt_and_capture(["run-operation", "hudi_compact", "--args", f"{{table: {table}}}"])
        assert f"compact of {table}: instant 2" in output and "state completed" in output
        assert self.build(project, "plain_ro") == "build6"
        _, output = run_dbt_and_capture(["run-operation", "hudi_compact", "--args", f"{{table: {table}_ro}}"])
        assert "nothing to do: " in output
        _, output = run_dbt_and_capture(["run-operation", "hudi_show_timeline", "--args", "{table: plain}"])
        assert "deltacommit  COMPLETED" in output
        _, output = run_dbt_and_capture(
            ["run-operation", "hudi_compact", "--args", "{table: plain, op: show}"]
        )
        assert "compactions" not in output and "COMPLETED" in output

    def test_second_names_are_found_and_not_listed(self, project: Any) -> None:
        run_dbt(["run", "-s", "plain"])
        adapter, schema = project.adapter, project.test_schema
        with adapter.connection_named("look"):
            listed = {r.identifier: r.type for r in adapter.list_relations(None, schema)}
            found = {
                name: adapter.get_relation(None, schema, name)
                for name in ("plain", "plain_ro", "PLAIN_RT", "none_ro")
            }
        assert listed["plain"] == "table"
        assert not [name for name in listed if name.endswith(("_ro", "_rt")) or "hudi_files" in name]
        assert {name: None if each is None else str(each.type) for name, each in found.items()} == {
            "plain": "table", "plain_ro": "view", "PLAIN_RT": "view", "none_ro": None,
        }  # fmt: skip

    def test_faces_cannot_be_written(self, project: Any) -> None:
        run_dbt(["run", "-s", "plain", "--full-refresh"])
        with pytest.raises(DbtBaseException, match="read-only face"):
            project.run_sql("delete from {schema}.plain_ro where id = 1")

    def test_procedures_of_hudi_are_known(self, project: Any) -> None:
        run_dbt(["run", "-s", "plain", "--full-refresh"])
        run_dbt(["run", "-s", "plain"])
        project.run_sql("call run_compaction(op => 'schedule', table => '{schema}.plain')")
        project.run_sql(
            "call run_compaction('run', '{schema}.plain'); call run_clean(table => '{schema}.plain')"
        )
        assert self.build(project, "plain_ro") == "build6"

    def test_a_first_build_that_is_rolled_back_never_was(self, project: Any) -> None:
        table = f"{project.test_schema}.fresh"
        project.run_sql(f"create table {table} as select 1 as id")
        _, output = run_dbt_and_capture(
            ["run-operation", "hudi_show_timeline", "--args", f"{{table: {table}, limit: 1}}"]
        )
        instant = output.split("  commit  COMPLETED")[0].split()[-1]
        run_dbt(["run-operation", "hudi_rollback", "--args", f"{{table: {table}, instant: '{instant}'}}"])
        with project.adapter.connection_named("look"):
            names = {each.identifier for each in project.adapter.list_relations(None, project.test_schema)}
        assert "fresh" not in names
        project.run_sql(f"create table {table} as select 2 as id")
        assert project.run_sql(f"select id from {table}", fetch="one")[0] == 2

    def test_service_on_an_unknown_table_is_refused(self, project: Any) -> None:
        _, output = run_dbt_and_capture(
            ["run-operation", "hudi_clean", "--args", "{table: nothing}"], expect_pass=False
        )
        assert "nothing is not a Hudi table; Hudi tables of" in output
