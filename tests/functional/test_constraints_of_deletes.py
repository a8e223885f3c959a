"""A contract asks what is stored: of a row that deletes nothing is, so it may have nulls."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

CONTRACT = """
models:
  - name: {name}
    config: {{contract: {{enforced: true}}, materialized: incremental, unique_key: id, on_schema_change: fail}}
    columns:
      - {{name: id, data_type: int}}
      - {{name: total, data_type: int, constraints: [{{type: not_null}}, {{type: check, expression: "total > 0"}}]}}
      {mark}
"""
OF_TABLE = "- {name: _hoodie_is_deleted, data_type: boolean}"
OF_BATCH = "- {name: __hudi_is_deleted, data_type: boolean}"
OF_MARKER = "- {name: op, data_type: string}"
QUERY = """
{{ config(CONFIG) }}
{% if is_incremental() %}
  select 1 as id, 11 as total, KEEPS union all select 2, null, DELETES union all select 3, {{ var('total', 33) }}, KEEPS
{% else %}
  select 1 as id, 1 as total, KEEPS union all select 2, 2, KEEPS
{% endif %}
"""
FIRST = QUERY.replace("{% if is_incremental() %}", "{% if true %}")
MARKER = "hudi_options={'hoodie.payload.delete.field': 'op', 'hoodie.payload.delete.marker': 'D'}"
OF_DMS = (
    "hudi_options={'hoodie.datasource.write.payload.class': 'org.apache.hudi.common.model.AWSDmsAvroPayload'}"
)
MODELS = {
    "changes": (QUERY, "table_type='cow'", "'update_after' as _change_type", "'delete'", ""),
    "stored_mark": (QUERY, "table_type='mor'", "false as _hoodie_is_deleted", "true", OF_TABLE),
    "marker": (QUERY, f"precombine_field='id', {MARKER}", "'U' as op", "'D'", OF_MARKER),
    "of_dms": (
        QUERY,
        f"precombine_field='id', {OF_DMS}",
        "'U' as Op",
        "'d'",
        "- {name: Op, data_type: string}",
    ),
    "clauses": (
        QUERY,
        "merge_update_set_expressions={'total': 'DBT_INTERNAL_SOURCE.total'}",
        "false as _hoodie_is_deleted",
        "true",
        OF_TABLE,
    ),
    "first_mark": (FIRST, "table_type='cow'", "false as _hoodie_is_deleted", "true", OF_TABLE),
    "first_marker": (FIRST, f"precombine_field='id', {MARKER}", "'U' as op", "'D'", OF_MARKER),
}


class TestContractsOfDeletes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        made = {}
        for name, (query, config, keeps, deletes, mark) in MODELS.items():
            sql = query.replace("CONFIG", config).replace("KEEPS", keeps).replace("DELETES", deletes)
            made |= {f"{name}.sql": sql, f"{name}.yml": CONTRACT.format(name=name, mark=mark)}
        return made

    def test_a_row_that_deletes_is_not_asked_and_every_other_is(self, project: Any) -> None:
        first = ["--select", "first_mark", "first_marker"]
        run_dbt(["run", "--exclude", *first[1:]])
        for result in run_dbt(["run", "--vars", "{total: 'null'}"], expect_pass=False):
            assert "constraint violated: not null total" in result.message, result.node.name
            assert '"id":3,"total":null' in result.message
        run_dbt(["run"])
        for name in MODELS:
            rows = project.run_sql(f"select id, total from {{schema}}.{name} order by id", fetch="all")
            assert [tuple(row) for row in rows] == [(1, 11), (3, 33)], name


class TestContractsOfTheStrategyDelete:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = (
            "{{ config(incremental_strategy=var('strategy', 'merge')) }} {% if var('strategy', '') == 'delete' %} "
            "select 2 as id, cast(null as int) as total {% else %} select 1 as id, 1 as total union all select 2, 2 {% endif %}"
        )
        return {"m.sql": sql, "m.yml": CONTRACT.format(name="m", mark="")}

    def test_keys_alone_are_enough(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{strategy: delete}"])
        rows = project.run_sql("select id, total from {schema}.m", fetch="all")
        assert [tuple(row) for row in rows] == [(1, 1)]


class TestFlagsOfInserts:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = (
            "{{ config(incremental_strategy='insert') }} select 1 as id, 1 as total, false as __hudi_is_deleted "
            "{% if is_incremental() %} union all select 2, null, {{ var('flag', 'true') }} {% endif %}"
        )
        return {"m.sql": sql, "m.yml": CONTRACT.format(name="m", mark=OF_BATCH)}

    def test_a_row_that_is_left_out_is_not_asked_and_every_other_is(self, project: Any) -> None:
        run_dbt(["run"])
        (result,) = run_dbt(["run", "--vars", "{flag: 'false'}"], expect_pass=False)
        assert "constraint violated: not null total" in result.message
        run_dbt(["run"])
        rows = project.run_sql("select id, total from {schema}.m order by id", fetch="all")
        assert {tuple(row) for row in rows} == {(1, 1)}
