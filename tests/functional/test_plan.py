"""``dbt-hudi plan``: the figures of the run that follows, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import table_storage

from dbt.adapters.hudi.shell.here import main
from tests.helpers.projects import SNAPSHOT_OF_PEOPLE, files, where

pytestmark = pytest.mark.slow

PEOPLE = "id,name,dt\n1,a,x\n2,b,x\n3,c,y\n"
LATER = "id,name,dt\n1,a,x\n2,B,x\n4,d,y\n5,e,z\n"
FROM_PEOPLE = "select id, name, dt from {{ ref('people') }}"
MERGES = """
{{{{ config(materialized='incremental', unique_key='id', table_type='{kind}', on_schema_change='append_new_columns', {more}) }}}}
select id, name, dt {{% if var('day') > 1 %}}, 'new' as city {{% endif %}} from {{{{ ref('people') }}}}
"""
INCREMENTAL = """
{{{{ config(materialized='incremental', incremental_strategy='{strategy}', table_type='{kind}', {more}) }}}}
{query}
"""
MODELS = {
    "merged_cow.sql": MERGES.format(kind="cow", more="partition_by='dt'"),
    "merged_mor.sql": MERGES.format(kind="mor", more="skip_unchanged=true"),
    "appended.sql": INCREMENTAL.format(strategy="append", kind="mor", more="", query=FROM_PEOPLE),
    "overwritten.sql": INCREMENTAL.format(
        strategy="insert_overwrite",
        kind="cow",
        more="partition_by='dt'",
        query=f"{FROM_PEOPLE} where dt <> 'y'",
    ),
    "replaced_where.sql": INCREMENTAL.format(
        strategy="replace_where",
        kind="cow",
        more="incremental_predicates=\"dt = 'x'\"",
        query=f"{FROM_PEOPLE} where dt = 'x'",
    ),
    "deleted_first.sql": INCREMENTAL.format(
        strategy="delete+insert", kind="mor", more="unique_key='id', partition_by='dt'", query=FROM_PEOPLE
    ),
    "rebuilt.sql": "{{ config(materialized='table', post_hook='delete from {{ this }} where id = 1') }} "
    + FROM_PEOPLE,
    "seen.sql": "{{ config(materialized='view') }} select name, count(*) as n from {{ ref('appended') }} group by name",
    "counted.sql": "{{ config(materialized='table') }} select * from {{ ref('seen') }}",
    "over.sql": "{{ config(materialized='table') }} select dt, count(*) as n from {{ ref('overwritten') }} group by dt",
    "of_merged.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('merged_cow') }}",
    "of_hooked.sql": "{{ config(materialized='table', enabled=var('day') > 1) }} select id from {{ ref('rebuilt') }}",
    "later.sql": "{{ config(materialized='table', enabled=var('day') > 1) }} select n from {{ ref('counted') }}",
    "taken.sql": "{{ config(materialized='incremental', unique_key='id') }} select * from {{ hudi_changes(ref('merged_mor')) }}",
}
UNKNOWN = {"of_merged", "taken", "of_hooked"}
LATER_MACROS = """
{% if var('day') > 1 %}
  {% do drop_schema(api.Relation.create(schema=target.schema ~ '_aside')) %}
  {% set rebuilt = api.Relation.create(schema=target.schema, identifier='rebuilt') %}
  {% do alter_relation_comment(rebuilt, 'of a hook') %}
  {% do alter_column_comment(rebuilt, {'id': {'description': 'of a hook'}}) %}
{% endif %}
"""


class TestPlan:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"people.csv": PEOPLE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> Mapping[str, str]:
        return {"kept.sql": SNAPSHOT_OF_PEOPLE}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        return {
            "vars": {"day": 1},
            "on-run-start": ["create table {{ target.schema }}.of_hook using parquet as select 1"],
            "on-run-end": [LATER_MACROS],
        }

    def planned(self, project: Any, capsys: Any, *words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert main(["plan", *words, *where(project), "--vars", "{day: 2}"]) == code
        return str(capsys.readouterr().out)

    def test_the_run_has_the_figures_of_its_plan(self, project: Any, capsys: Any) -> None:
        run_dbt(["build", "--vars", "{day: 1}"])
        project.run_sql("drop table {schema}.of_hook")
        project.run_sql("create schema {schema}_aside")
        project.run_sql("create table {schema}_aside.kept using hudi as select 1 as id")
        write_file(LATER, project.project_root, "seeds", "people.csv")
        root = Path(project.project_root) / "hudi_warehouse"
        root = root if root.exists() else Path(project.adapter.connections.warehouse.places.location_root)
        before = files(root)

        answer = json.loads(self.planned(project, capsys, "--json", "--sample-rows", "2"))
        assert files(root) == before
        nodes = {each["name"]: each for each in answer["nodes"]}
        assert {name for name, each in nodes.items() if each["unknown"]} == UNKNOWN, nodes
        assert nodes["seen"]["does"] == "replace view"
        assert answer["statements_left_out"] == ["CREATE", "DROP", "COMMENT", "COMMENT"]
        assert nodes["rebuilt"]["hooks_left_out"] == ["DELETE"]
        assert nodes["merged_cow"]["columns"] == ["+ city string"]
        changed = [each for each in nodes["merged_mor"]["examples"] if each["change"] == "update"]
        assert {"id": 2, "name": "b", "dt": "x", "city": None} in [each["before"] for each in changed]

        text = self.planned(project, capsys, "--select", "people", "merged_cow")
        assert "of_merged" in text and "Nothing was written." in text
        assert files(root) == before
        limits = ("--fail-if", "deleted > 90 %", "--fail-if", "inserted > 1")
        page = Path(project.project_root) / "plan.html"
        given = ("--select", "rebuilt", *limits, "--html", str(page))
        said = json.loads(self.planned(project, capsys, "--json", *given, code=1))
        assert said["broken"] == ["rebuilt: deleted > 90 %", "rebuilt: inserted > 1"]
        shown = page.read_text(encoding="utf-8")
        assert "rebuilt: deleted &gt; 90 %" in shown and "<td>replace all</td>" in shown
        assert f'data-v="{said["nodes"][0]["inserted"]}"' in shown
        for wrong in (["--html", str(page / "none")], ["--fail-if", "file_groups > 1 %"]):
            with pytest.raises(SystemExit):
                main(["plan", *wrong, *where(project)])
        assert self.planned(project, capsys, "--select", "no_such_model", code=2) == ""

        results = run_dbt(["build", "--vars", "{day: 2}"])
        done = {each.node.name: each.adapter_response for each in results}
        counts = ("rows_inserted", "rows_updated", "rows_deleted")
        for name, node in nodes.items():
            if node["unknown"] or name == "seen":
                continue
            found = {each: node[each.removeprefix("rows_")] for each in counts}
            assert found == {each: done[name][each] for each in counts}, name
            assert len(node["partitions"]) == done[name]["partitions_written"], name

    def test_a_condition_that_is_none_is_refused(self, project: Any, capsys: Any) -> None:
        with pytest.raises(SystemExit):
            main(["plan", "--fail-if", "lost > 1"])
        assert "--fail-if is 'lost > 1'; legal values: read, inserted" in capsys.readouterr().err


DAY = "{{ var('day') }}"
TABLE = "{{ config(materialized='table') }} "
APPEND = "{{ config(materialized='incremental', incremental_strategy='append') }} "
BY_PLACE = INCREMENTAL.format(
    strategy="insert_overwrite",
    kind="cow",
    more="partition_by='at'",
    query="select * from values {% if var('day') == 1 %} {FIRST} {% else %} {SECOND} {% endif %} as t(id, at)",
)
OTHER_WAYS = {
    "grows.sql": f"{APPEND} select id + {DAY} as id from range(3)",
    "shown.sql": "{{ config(materialized='view') }} select * from {{ ref('grows') }}",
    "by_view.sql": TABLE + "select * from {{ ref('shown') }}",
    "by_temporary_view.sql": """
        {{ config(materialized='table', pre_hook="create or replace temporary view hooked as select * from {{ ref('grows') }}") }}
        select * from hooked -- {{ ref('grows') }}""",
    "by_header.sql": """
        {{ config(materialized='table', sql_header="create or replace temporary view headed as select * from " ~ schema ~ '.grows;') }}
        select * from headed -- {{ ref('grows') }}""",
    "by_function.sql": TABLE
    + "select id from hudi_table_changes('{{ schema }}.grows', 'latest_state', 'earliest') -- {{ ref('grows') }}",
    "by_condition.sql": """
        {{ config(materialized='incremental', incremental_strategy='replace_where',
           incremental_predicates="id in (select id from " ~ schema ~ ".grows)") }}
        select id from range(2) where id = 1 -- {{ ref('grows') }}""",
    "with_meta.sql": TABLE + "select id, _hoodie_commit_time as at from {{ ref('grows') }}",
    "logs.sql": f"{APPEND} select 1 as id where {DAY} = 1",
    "hooked_to_logs.sql": """
        {{ config(materialized='table', post_hook='insert into {{ schema }}.logs select 2 as id') }}
        select 1 as id -- {{ ref('logs') }}""",
    "of_logs.sql": TABLE + "select * from {{ ref('logs') }} -- {{ ref('hooked_to_logs') }}",
    "nulls.sql": BY_PLACE.replace("{FIRST}", "(1, 'x'), (2, ''), (3, null)").replace("{SECOND}", "(9, '')"),
    "of_nulls.sql": TABLE + "select * from {{ ref('nulls') }}",
    "zeros.sql": BY_PLACE.replace("{FIRST}", "(1, 0.0D), (2, 1.5D)").replace("{SECOND}", "(9, -0.0D)"),
    "of_zeros.sql": TABLE + "select * from {{ ref('zeros') }}",
    "set_aside.sql": """
        {{ config(materialized='incremental', unique_key='id', options={'hoodie.errortable.enable': true}, enabled=var('day') > 1) }}
        select * from values (1), (null) as t(id)""",
}
NOT_KNOWN = {"by_temporary_view", "by_header", "by_function", "by_condition", "with_meta", "of_logs"}


class TestOtherWays:
    """Models that read what the plan changes by another way than its name."""

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return OTHER_WAYS

    def planned(self, project: Any, capsys: Any, *words: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main(["plan", "--json", *words, *where(project), "--vars", "{day: 2}"])
        answer = json.loads(capsys.readouterr().out)
        assert code == 0, answer
        return {each["name"]: each for each in answer["nodes"]}

    def test_a_model_has_the_figures_of_the_run_or_is_not_known(self, project: Any, capsys: Any) -> None:
        run_dbt(["build", "--vars", "{day: 1}"])
        alone = self.planned(project, capsys, "--select", "grows", "by_view", "--exclude", "shown")
        assert "grows" in alone["by_view"]["unknown"]

        nodes = self.planned(project, capsys)
        assert {name for name, each in nodes.items() if each["unknown"]} == NOT_KNOWN, nodes
        assert nodes["set_aside"]["set_aside"] == 1
        rebuilt = self.planned(
            project, capsys, "--full-refresh", "--select", "logs", "hooked_to_logs", "of_logs"
        )
        assert ".logs" in rebuilt["of_logs"]["unknown"]

        results = run_dbt(["build", "--vars", "{day: 2}"])
        done = {each.node.name: each.adapter_response for each in results}
        for name in nodes.keys() - NOT_KNOWN - {"shown"}:
            found = {each: nodes[name][each] for each in ("inserted", "updated", "deleted")}
            assert found == {each: done[name][f"rows_{each}"] for each in found}, name


KEYED = """{{ config(materialized='incremental', unique_key=KEY,
    pre_commit_tests=[{'name': 'no debt', 'sql': 'select * from this where n < 0'}]) }} select id, id + 1 as n from range(3)"""
REBUILT = {
    "keyed.sql": KEYED.replace("KEY", "'id'"),
    "shown.sql": "{{ config(materialized='table') }} select id from range(5)",
    "events.sql": """
        {{ config(materialized='table', event_time='at') }}
        select id, timestamp '2026-01-01 12:00:00' + make_interval(0, 0, 0, id) as at from range(3)""",
    "batches.sql": """
        {{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
           begin='2026-01-01') }} select * from {{ ref('events') }}""",
}


class TestRebuilds:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return REBUILT

    def planned(self, project: Any, capsys: Any, *words: str) -> dict[str, Any]:
        capsys.readouterr()
        window = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-04"]
        main(["plan", "--json", *words, *where(project), *window])
        return {each["name"]: each for each in json.loads(capsys.readouterr().out)["nodes"]}

    def test_rows_that_a_new_table_takes_the_place_of_are_deleted_ones(
        self, project: Any, capsys: Any
    ) -> None:
        first = self.planned(project, capsys)
        assert {name: each["inserted"] for name, each in first.items()} == {
            "keyed": 3, "shown": 5, "events": 3, "batches": 3
        }  # fmt: skip
        assert first["keyed"]["tests_left_out"] == ["no debt"]
        run_dbt(["build", "--event-time-start", "2026-01-01", "--event-time-end", "2026-01-04"])
        path = f"{project.project_root}/warehouse/{project.test_schema}/keyed"
        (commit,) = commit_facts(TableState.load(table_storage(path)))
        assert commit.extra["_dbt_audits"] == '["no debt"]'
        assert project.run_sql("select count(*) from {schema}.batches", fetch="one")[0] == 3

        again = self.planned(project, capsys, "--full-refresh")
        assert "into a table that the first one rebuilds" in again["batches"]["unknown"]
        folder = (project.project_root, "models")
        write_file(KEYED.replace("KEY", "['id', 'n']"), *folder, "keyed.sql")
        write_file("select id from range(5)", *folder, "shown.sql")
        nodes = self.planned(project, capsys, "--full-refresh", "--select", "keyed", "shown")
        assert [nodes[each]["does"] for each in ("keyed", "shown")] == ["rebuild", "replace table by view"]
        assert [nodes[each]["deleted"] for each in ("keyed", "shown")] == [3, 5]
        limit = ["plan", "--select", "shown", "--fail-if", "deleted > 90 %", *where(project)]
        assert main(limit) == 1
        (done,) = run_dbt(["run", "--full-refresh", "--select", "keyed"])
        assert (done.adapter_response["rows_deleted"], done.adapter_response["rows_affected"]) == (3, 3)
