"""Tests before the commit that look at their table while they are compiled: they see it as it would be."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

MODEL = """
{{ config(materialized='incremental', on_schema_change='sync_all_columns', audit=true) }}
select cast(id as int) as id {% if var('note', true) %}, 'text' as note {% endif %}
from range({{ var('first', 0) }}, {{ var('first', 0) + 3 }})
"""
TESTS = """
{% test has_column(model, column) %}
  {% set names = adapter.get_columns_in_relation(model) | map(attribute='name') | list if execute else [] %}
  select 1 as missing where {{ column not in names }}
{% endtest %}

{% test at_most(model, rows) %}
  {% if execute %}
    {% set found = run_query('select count(*) from ' ~ model ~ ' as t').columns[0].values()[0] %}
    {% if found > rows %}{% do exceptions.raise_compiler_error(found ~ ' rows are too many') %}{% endif %}
  {% endif %}
  select 1 as nothing where false
{% endtest %}

{% test all_in_source(model) %}
  select id from {{ model }} where id not in (select id from {{ source('raw', 'allowed') }})
{% endtest %}
"""
YML = """
sources:
  - {name: raw, schema: "{{ target.schema }}", tables: [{name: allowed}]}
models:
  - name: looked_at
    data_tests:
      - has_column: {arguments: {column: note}}
      - at_most: {arguments: {rows: 6}}
      - all_in_source
"""


class TestLooksOfTests:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"looked_at.sql": MODEL, "looked_at.yml": YML}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"tests.sql": TESTS}

    def said(self, given: str, passes: bool = False) -> str:
        (result,) = run_dbt(["run", "--vars", given], expect_pass=passes)
        return str(result.message)

    def test_they_see_the_columns_and_rows_to_be(self, project: Any) -> None:
        project.run_sql("create table {schema}.allowed as select cast(id as int) as id from range(100)")
        assert "all_in_source_looked_at_: got 3 result(s)" in self.said("{first: 200}")
        self.said("{first: 0}", passes=True)
        dropping = self.said("{first: 3, note: false}")
        assert "1 of 3" in dropping and "has_column_looked_at_note: got 1 result(s)" in dropping
        assert project.run_sql("select count(note) from {schema}.looked_at", fetch="one")[0] == 3
        self.said("{first: 3}", passes=True)
        assert "at_most_looked_at_6 cannot be compiled over the rows to be" in (
            many := self.said("{first: 6}")
        )
        assert "9 rows are too many" in many
        assert project.run_sql("select count(*) from {schema}.looked_at", fetch="one")[0] == 6
