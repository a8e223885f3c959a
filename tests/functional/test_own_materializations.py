"""Materializations that a project has of its own: the table that they make is the one that the configs say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

MATERIALIZATION = """
{% materialization lake, default %}
  {%- set target = this.incorporate(type='table') -%}
  {% call statement('main') %}{{ get_create_table_as_sql(False, target, sql) }}{% endcall %}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}
"""
MODEL = """
{{ config(materialized='lake', unique_key=['id'], partition_by=['at.day', 'kind'], table_type='mor', precombine_field='seen',
    location_root=var('root'), index='bucket', options={'hoodie.bucket.index.num.buckets': 3}, tblproperties={'team': "the data's"},
    hive_style_partitioning=false, persist_docs={'relation': true}, audit=true) }}
select * from values (1, named_struct('day', 'mon'), 'x', 1), (1, named_struct('day', 'mon'), 'x', 2) t(id, at, kind, seen)
"""
PROPERTIES = """
models:
  - {name: by_configs, description: "all that's said"}
  - name: agreed
    config: {materialized: lake, contract: {enforced: true}}
    columns: [{name: id, data_type: bigint}]
"""


class TestOwnMaterializations:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"lake.sql": MATERIALIZATION}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "by_configs.sql": MODEL,
            "agreed.sql": "select 1 as id",
            "plain.sql": "{{ config(materialized='lake') }} select 1 as id",
            "wrong.sql": "{{ config(materialized='lake', table_type='heap') }} select 1 as id",
            "all.yml": PROPERTIES,
        }

    def test_a_table_is_as_its_configs_say(self, project: Any, tmp_path: Path) -> None:
        words = ["run", "--select", "by_configs", "--vars", f"root: {tmp_path}"]
        _, told = run_dbt_and_capture(words)
        assert (
            "by_configs is made by SQL of a materialization of the project's own, which no tests can stop"
            in told
        )
        said = (tmp_path / "by_configs" / ".hoodie" / "hoodie.properties").read_text().replace("\\:", ":")
        for line in (
            "hoodie.table.type=MERGE_ON_READ",
            "hoodie.table.recordkey.fields=id",
            "hoodie.table.partition.fields=at.day,kind",
            "hoodie.datasource.write.hive_style_partitioning=false",
        ):
            assert line in said.splitlines(), said
        assert list(tmp_path.glob("by_configs/mon/x/0000000*"))
        found = project.run_sql("select id, seen from {schema}.by_configs", fetch="all")
        assert [tuple(row) for row in found] == [(1, 2)]
        told = str(project.run_sql("describe extended {schema}.by_configs", fetch="all"))
        assert "all that's said" in told and "the data's" in told

    def test_its_contract_and_configs_are_checked(self, project: Any, tmp_path: Path) -> None:
        words = ["run", "--select", "agreed", "plain", "wrong", "--vars", f"root: {tmp_path}"]
        said = {each.node.name: str(each.message) for each in run_dbt(words, expect_pass=False)}
        assert "enforced contract that failed" in said["agreed"]
        assert "table_type is 'heap'" in said["wrong"]
        assert project.run_sql("select id from {schema}.plain", fetch="all") == [(1,)]
