"""Rows of one key, and rows of none, in snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt


def forms_of(text: str, blank: str, forms: dict[str, str]) -> dict[str, str]:
    """Snapshots of one text by their file, each with its own words in a blank."""
    return {f"{name}.sql": text.replace("NAME", name).replace(blank, said) for name, said in forms.items()}


WITHOUT_A_KEY = """
{% snapshot NAME %}
{{ config(unique_key='id', target_schema=target.schema, FOLLOWED) }}
select cast(null as int) as id, 'a' as v, timestamp '2026-01-01 10:00:00' as at
{% endsnapshot %}
"""


class TestARowWithoutAKey:
    """As in dbt, whose comparison of keys no null is equal to."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        forms = {
            "checked": "strategy='check', check_cols=['v']",
            "timed": "strategy='timestamp', updated_at='at'",
        }
        return forms_of(WITHOUT_A_KEY, "FOLLOWED", forms)

    def test_it_comes_anew_where_its_time_is_that_of_the_run(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["snapshot"])
        rows = {
            name: f"select count(*) from {{schema}}.{name} where dbt_valid_to is null"
            for name in ("checked", "timed")
        }
        assert {name: project.run_sql(query, fetch="one")[0] for name, query in rows.items()} == {
            "checked": 2,
            "timed": 1,
        }
