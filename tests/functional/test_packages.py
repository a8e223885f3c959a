"""Packages that are written for many warehouses run as they are; the root project can set their configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

# file_format is empty but on one warehouse, partition_by a mapping but on two: as in packages of the hub
DAILY = """
{{ config(materialized='incremental', unique_key='id', file_format='delta', cluster_by=['day'],
          incremental_strategy='insert_overwrite' if target.type in ('bigquery', 'spark') else 'delete+insert',
          partition_by={'field': 'day', 'data_type': 'date'}) }}
select 1 as id, date'2024-01-01' as day
"""
HOURLY = """
{{ config(materialized='incremental', unique_key='id',
          partition_by={'field': 'at', 'data_type': 'timestamp', 'granularity': 'hour'}) }}
select cast(10 as {{ api.Column.string_type(4000) }}) as id, timestamp'2024-01-01 10:00:00' as at
"""
PLAIN = "{{ config(materialized='incremental', unique_key='id', file_format='delta') }} select 1 as id"
SIDE_TABLE = """
{% macro add_by_side_table(base) %}{% if execute %}
  {% set side = base.incorporate(path={"schema": none, "identifier": base.identifier ~ "__side"}, type="table") %}
  {% set moved = base.incorporate(path={"schema": none, "identifier": base.identifier ~ "__moved"}, type="table") %}
  {% do run_query("create table " ~ side ~ " as select * from " ~ base ~ " where 1 = 0") %}
  {% do run_query("insert into " ~ side ~ " values (2)") %}
  {% do adapter.rename_relation(side, moved) %}
  {% do run_query("insert into " ~ base ~ " select * from " ~ moved) %}
  {% do adapter.drop_relation(moved) %}
{% endif %}{% endmacro %}
"""
SIDE = "{{ config(materialized='incremental', unique_key='id', post_hook='{{ add_by_side_table(this) }}') }} select 1 as id"


class TestAPackageForManyWarehouses:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"portable": {"chosen": {"+file_format": "hudi"}}}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"own.sql": "{{ config(materialized='table', file_format='') }} select 1 as id"}

    def test_it_runs_and_each_config_left_out_is_named_once(self, project: Any) -> None:
        package = Path(project.project_root) / "dbt_packages" / "portable"
        for folder in ("models", "macros"):
            (package / folder).mkdir(parents=True)
        (package / "dbt_project.yml").write_text(
            "name: portable\nversion: '1.0'\nmodels: {portable: {+file_format: '', +materialized: table}}\n"
        )
        (package / "macros" / "side.sql").write_text(SIDE_TABLE)
        models = {"daily": DAILY, "hourly": HOURLY, "chosen": PLAIN, "side": SIDE}
        for name, text in models.items():
            (package / "models" / f"{name}.sql").write_text(text)

        results, said = run_dbt_and_capture(["run"])

        assert len(results) == 5
        assert "file_format, a config of daily, is not used: dbt-hudi builds Hudi tables only" in said
        assert "partition_by, a config of hourly, is not used" in said and "config of chosen" not in said
        assert said.count("is not used") == 2
        folder = Path(project.adapter.config.credentials.resolve_location_root(project.project_root))
        assert (folder / project.test_schema.lower() / "daily" / "day=2024-01-01").is_dir()
        rows = project.run_sql("select id from {schema}.side order by id", fetch="all")
        assert [row[0] for row in rows] == [1, 2]
        assert not list(folder.glob("*/*__side")) and not list(folder.glob("*/*__moved"))
        assert [str(each.status) for each in run_dbt(["run"])] == ["success"] * 5
