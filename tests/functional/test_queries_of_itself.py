"""Incremental models whose query reads the model's own rows."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

OF_ITSELF = """
{{ config(materialized='incremental', incremental_strategy='STRATEGY', unique_key='id', table_type='TYPE') }}
select id, id + {{ var('plus', 0) }} as v from range({{ var('rows', 10) }})
{% if is_incremental() %} where id >= (select max(id) - 3 from {{ this }}) and exists (select 1 from {{ this }}) {% endif %}
"""


@pytest.mark.core
class TestQueriesOfTheTableItself:
    """The usual start of an incremental run, a subquery over the model's own rows, in each strategy that reads them twice."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{strategy.replace('+', '_')}_{kind}.sql": OF_ITSELF.replace("STRATEGY", strategy).replace(
                "TYPE", kind
            )
            for strategy in ("upsert", "delete+insert", "insert_new")
            for kind in ("cow", "mor")
        }

    def test_only_newer_rows_come(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{plus: 100, rows: 12}"])
        for name in ("upsert_cow", "upsert_mor", "delete_insert_cow", "delete_insert_mor"):
            (found,) = project.run_sql(f"select count(*), sum(v) from {{schema}}.{name}", fetch="all")
            assert tuple(found) == (12, 66 + 600), name
        for name in ("insert_new_cow", "insert_new_mor"):
            (found,) = project.run_sql(f"select count(*), sum(v) from {{schema}}.{name}", fetch="all")
            assert tuple(found) == (12, 66 + 200), name
