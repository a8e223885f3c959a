"""What a model says of its services holds in its hooks too, for its own table and for no other."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

DELETES = "delete from {{ this }} where id = 3"
MODEL = """
{{ config(materialized='incremental', unique_key='id', MORE) }}
select cast(id as int) as id, cast(id % 7 as int) as day from range(100)
"""
OWN_STRATEGY = """
{% macro get_incremental_rewritten_sql(arg_dict) %}
  insert overwrite {{ arg_dict['target_relation'] }} select id, day from {{ arg_dict['temp_relation'] }}
{% endmacro %}
"""
MODELS = {
    "by_statement": f"clean=false, archive=false, post_hook='{DELETES}'",
    "by_service": "clean={'retain_commits': 50}, post_hook='{{ hudi_clean(this) }}'",
    "by_call": "hudi_options={'hoodie.cleaner.commits.retained': 50}, "
    "post_hook=\"call run_clean(table => '{{ this }}')\"",
    "by_operation": "clean=false, post_hook='{{ hudi_soft_delete(this, \"id = 4\") }}'",
    "by_strategy": "clean=false, incremental_strategy='rewritten'",
    "other": "post_hook='{{ hudi_clean(this) }}'",
}
CLUSTERED = """
{{ config(materialized='incremental', incremental_strategy='append', cluster_by=['day'],
    clustering={'execute': 'off', 'target_file_bytes': 200000}, hudi_options={'hoodie.parquet.small.file.limit': 0},
    post_hook=["{{ hudi_cluster(ref('unsorted')) }}", "{{ hudi_cluster(this) }}"]) }}
select id, cast(pmod(hash(id), 90) as int) as day, md5(cast(id as string)) as text from range(20000)
"""


class TestRetentionOfAModel:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        retained = {"hoodie.clean.commits.retained": 1, "hoodie.clean.max.commits": 1}
        return {**dbt_profile_target, "options": retained}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"{name}.sql": MODEL.replace("MORE", more) for name, more in MODELS.items()}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"rewritten.sql": OWN_STRATEGY}

    def test_hooks_take_no_files_that_the_config_keeps(self, project: Any) -> None:
        for _ in range(4):
            run_dbt(["run"])
        cleaned = {
            name: len(project.run_sql(f"call show_cleans(table => '{{schema}}.{name}')", fetch="all"))
            for name in MODELS
        }
        assert cleaned.pop("other"), "the profile's own retention cleans"
        assert cleaned == dict.fromkeys(cleaned, 0)


class TestClusteringOfAModel:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "unsorted.sql": "{{ config(materialized='table') }} select 1 as id",
            "sorted.sql": CLUSTERED,
        }

    def test_its_settings_are_those_of_its_table_alone(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run"])
        found = project.run_sql(
            "select min(day), max(day) from {schema}.sorted group by input_file_name() order by 1, 2",
            fetch="all",
        )
        assert len(found) > 2, "files of the size that clustering says"
        assert all(before[1] <= after[0] for before, after in zip(found, found[1:])), "in its order"
