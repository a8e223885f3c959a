"""Incremental strategies that a project has a macro for: what holds for others holds for their rows, or is refused."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError

MACRO = """
{% macro get_incremental_my_append_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }} select id from {{ arg_dict['temp_relation'] }}
{% endmacro %}
"""
DEFAULT = """
{% macro get_incremental_default_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }} select id * 10 as id from {{ arg_dict['temp_relation'] }}
{% endmacro %}
"""
OF_META = """
{% macro get_incremental_some_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }} select id from {{ arg_dict['temp_relation'] }} where {{ arg_dict['incremental_predicates'][0] }}
{% endmacro %}
"""
SOME = """
{{ config(materialized='incremental', incremental_strategy='some', meta={'hudi': {'incremental_predicates': ['id > 2']}}) }}
select explode(sequence(1, {{ var('id', 1) }})) as id
"""
STRICT = """
{{ config(materialized='incremental', incremental_strategy='my_append', on_schema_change='append_new_columns') }}
select cast({{ var('id', 1) }} as int) as id
"""
PROPERTIES = """
models:
  - name: strict
    config: {contract: {enforced: true}}
    columns: [{name: id, data_type: int, constraints: [{type: not_null}]}]
"""
FED = """
{{ config(materialized='incremental', incremental_strategy='my_append') }}
select id from {{ hudi_changes(ref('source_rows')) }}
"""


class TestStrategiesOfAProject:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"my_append.sql": MACRO, "some.sql": OF_META, "default.sql": DEFAULT}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "strict.sql": STRICT,
            "some_rows.sql": SOME,
            "strict.yml": PROPERTIES,
            "source_rows.sql": "{{ config(materialized='table') }} select 1 as id",
            "fed.sql": FED,
            "by_default.sql": "{{ config(materialized='incremental', unique_key='id') }} select 1 as id",
        }

    def test_a_contract_holds_in_later_runs(self, project: Any) -> None:
        run_dbt(["run", "--select", "strict"])
        run_dbt(["run", "--select", "strict", "--vars", "id: 2"])
        (result,) = run_dbt(["run", "--select", "strict", "--vars", "id: 'null'"], expect_pass=False).results
        assert "id" in result.message and "null" in result.message.lower()
        assert project.run_sql("select id from {schema}.strict order by id", fetch="all") == [(1,), (2,)]

    def test_its_macro_for_the_default_is_taken(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run", "--select", "by_default"])
        found = project.run_sql("select id from {schema}.by_default order by id", fetch="all")
        assert found == [(1,), (10,)]

    def test_predicates_under_meta_reach_its_macro(self, project: Any) -> None:
        for last in (1, 4):
            run_dbt(["run", "--select", "some_rows", "--vars", f"id: {last}"])
        found = project.run_sql("select id from {schema}.some_rows order by id", fetch="all")
        assert [row[0] for row in found] == [1, 3, 4]

    def test_changes_whose_checkpoint_its_macro_cannot_note_are_refused(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="hudi_changes is used in fed, .* 'my_append'"):
            run_dbt(["run", "--select", "source_rows", "fed"])
